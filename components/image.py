"""The container image that every step runs in. It holds the whole package: no step installs any.

`CASTELL_IMAGE`, or `castell compile --image`, names another one.
"""

IMAGE = "castell:0.1.0"
IMAGE_VARIABLE = "CASTELL_IMAGE"
