"""Solves pyproject.toml into the lock files beside this script; run it by `make lock`.

`dev` comes first, for Python 3.11 to 3.13 on any system, and constrains the others, which are what
the images hold: for one Python, and one build of TensorFlow each. Overrides leave out what a build
replaces (another TensorFlow satisfies no dependency on the name `tensorflow`) or cannot have.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PYTHON = "3.11"
# The glibc of the images' Debian 12.
PLATFORM = ("--python-platform", "x86_64-manylinux_2_36")
UNIVERSAL = ("--universal",)
AS_DEV = ("--constraint", str(HERE / "dev.txt"))
NOWHERE = "sys_platform == 'never'"
# tfx-bsl needs TensorFlow 2.21, and tensorflow-tpu ends at 2.20; so no constraint either.
LOCKS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    # name: extras, options of uv, overrides
    "dev": (("dev",), (*UNIVERSAL, "--upgrade"), ()),
    "trainer-cpu": (("cpu",), (*UNIVERSAL, *AS_DEV), ()),
    "trainer-gpu": (("gpu",), (*PLATFORM, *AS_DEV), ()),
    "trainer-tpu": (("tpu",), PLATFORM, ()),
    "castell-cpu": (("cpu", "pipelines"), (*PLATFORM, *AS_DEV), (f"tensorflow; {NOWHERE}",)),
    "castell-gpu": (("gpu", "pipelines"), (*PLATFORM, *AS_DEV), ()),
    "castell-tpu": (
        ("tpu", "pipelines"), PLATFORM, (f"tensorflow; {NOWHERE}", f"tfx-bsl; {NOWHERE}"),
    ),
}  # fmt: skip


def lock(name: str) -> None:
    """Writes requirements/<name>.txt: versions and hashes, and no address."""
    extras, options, overrides = LOCKS[name]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(overrides))
        file.flush()
        command = [
            sys.executable, "-m", "uv", "pip", "compile", str(HERE.parent / "pyproject.toml"),
            *(word for extra in extras for word in ("--extra", extra)),
            "--python-version", PYTHON, *options, "--override", file.name,
            "--generate-hashes", "--no-header", "--no-annotate", "--quiet",
            "--output-file", str(HERE / f"{name}.txt"),
        ]  # fmt: skip
        subprocess.run(command, check=True)


def lock_scanner() -> None:
    """Writes requirements/scan.txt: checkov, which `make lint` runs beside everything else."""
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "-", *UNIVERSAL, "--python-version", PYTHON,
        "--generate-hashes", "--no-header", "--no-annotate", "--upgrade", "--quiet",
        "--output-file", str(HERE / "scan.txt"),
    ]  # fmt: skip
    subprocess.run(command, check=True, input=b"checkov")


if __name__ == "__main__":
    for each in sys.argv[1:] or [*LOCKS, "scan"]:
        lock(each) if each in LOCKS else lock_scanner()
