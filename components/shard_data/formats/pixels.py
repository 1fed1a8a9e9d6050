"""One image file: is it whole, and does TensorFlow read it as a person sees it?

What `tf.io.decode_image` reads right is kept byte for byte. It knows neither EXIF nor CMYK, shows
what transparent pixels hide, takes the palette of a BMP for grey levels, and makes no grey image of
a GIF or BMP: such images are stored as PNG, grey or RGB, eight bits.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from typing import Any

import numpy as np

from trainer.errors import UsageError

# What the four formats begin with.
_BEGINNINGS = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
}
# Pillow's own limit: 256 MiB as RGB. A file of some kilobytes can claim any size.
_MOST_PIXELS = (1 << 30) // 12
_ORIENTATION = 0x0112
# Where Pillow keeps what may say how a camera was held.
_TURNS = ("exif", "Raw profile type exif", "xmp", "XML:com.adobe.xmp")
# Length and name of a chunk of PNG; the checksum of the name and what follows comes behind it.
_CHUNKS_OF_PNG = 8
_CHUNK = struct.Struct(">I4s")
_BITS_OF_PNG = 24
_DEEP = 16


class Damaged(Exception):
    """Why an image cannot be used."""


def kind_of(head: bytes) -> str | None:
    """Returns JPEG, PNG, GIF or BMP, by a file's first bytes; None for anything else."""
    return next((kind for magic, kind in _BEGINNINGS.items() if head.startswith(magic)), None)


def checked(data: bytes) -> tuple[bytes, str]:
    """Decodes a file wholly; returns it, or what is stored instead of it, and why (else empty).

    Raises:
      Damaged: it cannot be decoded, or is larger than a picture.
    """
    kind = kind_of(data)
    if kind is None:
        raise Damaged("not a JPEG, PNG, GIF or BMP image" if data else "an empty file")
    with warnings.catch_warnings():  # of damaged EXIF, of sizes
        warnings.simplefilter("ignore")
        image = _decoded(kind, data)
        try:
            changed, why = _normal(kind, image, data)
            return (_png(changed), why) if why else (data, "")
        except (OSError, ValueError, MemoryError) as error:
            raise Damaged(f"cannot be converted ({error})") from None


def require_pillow() -> None:
    """Raises UsageError if images cannot be read here."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise UsageError("images are read with Pillow: pip install 'castell[components]'") from None


def _decoded(kind: str, data: bytes) -> Any:
    from PIL import Image, UnidentifiedImageError

    try:
        if kind == "PNG":
            _check_chunks(data)
        image = Image.open(io.BytesIO(data), formats=[kind])
        if image.width * image.height <= _MOST_PIXELS:
            getattr(image, "is_animated", False)  # looks for further frames, now or never
            image.load()
            return image
    except UnidentifiedImageError:  # Its text holds an address.
        raise Damaged("cannot be decoded") from None
    except Exception as error:  # Pillow's readers raise anything at damaged files.
        raise Damaged(f"cannot be decoded ({' '.join(str(error).split())})") from None
    raise Damaged(f"{image.width} x {image.height} pixels, more than {_MOST_PIXELS:,}")


def _normal(kind: str, image: Any, data: bytes) -> tuple[Any, str]:
    """Returns a picture of mode L or RGB and why it replaces the file, or no reason to."""
    from PIL import ImageOps

    reasons = []
    if _orientation(image) > 1:
        image = ImageOps.exif_transpose(image)
        reasons.append("turned as their EXIF says")
    if kind == "JPEG" and image.mode not in ("L", "RGB"):
        reasons.append(f"converted from {image.mode}")
    if kind == "PNG" and data[_BITS_OF_PNG] == _DEEP:
        reasons.append("scaled from 16 bits to 8")
        if image.mode.startswith("I"):
            image = _eight_bits(image)
    if kind in ("GIF", "BMP"):
        is_film = getattr(image, "is_animated", False)
        reasons.append(f"converted from {kind}{', the first frame,' if is_film else ''}")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = _on_white(image)
        reasons.append("laid on white where they are transparent")
    return (_grey_or_rgb(image) if reasons else image), " and ".join(reasons)


def _check_chunks(data: bytes) -> None:
    """Raises ValueError unless the checksums of a PNG hold; Pillow looks at few of them."""
    at = _CHUNKS_OF_PNG
    name = b""
    while name != b"IEND":
        if len(data) < at + _CHUNK.size:
            raise ValueError("cut off")
        length, name = _CHUNK.unpack_from(data, at)
        end = at + _CHUNK.size + length
        if zlib.crc32(data[at + 4 : end]) != int.from_bytes(data[end : end + 4], "big"):
            raise ValueError("a checksum differs")
        at = end + 4


def _orientation(image: Any) -> int:
    if image.info.keys().isdisjoint(_TURNS):
        return 1
    try:
        value = image.getexif().get(_ORIENTATION, 1)
        return value if isinstance(value, int) and value in range(1, 9) else 1
    except Exception:  # Damaged EXIF says nothing; the picture may well be whole.
        return 1


def _eight_bits(image: Any) -> Any:
    from PIL import Image

    levels = np.asarray(image).astype(np.int64).clip(0, 0xFFFF)
    return Image.fromarray(((levels + 128) // 257).astype(np.uint8))


def _on_white(image: Any) -> Any:
    from PIL import Image

    is_grey = image.mode in ("L", "LA", "La", "1", "I")
    colours = image.convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    laid = Image.alpha_composite(white, colours).convert("RGB")
    return laid.convert("L") if is_grey else laid


def _grey_or_rgb(image: Any) -> Any:
    return image.convert("L" if image.mode in ("L", "1", "I", "F", "LA") else "RGB")


def _png(image: Any) -> bytes:
    image.info = {}
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
