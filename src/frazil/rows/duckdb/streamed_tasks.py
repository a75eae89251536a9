"""Rows that Frazil's own reader gives to an engine, as an Arrow dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from frazil import arrow_compute as pc
from frazil.iceberg.schema import Schema
from frazil.rows.actions import KEY
from frazil.rows.duckdb.task_stream import TaskStream
from frazil.value_classes import replace


class StreamedTasks(ds.Dataset):  # type: ignore[misc]
    """A stream of tasks' rows. DuckDB asks a dataset for the columns that a query needs; of other
    objects it takes all. Every scan makes a new stream, so that a query may use the rows more than
    once."""

    def __init__(self, whole: TaskStream) -> None:
        self._whole = whole

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._whole.schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **_: Any
    ) -> TaskStream:
        """The rows with some columns; filters may come for the numbers of the rows alone, as
        others are over expressions."""
        whole = self._whole
        asked = set(self.schema.names if columns is None else columns)
        if filter is not None:
            asked |= {name for name in self.schema.names if name in str(filter)}
        fields = [column for column in whole.columns.fields if column.name in asked]
        return replace(whole, columns=Schema(*fields), has_key=KEY in asked, condition=filter)
