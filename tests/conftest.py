"""The environment of all tests: byte code for child processes, a quiet TensorFlow."""

import os

# Without byte code every import of TensorFlow is four times slower.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# A developer's own settings must not decide a test.
for name in ("CASTELL_IMAGE", "TF_CONFIG", "CLUSTER_SPEC", "CASTELL_WORKER_HOSTS"):
    os.environ.pop(name, None)

# After the environment is set: these import TensorFlow's users.
from tests.runs import dataset, start, undisturbed  # noqa: E402
from tests.steps import train  # noqa: E402

__all__ = ["dataset", "start", "train", "undisturbed"]
