"""Rows → records → shard files. The bytes of a block belong to `trainer.data.blocks`.

`columns` makes of settled arrow columns what both layouts are encoded from; `records` knows the
layouts, `examples` the bytes of a row, `files` the shard on the disk.
"""
