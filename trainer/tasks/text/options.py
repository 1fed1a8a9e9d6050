"""The configuration keys of the text task."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from trainer.tasks.lists import MOST_COUNTED, WIDEST, Counts


class TextOptions(BaseModel):
    """Settings of the text task."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    text: str | None = Field(
        None, description="the column of text; default: the only one, as far as it can be told"
    )
    # Pieces know misspelt and compound words, and need no look at the data; words are faster.
    tokens: Literal["words", "subwords"] = Field(
        "words", description="words: those of the training split; subwords: pieces of 3 and 4 "
        "letters, hashed"
    )  # fmt: skip
    lowercase: bool = Field(True, description="Hello = hello")
    length: int = Field(128, gt=0, le=8192, description="words of a row that are read")
    vocabulary: int = Field(
        10_000, gt=0, le=1 << 22, description="words with an embedding of their own"
    )
    # Two rows at least, or it is a name or a typing error.
    least_count: int = Field(
        2, gt=0, le=MOST_COUNTED, description="rarer words share embeddings by their hash"
    )
    # The shards are shuffled: the first rows are a sample.
    vocabulary_rows: int = Field(
        100_000, gt=0, le=MOST_COUNTED, description="training rows that are read for the vocabulary"
    )
    buckets: int | None = Field(
        None,
        gt=0,
        le=1 << 24,
        description="embeddings shared by hash; default: 1,000, of subwords 20,000",
    )
    embedding_size: int = Field(64, gt=0, le=WIDEST, description="width of an embedding")
    encoder: Literal["mean", "conv", "gru"] = Field(
        "mean", description="mean: order does not count; conv: threes of words; gru: all in order"
    )
    hidden: Counts = Field((64,), description="widths of the layers after the encoder; () for none")
    dropout: float = Field(0.0, ge=0, lt=1, description="rate on embeddings and hidden layers")
