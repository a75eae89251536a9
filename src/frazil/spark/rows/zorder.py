"""Z-values of the rows of a Spark frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from frazil.rows.z_order import SAMPLE_ROWS, ZValue
from frazil.spark.expressions.conditions import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def z_order(frame: DataFrame, columns: Sequence[str], *, rows: int) -> Column:
    """The Z-value of each row of a frame with about this many rows; samples it first."""
    picked = frame.select(*(F.col(quoted(name)) for name in columns))
    if rows > SAMPLE_ROWS:
        picked = picked.sample(fraction=SAMPLE_ROWS / rows, seed=7)
    z = ZValue.sampled(columns, picked.toArrow())
    values = F.struct(*(F.col(quoted(name)) for name in columns))
    return F.arrow_udf(z.of, "long")(values)
