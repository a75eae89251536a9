"""The rows of a merge's source: read once, then used as often as needed.

A small source stays in memory as Arrow. A larger one is copied into a temporary DuckDB table, which
can spill to disk.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from frazil import arrow_values
from frazil.data.conform import batch_bytes
from frazil.data.write.row_input import row_reader
from frazil.errors import InvalidInput
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_values import type_text
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import IcebergType, IntegerType, LongType, UUIDType
from frazil.rows.actions import SOURCE_ROW
from frazil.rows.duckdb.duckdb_connection import forget
from frazil.rows.duckdb.duckdb_failures import explained
from frazil.rows.engine import KeyValues
from frazil.value_classes import dataclass, field, replace

if TYPE_CHECKING:
    import duckdb


def is_misread(schema: pa.Schema) -> bool:
    """Whether a slice of such rows would be read wrongly."""
    return any(map(_has_deep_struct, schema.types))


def unsliced(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, copied where DuckDB would read others."""
    if not is_misread(batch.schema):
        return batch
    every = arrow_values.array(np.arange(batch.num_rows))
    columns = [
        column.take(every) if _has_deep_struct(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def unsliced_stream(stream: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same stream, of batches that DuckDB reads right."""
    if not is_misread(stream.schema):
        return stream
    return pa.RecordBatchReader.from_batches(stream.schema, map(unsliced, stream))


class UnslicedRows:
    """Anything that gives an Arrow stream, for DuckDB. Every read makes a new stream."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A new stream of the rows."""
        stream = unsliced_stream(pa.RecordBatchReader.from_stream(self._rows))
        return stream.__arrow_c_stream__(requested_schema)


def _has_deep_struct(kind: pa.DataType, *, inside: bool = False) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return False
    if pa.types.is_struct(kind):
        return inside or any(_has_deep_struct(field.type, inside=True) for field in kind)
    return any(
        _has_deep_struct(kind.field(at).type, inside=inside) for at in range(kind.num_fields)
    )


MAX_HELD: Final = 128 << 20
"""Maximum size in bytes of a source that stays in memory."""
_INTEGERS: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")


@dataclass(frozen=True, kw_only=True)
class DuckDbSource:
    """Rows to merge, registered on a connection under a name."""

    connection: duckdb.DuckDBPyConnection
    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    num_rows: int
    held: pa.Table | None = None
    """The rows with their numbers, if they are in memory."""
    _distinct: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """How many values columns have, where they were counted."""

    @contextmanager
    def in_table(self) -> Iterator[DuckDbSource]:
        """The same rows in a DuckDB table, as expressions need them: DuckDB pushes filters into
        Arrow, where NaN is not greater than every number."""
        if self.held is None:
            yield self
            return
        copied = replace(self, name=f"{self.name}_table", held=None)
        _copied(self.connection, copied.name, self.held.to_reader())
        try:
            yield copied
        finally:
            copied.close()

    def batches(self, num_rows: int) -> pa.RecordBatchReader:
        """The rows with their numbers, in batches of up to `num_rows`."""
        if self.held is not None:
            return self.held.to_reader(max_chunksize=num_rows)
        return self.connection.sql(f"SELECT * FROM {self.name}").to_arrow_reader(num_rows)

    def named(self, name: str) -> str | None:
        """The source's spelling of a column, if it has it."""
        return next((known for known in self.columns if known.lower() == name.lower()), None)

    def keys(
        self, names: Sequence[str], kinds: Sequence[IcebergType], *, limit: int
    ) -> list[KeyValues | None]:
        """The values of columns, or their ends; None where they are of another kind of type."""
        return [
            self._values(name, kind, limit) if self.is_alike(name, kind) else None
            for name, kind in zip(names, kinds, strict=True)
        ]

    def is_alike(self, name: str, kind: IcebergType) -> bool:
        """Whether a column compares as one of this type does."""
        duckdb_type = self.types[self.columns.index(name)]
        if isinstance(kind, IntegerType | LongType):
            return duckdb_type in _INTEGERS
        return duckdb_type == type_text(kind)

    def _values(self, name: str, kind: IcebergType, limit: int) -> KeyValues | None:
        column = f"CAST({quoted(name)} AS {type_text(kind)})"
        known = self._distinct.get(name)
        count = f"approx_count_distinct({column})" if known is None else str(known)
        ends = self.connection.sql(
            f"SELECT {count} AS n, min({column}) AS low, max({column}) AS high FROM {self.name}"
        ).to_arrow_table()
        if not ends["low"][0].is_valid:
            return KeyValues(values=arrow_values.array([], ends["low"].type), is_all=True)
        if ends["n"][0].as_py() <= 2 * limit:
            values = self.connection.sql(
                f"SELECT DISTINCT {column} AS v FROM {self.name} WHERE {column} IS NOT NULL "
                f"LIMIT {limit + 1}"
            ).to_arrow_table()["v"]
            if len(values) <= limit:
                return KeyValues(values=values.combine_chunks(), is_all=True)
        both = pa.concat_arrays([ends["low"].combine_chunks(), ends["high"].combine_chunks()])
        return KeyValues(values=both, is_all=False)

    def duplicates(self, names: Sequence[str]) -> int:
        """How many rows have the key of another."""
        distinct = self._different(names)
        if len(names) == 1:
            self._distinct[names[0]] = distinct
        return self.num_rows - distinct

    def _different(self, names: Sequence[str]) -> int:
        chosen = ", ".join(map(quoted, names))
        if len(names) == 1 and self.types[self.columns.index(names[0])] in _INTEGERS:
            # Sorting whole numbers takes a tenth of the time of hashing them.
            query = f"SELECT {chosen} AS v FROM {self.name} WHERE {chosen} IS NOT NULL"
            values = np.sort(self.connection.sql(query).fetchnumpy()["v"])
            has_null = len(values) < self.num_rows
            return int(np.count_nonzero(np.diff(values))) + bool(len(values)) + has_null
        ((distinct,),) = self.connection.sql(
            f"SELECT count(*) FROM (SELECT DISTINCT {chosen} FROM {self.name})"
        ).fetchall()
        return int(distinct)

    def nulls(self, name: str) -> int:
        """How many rows have no value in a column."""
        query = f"SELECT count(*) FROM {self.name} WHERE {quoted(name)} IS NULL"
        return int(self.connection.sql(query).fetchall()[0][0])

    def close(self) -> None:
        """Forget the rows."""
        if self.held is not None:
            forget(self.connection, [self.name])
        else:
            drop_table(self.connection, self.name)


def stored(connection: duckdb.DuckDBPyConnection, rows: Any, schema: Schema) -> DuckDbSource:
    """Read the rows of a source and number them."""
    stream = _readable(row_reader(rows, schema), schema)
    if not stream.schema.names:
        raise InvalidInput("the source has no columns")
    folded: dict[str, str] = {}
    for name in stream.schema.names:
        if folded.setdefault(name.lower(), name) != name or stream.schema.names.count(name) > 1:
            raise InvalidInput(f"the source has the column {name} twice; rename one")
    name = f"__frazil_source_{uuid.uuid4().hex[:12]}"
    numbered = _Numbered()
    arriving = numbered.stream(stream)
    first, is_all = _first(arriving)
    if is_all:
        connection.register(name, UnslicedRows(first))
    else:
        batches = chain(first.to_batches(), arriving)
        whole = pa.RecordBatchReader.from_batches(first.schema, batches)
        _copied(connection, name, whole)
    described = connection.sql(f"SELECT * EXCLUDE ({SOURCE_ROW}) FROM {name}")
    return DuckDbSource(
        connection=connection,
        name=name,
        columns=tuple(described.columns),
        types=tuple(str(kind) for kind in described.types),
        num_rows=numbered.num_rows,
        held=first if is_all else None,
    )


class _Numbered:
    """Counts the rows of a stream, and gives each its number."""

    def __init__(self) -> None:
        self.num_rows = 0

    def stream(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        schema = rows.schema.append(pa.field(SOURCE_ROW, pa.int64()))
        return pa.RecordBatchReader.from_batches(schema, self._batches(rows))

    def _batches(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            end = self.num_rows + batch.num_rows
            numbers = arrow_values.array(np.arange(self.num_rows, end, dtype=np.int64))
            self.num_rows = end
            yield batch.append_column(SOURCE_ROW, numbers)


def _first(stream: pa.RecordBatchReader) -> tuple[pa.Table, bool]:
    """All rows of a stream, or just enough of them to exceed what stays in memory."""
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in stream:
        batches.append(batch)
        size += batch_bytes(batch)
        if size > MAX_HELD:
            return pa.Table.from_batches(batches, stream.schema), False
    return pa.Table.from_batches(batches, stream.schema), True


def _copied(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.RecordBatchReader) -> None:
    """Copy rows into a temporary table."""
    passing = f"{name}_stream"
    connection.register(passing, unsliced_stream(rows))
    try:
        with explained("source"):
            connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {passing}")
    finally:
        forget(connection, [passing])


def drop_table(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Drop a temporary table."""
    import duckdb

    connection.abort()
    with suppress(duckdb.Error):  # a transaction of the connection's owner may be aborted
        connection.execute(f"DROP TABLE IF EXISTS {name}")


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
    target = pa.schema(fields)
    if target == stream.schema:
        return stream
    return pa.RecordBatchReader.from_batches(target, _cast(stream, target))


def _cast(stream: pa.RecordBatchReader, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in stream:
        try:
            yield from pa.Table.from_batches([batch]).cast(target).to_batches()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidInput(f"the source has values that DuckDB cannot hold: {error}") from error
