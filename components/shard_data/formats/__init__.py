"""The formats that are read, one module each: how a file is cut into pieces, and a piece is read.

What the values mean is decided later, over all of them; a piece gives the same cells wherever the
file is cut.
"""

from components.shard_data.formats.piece import Columns, Format, Piece, Read, Rejected
from components.shard_data.formats.reading import cut, place, read, refusal

__all__ = ["Columns", "Format", "Piece", "Read", "Rejected", "cut", "place", "read", "refusal"]
