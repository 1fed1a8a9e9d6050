"""`castell shard`: flags in, a dataset directory out. What a flag means is checked in `options`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainer.data.manifest import Manifest

HELP = "turn raw tables into a dataset directory that training reads"

_EPILOG = """\
Types are decided over the whole input. An empty field is missing; what else means missing is said
by --null-value. A column that mixes numbers and other words is an error that names the first such
cell and the flags to paste.

what declared types become (Parquet, Arrow, JSON, TFRecord):
  whole numbers of any width     int64; beyond it refused
  half, float, double            float32; whole ones, some beyond 2^24: int64
  bool                           int64, 0 or 1
  date                           int64, days since 1970
  timestamp, time, duration      int64, microseconds (timestamps: UTC)
  decimal                        int64 without places, else float32
  text, categories               string, whatever it looks like
  bytes                          string; such as image files
  struct                         a column a field, a.b
  list, fixed-size list          variable length, [n]
  maps, unions, lists of lists   refused: --drop COL leaves them out

examples:
  castell shard flights.csv.zip --output dataset --label late --null-value NA --drop arr_time
  castell shard photos/ --output dataset --label label --max-bad-rows 10
  castell shard gs://bucket/log/ --output dataset --label clicked --split-time day --memory 16GiB
  castell shard gs://bucket/log/ --output dataset --append
  castell shard --verify dataset
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags; values stay text until `ShardOptions` reads them."""
    parser.epilog = _EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("sources", nargs="*", metavar="SOURCE",
        help="CSV, TSV, JSON lines, Parquet, Arrow or TFRecord: a file, a glob or a directory "
             "(read recursively), also in .gz, .bz2, .zst, .xz and .zip; or a folder of images, a "
             "folder in it for each class; or bigquery://project.dataset.table")  # fmt: skip
    add("--output", metavar="DIR",
        help="dataset directory; appears whole at the end, is never written over")  # fmt: skip
    add("--append", action="store_true", default=argparse.SUPPRESS,
        help="add the files that the dataset does not have yet, as new shards; the rest is as it "
             "was made")  # fmt: skip
    add("--label", default=argparse.SUPPRESS, metavar="COL", help="the column to predict")
    _add_layout(parser.add_argument_group("splits and shards"))
    _add_meaning(parser.add_argument_group("what the values mean"))
    _add_text(parser.add_argument_group("how text files are written (nothing is guessed)"))
    _add_running(parser.add_argument_group("running"))


def _add_layout(group: Any) -> None:
    add = group.add_argument
    add("--split", default=argparse.SUPPRESS, metavar="NAME=FRACTION,…",
        help="splits and their share of rows [train=0.8,eval=0.1,test=0.1]")  # fmt: skip
    add("--split-by", action="append", default=argparse.SUPPRESS, metavar="COL",
        help="rows with equal values of COL (of all such columns) go to the same split; "
             "repeatable")  # fmt: skip
    add("--split-time", default=argparse.SUPPRESS, metavar="COL",
        help="by a date, timestamp or number: train before eval before test")  # fmt: skip
    add("--split-column", default=argparse.SUPPRESS, metavar="COL",
        help="COL names each row's split (train, …), and is left out")  # fmt: skip
    add("--shards", default=argparse.SUPPRESS, metavar="N",
        help="files a split [16 for train, fewer for smaller splits]")  # fmt: skip
    add("--shard-size", default=argparse.SUPPRESS, metavar="SIZE",
        help="of source a shard: above 16 shards where that asks for it [128MiB]")  # fmt: skip
    add("--layout", default=argparse.SUPPRESS, metavar="blocks|rows",
        help="blocks: fast, column-wise; rows: one tf.train.Example a row, for other readers "
             "[blocks]")  # fmt: skip
    add("--block-rows", default=argparse.SUPPRESS, metavar="N", help="rows a block [1024]")
    add("--compression", default=argparse.SUPPRESS, metavar="zlib|zstd",
        help="pack each shard; zlib: other readers know it, zstd: faster [no]")  # fmt: skip
    add("--seed", default=argparse.SUPPRESS, metavar="N",
        help="decides split and order of rows [0]")  # fmt: skip
    add("--order", default=argparse.SUPPRESS, metavar="listed|content",
        help="content: the same dataset however files are called and listed [listed]")  # fmt: skip


def _add_meaning(group: Any) -> None:
    add = group.add_argument
    add("--null-value", dest="null_values", action="append", default=argparse.SUPPRESS,
        metavar="[COL=]V",
        help="V means missing, everywhere or in COL (=V: the text V, even with = in it); "
             "repeatable")  # fmt: skip
    add("--type", dest="types", action="append", default=argparse.SUPPRESS, metavar="COL=TYPE",
        help="string, int64, float32, bool, date or timestamp, whatever the values look like; "
             "repeatable")  # fmt: skip
    add("--schema", dest="schema_file", default=argparse.SUPPRESS, metavar="FILE",
        help="take the types from the schema.pbtxt of another dataset")  # fmt: skip
    add("--drop", action="append", default=argparse.SUPPRESS, metavar="COL",
        help="leave a column out (it may still serve --split-by); repeatable")  # fmt: skip
    add("--label-kind", default=argparse.SUPPRESS, metavar="binary|multiclass|regression",
        help="what the label is [from its values]")  # fmt: skip
    add("--labels", default=argparse.SUPPRESS, metavar="FILE",
        help="a table with the columns file and label for the images of a folder [the class of an "
             "image is its folder's name]")  # fmt: skip
    add("--drop-missing-label", action="store_true", default=argparse.SUPPRESS,
        help="leave out rows without label instead of ending")  # fmt: skip
    add("--missing-columns", default=argparse.SUPPRESS, metavar="error|null",
        help="null: a column that some files lack is missing in their rows [error]")  # fmt: skip


def _add_text(group: Any) -> None:
    add = group.add_argument
    add("--delimiter", default=argparse.SUPPRESS, metavar="C",
        help="between fields; \\t is a tab [comma; tab in .tsv]")  # fmt: skip
    add("--decimal", default=argparse.SUPPRESS, metavar="C", help="decimal mark [.]")
    add("--thousands", default=argparse.SUPPRESS, metavar="C", help="mark between thousands")
    add("--comment", default=argparse.SUPPRESS, metavar="C",
        help="lines that begin with it are skipped")  # fmt: skip
    add("--encoding", default=argparse.SUPPRESS, metavar="NAME", help="of the text [utf-8]")
    add("--skip-rows", default=argparse.SUPPRESS, metavar="N",
        help="lines before the header [0]")  # fmt: skip
    add("--max-bad-rows", default=argparse.SUPPRESS, metavar="N",
        help="damaged rows (too many or too few fields, no JSON, no image) that may be left out "
             "[0]")  # fmt: skip


def _add_running(group: Any) -> None:
    add = group.add_argument
    add("--processes", default=argparse.SUPPRESS, metavar="N",
        help="processes at once; the bytes are the same for any N [one a core, for 64 MiB or "
             "more]")  # fmt: skip
    add("--engine", default=argparse.SUPPRESS, metavar="local|beam",
        help="beam: an Apache Beam pipeline a phase; its workers must reach the output's "
             "directory [local]")  # fmt: skip
    add("--beam-option", dest="beam_options", action="append", default=argparse.SUPPRESS,
        metavar="NAME=VALUE",
        help="of the pipeline, as in runner=FlinkRunner; repeatable")  # fmt: skip
    add("--memory", default=argparse.SUPPRESS, metavar="SIZE",
        help="what all processes together may use; the input may be larger [4GiB]")  # fmt: skip
    add("--verify", nargs="?", const="", default=argparse.SUPPRESS, metavar="DATASET",
        help="read everything back before the directory appears; with DATASET: check that one "
             "and make nothing")  # fmt: skip
    add("--json", action="store_true", default=False,
        help="print one JSON object on stdout about what was made")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Makes, extends or checks a dataset; progress goes to stderr. Returns the exit code."""
    given = _given(args)
    if not given.get("sources") and isinstance(given.get("verify"), str):
        return _verify(given["verify"], as_json=args.json)
    from components.shard_data.options import ShardOptions
    from components.shard_data.shard import shard
    from trainer.errors import UsageError

    if not given["sources"]:
        raise UsageError("SOURCE is required: files, globs or directories to read")
    if not given.get("output"):
        raise UsageError("--output DIR is required: where the dataset is to appear")
    options = ShardOptions.parse(given)
    manifest = shard(options, report=_say)
    if args.json:
        print(json.dumps(summary(options.output, manifest)))
    else:
        _say(f"{options.output} is ready: {manifest.rows:,} rows")
    return 0


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the flags that are options; a word after `--verify` may be meant as a source."""
    given = {name: value for name, value in vars(args).items() if name != "json"}
    named = given.pop("verify", None)
    if named and (given["sources"] or given["output"]):
        given["sources"] = [named, *given["sources"]]
        named = ""
    if named is not None:
        given["verify"] = named or True
    from components.shard_data.options import ShardOptions

    return {name: value for name, value in given.items() if name in ShardOptions.model_fields}


def _verify(dataset: str, *, as_json: bool) -> int:
    from pathlib import Path

    from components.shard_data.verify import verify
    from trainer.data.dataset import Dataset
    from trainer.data.manifest import Manifest
    from trainer.errors import CastellError, UsageError

    Dataset.open(dataset)
    manifest = Manifest.model_validate_json(Path(dataset, "manifest.json").read_text("utf-8"))
    try:
        verify(Path(dataset), manifest, _say)
    except CastellError as error:
        raise UsageError(f"{dataset}: {error}: copy it again, or shard the data again") from None
    if as_json:
        print(json.dumps(summary(dataset, manifest)))
    else:
        _say(f"{dataset} is whole: {manifest.rows:,} rows, all as they were written")
    return 0


def _say(line: str) -> None:
    print(f"shard: {line}", file=sys.stderr, flush=True)


def summary(output: str, manifest: Manifest) -> dict[str, Any]:
    """Returns what `--json` prints."""
    return {
        "output": output,
        "rows": {name: split.rows for name, split in manifest.splits.items()},
        "shards": {name: len(split.shards) for name, split in manifest.splits.items()},
        "columns": [feature.name for feature in manifest.features],
        "label": manifest.label.model_dump(mode="json"),
        "fingerprint": manifest.fingerprint,
        "dropped": list(manifest.dropped),
        "notes": list(manifest.notes),
    }
