"""Which processes train together, how they find out, and what each of them then does.

    resolve      the environment and the flags      → a ClusterSpec (spec), or a one-line error
    strategy     a ClusterSpec and the devices      → a tf.distribute strategy, and why that one
    preflight    all workers meet over plain TCP before TensorFlow's server starts, since that
                 waits for ever for a peer that never comes (rendezvous: the chief's side)
    lifeline     a watch beside each worker knows at once when another one is lost
    local        N workers of one machine, forked from one process that has imported TensorFlow,
                 and started again when one is lost
    doctor       says all of that without training

Nothing here knows what is trained.
"""
