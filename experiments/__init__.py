"""Programs that train, evaluate, solve and reproduce: `python -m experiments COMMAND`."""

import os


def thread_settings(load: float, cores: int) -> dict[str, str]:
    """Return environment variables that say how PyTorch's threads wait for each other.

    PPO with two threads on two cores made 40,000 learner steps a second if threads gave up their core at once, 60,000 if they
    spun for a while first, and 63,000 if they kept spinning. Beside four busy processes it was 17,400, 12,000 and 5,700.

    Args:
        load: mean number of processes that wanted a core in the last minute.
        cores: number of cores.
    """
    settings = {"OMP_WAIT_POLICY": "PASSIVE"}
    if load + 1.5 <= cores:  # nearly all of two cores are free
        settings["GOMP_SPINCOUNT"] = "10000"
    return settings


# Set before NumPy and PyTorch are loaded, unless the user has set them.
# Matrices are small here: NumPy's own threads would only compete with PyTorch's for the cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys():
    os.environ.update(thread_settings(os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0, os.cpu_count() or 1))

from dice_envs.core.extras import check_extra  # noqa: E402 - NumPy comes with it

check_extra("experiments", "the command line", "typer", "rich", "filelock", "threadpoolctl")

if os.environ["OPENBLAS_NUM_THREADS"] == "1":  # NumPy may have been loaded before that was set
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

    threadpool_limits(1, user_api="blas")
