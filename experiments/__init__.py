"""Programs that train, evaluate, solve and reproduce: `python -m experiments COMMAND`."""

import os

# The matrices here are small: threads of NumPy's own would only fight PyTorch's for the same cores. This has to stand
# before NumPy is loaded, and whoever sets it otherwise is left alone.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
