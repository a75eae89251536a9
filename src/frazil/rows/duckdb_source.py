"""The rows of a merge's source: read once, then used as often as needed.

A small source stays in memory as Arrow. A larger one is copied into a temporary DuckDB table, which
can spill to disk.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, IntegerType, LongType, UUIDType

from frazil.data.row_input import given
from frazil.errors import InvalidInput
from frazil.expr.quotes import quoted
from frazil.rows.actions import SOURCE_ROW
from frazil.rows.duckdb_scan import explained
from frazil.rows.duckdb_types import type_text
from frazil.rows.engine import KeyValues
from frazil.rows.unsliced import UnslicedRows, unsliced_stream

if TYPE_CHECKING:
    import duckdb

MOST_HELD: Final = 128 << 20
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

    @property
    def rows(self) -> str:
        """A query of the rows with their numbers."""
        number = "" if self.held is not None else f", rowid AS {SOURCE_ROW}"
        return f"SELECT *{number} FROM {self.name}"

    @contextmanager
    def in_table(self) -> Iterator[DuckDbSource]:
        """The same rows in a DuckDB table, as expressions need them: DuckDB pushes filters into
        Arrow, where NaN is not greater than every number."""
        if self.held is None:
            yield self
            return
        copied = replace(self, name=f"{self.name}_table", held=None)
        _copied(self.connection, copied.name, self.held.drop_columns([SOURCE_ROW]).to_reader())
        try:
            yield copied
        finally:
            copied.close()

    def batches(self, num_rows: int) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
        """The rows with their numbers, in batches of up to `num_rows`, and their schema."""
        if self.held is not None:
            return self.held.schema, self.held.to_batches(max_chunksize=num_rows)
        stream = self.connection.sql(self.rows).to_arrow_reader(num_rows)
        return stream.schema, stream

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
        """Forget the rows."""
        if self.held is not None:
            self.connection.unregister(self.name)
        else:
            self.connection.execute(f"DROP TABLE IF EXISTS {self.name}")


def stored(connection: duckdb.DuckDBPyConnection, rows: Any, schema: Schema) -> DuckDbSource:
    """Read the rows of a source."""
    stream = _readable(given(rows, schema), schema)
    if not stream.schema.names:
        raise InvalidInput("the source has no columns")
    folded: dict[str, str] = {}
    for name in stream.schema.names:
        if folded.setdefault(name.lower(), name) != name or stream.schema.names.count(name) > 1:
            raise InvalidInput(f"the source has the column {name} twice; rename one")
    name = f"__frazil_source_{uuid.uuid4().hex[:12]}"
    first = _first(stream)
    held = None
    if first.nbytes <= MOST_HELD:
        held, count = _numbered(first), first.num_rows
        connection.register(name, UnslicedRows(held))
    else:
        count = _copied(connection, name, _chained(first, stream))
    described = connection.sql(f"SELECT * FROM {name}")
    known = [at for at, column in enumerate(described.columns) if column != SOURCE_ROW]
    return DuckDbSource(
        connection=connection,
        name=name,
        columns=tuple(described.columns[at] for at in known),
        types=tuple(str(described.types[at]) for at in known),
        num_rows=count,
        held=held,
    )


def _first(stream: pa.RecordBatchReader) -> pa.Table:
    """All rows of a stream, or just enough of them to exceed what stays in memory."""
    batches: list[pa.RecordBatch] = []
    size = 0
    for batch in stream:
        batches.append(batch)
        size += batch.nbytes
        if size > MOST_HELD:
            break
    return pa.Table.from_batches(batches, stream.schema)


def _chained(first: pa.Table, rest: pa.RecordBatchReader) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(first.schema, chain(first.to_batches(), rest))


def _numbered(rows: pa.Table) -> pa.Table:
    numbers = pa.array(np.arange(rows.num_rows, dtype=np.int64))
    return rows.append_column(SOURCE_ROW, numbers)


def _copied(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.RecordBatchReader) -> int:
    """Copy rows into a temporary table; returns how many."""
    passing = f"{name}_stream"
    connection.register(passing, unsliced_stream(rows))
    try:
        with explained("source"):
            made = connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {passing}")
            ((count,),) = made.fetchall()
            return int(count)
    finally:
        connection.unregister(passing)


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
