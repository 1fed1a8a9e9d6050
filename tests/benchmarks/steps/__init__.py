"""Steps a second, ours against others: the cases, one module a side, and the race between them.

Every side trains the same model on the same rows, with the same optimizer, schedule and figures
(mean loss, global gradient norm), in processes of its own; `race` lets them take turns.
"""
