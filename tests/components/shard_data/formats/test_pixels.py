"""Single images: what TensorFlow would read wrong is stored so that it cannot."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

from components.shard_data.formats import pixels
from tests.components.shard_data.formats.reads import picture, turned


def _shown(data: bytes) -> Any:
    with Image.open(io.BytesIO(data)) as image:
        return image.mode, np.asarray(image)


@pytest.mark.parametrize(
    "data",
    [
        picture(), picture("L"), picture("P"), picture("1"), picture("RGB", "JPEG"),
        picture("L", "JPEG"),
        picture("RGB", "JPEG", exif=turned(1)), picture("RGB", "JPEG", progressive=True),
    ],
)  # fmt: skip
def test_what_tensorflow_reads_right_is_kept_byte_for_byte(data: bytes) -> None:
    assert pixels.checked(data) == (data, "")


@pytest.mark.parametrize("orientation", range(2, 9))
def test_images_are_turned_as_their_camera_was_held(orientation: int) -> None:
    data, why = pixels.checked(picture("RGB", "JPEG", (9, 5), exif=turned(orientation)))
    assert "EXIF" in why
    mode, found = _shown(data)
    assert mode == "RGB"
    upright = _shown(picture("RGB", "JPEG", (9, 5)))[1]
    turn: dict[int, Callable[[Any], Any]] = {
        2: lambda a: a[:, ::-1], 3: lambda a: a[::-1, ::-1], 4: lambda a: a[::-1],
        5: lambda a: a.swapaxes(0, 1), 6: lambda a: np.rot90(a, -1),
        7: lambda a: np.rot90(a, 2).swapaxes(0, 1), 8: np.rot90,
    }  # fmt: skip
    np.testing.assert_array_equal(found, turn[orientation](upright))


def test_sixteen_bits_become_eight() -> None:
    levels = np.array([[0, 128, 129, 257, 65535, 65406]], np.uint16)
    buffer = io.BytesIO()
    Image.fromarray(levels).save(buffer, "PNG")
    mode, found = _shown(pixels.checked(buffer.getvalue())[0])
    assert mode == "L"
    assert found.tolist() == [[0, 0, 1, 1, 255, 254]]


@pytest.mark.parametrize(
    ("mode", "alpha", "laid"),
    [("RGBA", 0, (255, 255, 255)), ("RGBA", 255, (10, 20, 30)), ("LA", 0, 255), ("LA", 255, 10)],
)
def test_transparent_pixels_are_laid_on_white(mode: str, alpha: int, laid: Any) -> None:
    colour = (10, 20, 30, alpha) if mode == "RGBA" else (10, alpha)
    buffer = io.BytesIO()
    Image.new(mode, (2, 2), colour).save(buffer, "PNG")
    data, why = pixels.checked(buffer.getvalue())
    assert "transparent" in why
    with Image.open(io.BytesIO(data)) as image:
        assert image.mode == mode.removesuffix("A")
        assert image.getpixel((0, 0)) == laid


def _film() -> bytes:
    frames = [Image.new("RGB", (3, 3), colour) for colour in ("red", "blue")]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (picture("CMYK", "JPEG"), "converted from CMYK"),
        (picture("P", "BMP"), "converted from BMP"),
        (picture("RGB", "BMP"), "converted from BMP"),
        (picture("P", "GIF"), "converted from GIF"),
        (picture("P", transparency=0), "laid on white"),
        (picture("CMYK", "JPEG", exif=turned(3)), "EXIF says and converted from CMYK"),
        (_film(), "converted from GIF, the first frame,"),
    ],
)
def test_odd_images_become_png_and_it_is_said(data: bytes, why: str) -> None:
    stored, said = pixels.checked(data)
    assert why in said
    assert pixels.kind_of(stored) == "PNG"
    assert _shown(stored)[0] == "RGB"
