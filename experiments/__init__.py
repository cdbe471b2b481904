"""Programs that train, evaluate, solve and reproduce: `python -m experiments COMMAND`."""

import os

# Both have to stand before NumPy and PyTorch are loaded, and whoever sets them otherwise is left alone.
# The matrices here are small: threads of NumPy's own would only fight PyTorch's for the same cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# PyTorch's threads give up their core while they wait for each other. If they kept it, as they do by default, two of them
# would fall to a twentieth of their speed on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from dice_envs.extras import check_extra

check_extra("experiments", "experiments", "typer", "rich", "filelock")
