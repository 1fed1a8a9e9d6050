"""`castell peek`: which rows a training step sees, read the way R replicas would read them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from trainer.errors import UsageError

HELP = "print the rows that training steps see"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    parser.description = (
        "Prints the row numbers (places in the source) of training steps, lane by lane, lanes "
        "parted by a bar; replica r of R reads lanes r, r + R, .... The rows "
        "depend on the data set, the seed and the global batch, never on the number of replicas."
    )
    parser.add_argument("--data", required=True, help="dataset directory")
    parser.add_argument("--split", default="train", help="split to read [train]")
    parser.add_argument("--global-batch", type=int, required=True, help="rows a step, all replicas")
    parser.add_argument("--replicas", type=int, default=1, help="replicas that share the rows [1]")
    parser.add_argument("--step", type=int, default=0, help="first step, from 0 [0]")
    parser.add_argument("--steps", type=int, default=1, help="how many steps [1]")
    parser.add_argument("--seed", type=int, default=0, help="the run's seed [0]")
    parser.add_argument("--lanes", type=int, help="the run's lanes, if it set them")
    parser.add_argument("--window-rows", type=int, default=8192, help="the run's window [8192]")
    parser.add_argument("--json", action="store_true", help="one JSON object a step")


def run(args: argparse.Namespace) -> int:
    """Prints one line a step."""
    for step, lanes in peek(args):
        if args.json:
            print(json.dumps({"step": step, "rows": [row for lane in lanes for row in lane]}))
        else:
            print(f"step {step}: {' | '.join(' '.join(map(str, lane)) for lane in lanes)}")
    return 0


def peek(args: argparse.Namespace) -> Iterator[tuple[int, list[list[int]]]]:
    """Yields (step, row ids of each lane) for each step asked for."""
    from trainer.data.dataset import Dataset
    from trainer.data.feed import lanes_of, super_batches
    from trainer.data.lanes import plan
    from trainer.data.rows import DamagedShard

    smallest = {"global_batch": 1, "replicas": 1, "step": 0, "steps": 1, "window_rows": 1}
    for name, least in smallest.items():
        if getattr(args, name) < least:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} ({getattr(args, name)}): must be at least {least}")
    dataset = Dataset.open(args.data)
    dataset.check_sizes(args.split)
    lanes = plan(
        [shard.rows for shard in dataset.split(args.split).shards],
        global_batch=args.global_batch,
        replicas=args.replicas,
        seed=args.seed,
        window_rows=args.window_rows,
        lanes=args.lanes,
    )
    feeds = {
        tuple(which): super_batches(dataset, args.split, lanes, which, step=args.step, steps=1)
        for which in (lanes_of(r, args.replicas, lanes) for r in range(args.replicas))
    }
    try:
        for step in range(args.step, args.step + args.steps):
            by_lane: dict[int, list[int]] = {}
            for which, feed in feeds.items():
                per_lane = next(feed).row_id.reshape(len(which), lanes.rows_per_step)
                by_lane.update(zip(which, per_lane.tolist(), strict=True))
            yield step, [by_lane[lane] for lane in sorted(by_lane)]
    except DamagedShard as error:
        raise UsageError(str(error)) from None
