"""Columns that functions of Arrow batches give."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import pyarrow as pa

from frazil import arrow_values
from frazil.argument_checks import short_repr
from frazil.data.metadata_columns import POS
from frazil.errors import InvalidInput
from frazil.iceberg.schema import Schema
from frazil.rows.actions import KEY
from frazil.rows.columns.column_sink import ColumnSink, FileToUpdate
from frazil.scan.tasks import TaskReader
from frazil.text_format import first_line
from frazil.value_classes import dataclass, replace

Function = Callable[[pa.RecordBatch], Any]
"""Values of a new column from a batch of rows: an Arrow array, or a sequence."""


@dataclass(frozen=True, slots=True)
class Called:
    """Functions of batches of rows, with the columns that they are given. It travels with them."""

    functions: Mapping[str, Function]
    schema: Schema

    def rows(self, files: Iterable[FileToUpdate], sink: ColumnSink) -> Generator[pa.RecordBatch]:
        """The values for the rows of files, and the number of each row."""
        schema = Schema(*self.schema.fields, replace(POS, name=KEY))
        reader = TaskReader(replace(sink.reading, schema=schema))
        for file in files:
            for batch in reader.read(file.task):
                rows = batch.drop_columns([KEY])
                values = {name: called(name, f, rows) for name, f in self.functions.items()}
                keys = arrow_values.to_numpy(batch.column(KEY)) + file.base
                yield pa.RecordBatch.from_pydict({**values, KEY: arrow_values.array(keys)})


def called(name: str, function: Function, rows: pa.RecordBatch) -> pa.Array:
    """What a function gives for a batch; refused unless it is a value for each row."""
    values = function(rows)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not isinstance(values, pa.Array):
        try:
            values = pa.array(values)
        except (pa.ArrowException, TypeError) as error:
            raise InvalidInput(
                f"the function for {name} gave {short_repr(values)}; expected an Arrow array or a "
                f"sequence of a value for each row ({first_line(error)})"
            ) from error
    if len(values) != rows.num_rows:
        raise InvalidInput(
            f"the function for {name} gave {len(values)} values for {rows.num_rows} rows"
        )
    return values


__all__ = ["Called", "Function", "called"]
