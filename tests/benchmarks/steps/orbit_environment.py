"""Orbit beside our environment: the two packages that it needs, without their dependencies.

tf-models-official holds Orbit and would pull in a hundred packages that Orbit never imports; of
those that it does, all but tf_keras are ours already. Installed once, under build/.
"""

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_FOLDER = _ROOT / "build" / "benchmarks" / "orbit"
_PINNED = _ROOT / "requirements" / "orbit.txt"


def environment() -> dict[str, str]:
    """Returns the variables under which `import orbit` works; installs it if it is not there."""
    done = _FOLDER / "requirements.txt"
    if not done.exists() or done.read_text() != _PINNED.read_text():
        subprocess.run(
            [
                sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check",
                "--no-deps", "--require-hashes", "--upgrade", "--target", str(_FOLDER),
                "-r", str(_PINNED),
            ],
            check=True,
            timeout=600,
            stdout=sys.stderr,
        )  # fmt: skip
        done.write_text(_PINNED.read_text())
    # Orbit's checkpoints and summaries know Keras 2 only.
    return {"PYTHONPATH": str(_FOLDER), "TF_USE_LEGACY_KERAS": "1"}
