"""Looks at a run before it starts somewhere that this machine is not: what would not work on a TPU.

`tpu` examines a configuration; `inputs`, `lower` and `lint` each know one kind of mistake, `graph`
where in the user's code an op comes from, `report` how it is told.
"""
