"""Trained runs of each kind of label, and data sets that differ from what they were trained on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.datasets import make_dataset
from tests.runs import flags, run_main
from tests.workers import processes
from trainer.data.blocks import decode_block, encode_block
from trainer.data.dataset import Dataset
from trainer.data.manifest import LabelKind
from trainer.data.records import frame, read_records

KINDS: tuple[LabelKind, ...] = ("binary", "multiclass", "regression")


@dataclass(frozen=True)
class Model:
    """A finished run and the data set that it was trained on."""

    run: Path
    data: Path

    @property
    def dataset(self) -> Dataset:
        return Dataset.open(str(self.data))


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    """One short run for each kind of label, side by side."""
    root = tmp_path_factory.mktemp("models")
    found = {}
    with processes() as start:
        for kind in KINDS:
            (root / kind).mkdir()
            dataset = make_dataset(root / kind, rows=3000, kind=kind, shards=4)
            model = Model(root / f"{kind}-run", root / kind)
            argv = flags(dataset, model.run, steps=100)
            found[kind] = model, start(run_main, argv, log=root / f"{kind}.log")
        for _, worker in found.values():
            worker.expect(0)
    return {kind: model for kind, (model, _) in found.items()}


def castell(argv: list[str]) -> int:
    """The command, to be run in a forked process."""
    from pipelines.cli import main

    return main(argv)


def renamed(source: Path, target: Path, names: dict[str, str]) -> Path:
    """Copies a data set under other column names."""
    shutil.copytree(source, target)

    def edit(manifest: Any) -> None:
        for feature in manifest["features"]:
            feature["name"] = names.get(feature["name"], feature["name"])

    change(target, edit)
    path = target / "statistics.json"
    statistics = json.loads(path.read_text())
    for split in statistics["splits"].values():
        split["features"] = {names.get(k, k): v for k, v in split["features"].items()}
    path.write_text(json.dumps(statistics))
    return target


def change(data: Path, edit: Callable[[Any], Any]) -> None:
    """Edits a manifest in place."""
    path = data / "manifest.json"
    manifest = json.loads(path.read_text())
    edit(manifest)
    path.write_text(json.dumps(manifest))


def recoded(source: Path, target: Path) -> Path:
    """Copies a data set with the same words under other dictionary codes."""
    shutil.copytree(source, target)
    dataset = Dataset.open(str(source))
    words = dataset.manifest.feature("color").dictionary
    assert words is not None
    order = np.roll(np.arange(len(words)), 1)
    new_code = np.append(np.argsort(order), -1).astype(np.int32)  # null stays -1
    for split in dataset.manifest.splits.values():
        for shard in split.shards:
            out = []
            with (source / shard.path).open("rb") as file:
                for payload in read_records(file):
                    block = decode_block(dataset.manifest.features, payload)
                    block.packs["code"] = new_code[block.packs["code"].astype(np.int64)]
                    out.append(frame(encode_block(dataset.manifest.features, block)))
            (target / shard.path).write_bytes(b"".join(out))

    def edit(manifest: Any) -> None:
        for feature in manifest["features"]:
            if feature["name"] == "color":
                feature["dictionary"] = [words[i] for i in order]

    change(target, edit)
    return target
