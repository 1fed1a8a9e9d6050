"""The configuration keys of the tabular task."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from trainer.tasks.lists import MOST_COUNTED, WIDEST, Counts, Names, NamesOrAll

# Statistics tell no more values of a column apart.
_MOST_INTEGERS = 100_000


class TabularOptions(BaseModel):
    """Settings of the tabular task."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    hidden: Counts = Field((256, 128), description="widths of the hidden layers")
    dropout: float = Field(0.0, ge=0, lt=1, description="rate after each hidden layer")
    embedding_size: int = Field(
        16, gt=0, le=WIDEST, description="largest width of a category's embedding"
    )
    most_categories: int = Field(
        10_000, gt=0, le=MOST_COUNTED, description="words kept a column, the most frequent ones"
    )
    # A word that a handful of rows have (a name, a number plate) is memorised, not learned.
    least_count: int = Field(
        5, gt=0, le=MOST_COUNTED, description="rarer words share one embedding"
    )
    # A month or an hour orders days but is not a quantity: few whole numbers get an embedding too.
    categorical_integers: int = Field(
        64,
        ge=0,
        le=_MOST_INTEGERS,
        description="whole-number columns of at most so many values are also embedded",
    )
    columns: NamesOrAll = Field(None, description="input columns to use; default: all")
    ignore: Names = Field((), description="input columns to leave out")
