"""Programs that train, evaluate, solve and reproduce: `python -m experiments COMMAND`."""

import os


def thread_settings(load: float, cores: int) -> dict[str, str]:
    """How PyTorch's threads shall wait for each other, as environment variables.

    With two threads, PPO's learner steps a second on two cores were 40,000 where threads give up their core at once, 60,000
    where they spin a while first, and 63,000 where they spin on. Beside four busy processes they were 17,400, 12,000 and 5,700.

    Args:
        load: processes that want a core, mean of the last minute.
        cores: of the machine.
    """
    settings = {"OMP_WAIT_POLICY": "PASSIVE"}
    if load + 1.5 <= cores:  # nearly all of two cores are free
        settings["GOMP_SPINCOUNT"] = "10000"
    return settings


# These have to stand before NumPy and PyTorch are loaded, and whoever sets them otherwise is left alone.
# The matrices here are small: threads of NumPy's own would only fight PyTorch's for the same cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
    os.environ.update(thread_settings(os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0, os.cpu_count() or 1))

from dice_envs.core.extras import check_extra  # noqa: E402 - NumPy comes with it

check_extra("experiments", "the command line", "typer", "rich", "filelock", "threadpoolctl")

if os.environ["OPENBLAS_NUM_THREADS"] == "1":  # NumPy may have been loaded before that was set
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

    threadpool_limits(1, user_api="blas")
