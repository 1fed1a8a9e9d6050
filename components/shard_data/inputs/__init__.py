"""The sources: which files they mean, what identifies them, and their pieces, ready to be read.

No word here about what is inside a table: that is `formats`.
"""

from components.shard_data.formats import Piece
from components.shard_data.inputs.find import SourceFile, check_unchanged, find
from components.shard_data.inputs.fingerprint import fingerprint
from components.shard_data.inputs.prepare import prepare

__all__ = ["Piece", "SourceFile", "check_unchanged", "find", "fingerprint", "prepare"]
