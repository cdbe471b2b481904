"""Programs that train, evaluate, solve and reproduce: `dice-envs COMMAND`."""

import os

# Set before NumPy and PyTorch are loaded, unless the user has set them.
# Matrices are small here: NumPy's own threads would only compete with PyTorch's for the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# PyTorch's threads wait for each other only briefly before they give up their core. Longer waiting gains little on free cores,
# and beside other programs, which may start later, it halves the speed.
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
    os.environ.update({"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"})

from dice_envs.core.machine import check_extra  # NumPy comes with it

check_extra("commands", "the command line", "typer", "rich", "filelock")

if os.environ["OPENBLAS_NUM_THREADS"] == "1":  # NumPy may have been loaded before that was set
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

    threadpool_limits(1, user_api="blas")
