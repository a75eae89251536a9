"""Rows to merge, held in a temporary DuckDB table: read once, used as often as needed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, IntegerType, LongType, UUIDType

from frazil.data.row_input import inferred, record_batches
from frazil.errors import InvalidInput
from frazil.expr.quotes import quoted
from frazil.rows.duckdb_scan import explained
from frazil.rows.duckdb_types import type_text
from frazil.rows.engine import KeyValues
from frazil.rows.unsliced import unsliced_stream

if TYPE_CHECKING:
    import duckdb

_INTEGERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


@dataclass(frozen=True, kw_only=True)
class DuckDbSource:
    """A temporary table of rows to merge."""

    connection: duckdb.DuckDBPyConnection
    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    num_rows: int
    _distinct: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """How many values columns have, where they were counted."""

    def named(self, name: str) -> str | None:
        """The source's spelling of a column, if it has it."""
        return next((known for known in self.columns if known.lower() == name.lower()), None)

    def keys(
        self, names: Sequence[str], kinds: Sequence[IcebergType], *, limit: int
    ) -> list[KeyValues | None]:
        """The values of columns, or their ends; None where they are of another kind of type."""
        return [
            self._values(name, kind, limit) if self._is_alike(name, kind) else None
            for name, kind in zip(names, kinds, strict=True)
        ]

    def _is_alike(self, name: str, kind: IcebergType) -> bool:
        found = self.types[self.columns.index(name)]
        if isinstance(kind, IntegerType | LongType):
            return found in _INTEGERS
        return found == type_text(kind)

    def _values(self, name: str, kind: IcebergType, limit: int) -> KeyValues | None:
        column = f"CAST({quoted(name)} AS {type_text(kind)})"
        known = self._distinct.get(name)
        count = f"approx_count_distinct({column})" if known is None else str(known)
        ends = self.connection.sql(
            f"SELECT {count} AS n, min({column}) AS low, max({column}) AS high FROM {self.name}"
        ).to_arrow_table()
        if not ends["low"][0].is_valid:
            return KeyValues(values=pa.array([], ends["low"].type), is_all=True)
        if ends["n"][0].as_py() <= 2 * limit:
            found = self.connection.sql(
                f"SELECT DISTINCT {column} AS v FROM {self.name} WHERE {column} IS NOT NULL "
                f"LIMIT {limit + 1}"
            ).to_arrow_table()["v"]
            if len(found) <= limit:
                return KeyValues(values=found.combine_chunks(), is_all=True)
        both = pa.concat_arrays([ends["low"].combine_chunks(), ends["high"].combine_chunks()])
        return KeyValues(values=both, is_all=False)

    def duplicates(self, names: Sequence[str]) -> int:
        """How many rows have the key of another."""
        found = self._different(names)
        if len(names) == 1:
            self._distinct[names[0]] = found
        return self.num_rows - found

    def _different(self, names: Sequence[str]) -> int:
        chosen = ", ".join(map(quoted, names))
        if len(names) == 1 and self.types[self.columns.index(names[0])] in _INTEGERS:
            # Sorting whole numbers takes a tenth of the time of hashing them.
            query = f"SELECT {chosen} AS v FROM {self.name} WHERE v IS NOT NULL"
            values = np.sort(self.connection.sql(query).fetchnumpy()["v"])
            has_null = len(values) < self.num_rows
            return int(np.count_nonzero(np.diff(values))) + bool(len(values)) + has_null
        ((found,),) = self.connection.sql(
            f"SELECT count(*) FROM (SELECT DISTINCT {chosen} FROM {self.name})"
        ).fetchall()
        return int(found)

    def nulls(self, name: str) -> int:
        """How many rows have no value in a column."""
        query = f"SELECT count(*) FROM {self.name} WHERE {quoted(name)} IS NULL"
        return int(self.connection.sql(query).fetchall()[0][0])

    def close(self) -> None:
        """Drop the rows."""
        self.connection.execute(f"DROP TABLE IF EXISTS {self.name}")


def stored(connection: duckdb.DuckDBPyConnection, rows: Any, schema: Schema) -> DuckDbSource:
    """Copy rows into a temporary table."""
    stream = _readable(given(rows, schema), schema)
    if not stream.schema.names:
        raise InvalidInput("the source has no columns")
    folded: dict[str, str] = {}
    for name in stream.schema.names:
        if folded.setdefault(name.lower(), name) != name or stream.schema.names.count(name) > 1:
            raise InvalidInput(f"the source has the column {name} twice; rename one")
    name, passing = (f"__frazil_{part}_{uuid.uuid4().hex[:12]}" for part in ("source", "stream"))
    connection.register(passing, unsliced_stream(stream))
    try:
        with explained("source"):
            made = connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {passing}")
            ((count,),) = made.fetchall()
    finally:
        connection.unregister(passing)
    described = connection.sql(f"SELECT * FROM {name}")
    return DuckDbSource(
        connection=connection,
        name=name,
        columns=tuple(described.columns),
        types=tuple(str(kind) for kind in described.types),
        num_rows=int(count),
    )


def given(rows: Any, schema: Schema) -> pa.RecordBatchReader:
    """The rows with the columns that they have; Python rows get the table's types."""
    if isinstance(rows, Mapping):
        names = list(rows)
    elif isinstance(rows, list | tuple) and rows and isinstance(rows[0], Mapping):
        names = list(rows[0])
        for at, row in enumerate(rows):
            if set(row) != set(names):
                raise InvalidInput(
                    f"row {at} has the columns {', '.join(map(str, row))}; the first row has "
                    f"{', '.join(map(str, names))}. Give every row the same columns"
                )
    else:
        return record_batches(rows, schema)
    fields = {field.name: field for field in schema.fields}
    unknown = [str(name) for name in names if name not in fields]
    if unknown:
        return record_batches(inferred(rows), schema)
    return record_batches(rows, Schema(*(fields[name] for name in names)))


def _readable(stream: pa.RecordBatchReader, schema: Schema) -> pa.RecordBatchReader:
    """Columns as DuckDB keeps their values: UUIDs as such, no zoned nanoseconds."""
    known = {field.name: field.field_type for field in schema.fields}
    fields = []
    for column in stream.schema:
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns" and column.type.tz:
            column = column.with_type(pa.timestamp("us", column.type.tz))
        if isinstance(known.get(column.name), UUIDType) and column.type == pa.binary(16):
            column = column.with_type(pa.uuid())
        fields.append(column)
    wanted = pa.schema(fields)
    if wanted == stream.schema:
        return stream
    try:
        return stream.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInput(f"the source has values that DuckDB cannot hold: {error}") from error
