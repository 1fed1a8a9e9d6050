"""What all workers must know before the next step: has anybody been told to stop, is a shard bad.

One tiny SUM all-reduce between calls. Whoever acts on its own news alone leaves the others waiting
in a collective that it will never join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf


def make_agree(
    strategy: tf.distribute.Strategy, workers: int
) -> Callable[[Sequence[int]], list[int]]:
    """Returns a function that all workers call together: own numbers in, their sums out.

    The numbers are counted once a worker, however many replicas it has. It is a barrier too.
    """
    if workers == 1:
        return lambda numbers: [int(n) for n in numbers]

    @tf.function
    def total(value: tf.Tensor) -> tf.Tensor:
        def reduce(mine: tf.Tensor) -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            # An argument stands on no device; a collective wants one.
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(mine))

        return strategy.experimental_local_results(strategy.run(reduce, args=(value,)))[0]

    local_replicas = strategy.num_replicas_in_sync // workers

    def agree(numbers: Sequence[int]) -> list[int]:
        sums = total(tf.constant(list(numbers), tf.int32)).numpy()
        return [int(n) // local_replicas for n in sums]

    return agree
