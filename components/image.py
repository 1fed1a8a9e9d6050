"""The container image that every step runs in. It holds the whole package: no step installs any.

`CASTELL_IMAGE`, or `castell compile --image`, names another one.
"""

from __future__ import annotations

from typing import Any

IMAGE = "castell:0.1.0"
IMAGE_VARIABLE = "CASTELL_IMAGE"


def with_image(component: Any, image: str) -> Any:
    """Returns the component with another image; the imported one stays as it is."""
    from kfp import dsl

    return dsl.component(component.python_func, base_image=image, install_kfp_package=False)
