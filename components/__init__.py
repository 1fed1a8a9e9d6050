"""The steps of a pipeline, one folder each: the work, and a thin KFP face (`component.py`).

`steps` holds what the faces share, `image` the one image that all of them run in.
"""
