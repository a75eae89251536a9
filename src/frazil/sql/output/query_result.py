"""The result of a statement: Arrow data, read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil import arrow_values
from frazil.data.arrow_rows import ArrowRows
from frazil.sql.output.display import html_table, text_table

if TYPE_CHECKING:
    import duckdb

_SHOWN_ROWS = 20


class Result(ArrowRows):
    """The rows of a statement. A query runs when its rows are first needed. It is pinned to the
    snapshots that were current when it was created, so running it again gives the same rows.

    Any library that understands Arrow's C stream accepts a result directly.
    """

    def __init__(
        self,
        schema: pa.Schema | Callable[[], pa.Schema],
        run: Callable[[], pa.RecordBatchReader],
        *,
        relation: Callable[[], duckdb.DuckDBPyRelation] | None = None,
        cancel: Callable[[], None] | None = None,
        keep: object = None,
    ) -> None:
        self._schema = schema
        self._run = run
        self._relation = relation
        self._cancel = cancel
        self._keep = keep
        self._read: list[pa.RecordBatch] = []
        self._open: pa.RecordBatchReader | None = None
        self._whole: pa.Table | None = None

    @staticmethod
    def of(rows: pa.Table) -> Result:
        """A result that is there already."""
        result = Result(rows.schema, rows.to_reader)
        result._whole = rows
        return result

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        if callable(self._schema):
            self._schema = self._schema()
        return self._schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        if self._whole is None:
            self._pull(None)
            self._whole = pa.Table.from_batches(self._read, schema=self.schema)
            self._read = []
        return self._whole

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream, in bounded memory."""
        if self._whole is not None:
            return self._whole.to_reader()
        read, opened = self._read, self._open or self._run()
        self._read, self._open, self._schema = [], None, opened.schema

        def batches() -> Iterator[pa.RecordBatch]:
            yield from read
            yield from opened

        return pa.RecordBatchReader.from_batches(self.schema, batches())

    def to_duckdb(self) -> duckdb.DuckDBPyRelation:
        """The rows as a DuckDB relation; lazy if the result is a query."""
        if self._relation is not None and self._whole is None:
            self._read, self._open = [], None
            return self._relation()
        import duckdb

        return duckdb.connect().from_arrow(self.to_arrow())

    def cancel(self) -> None:
        """Stop the query, from any thread; reading its rows then fails. Rows that were read stay,
        and a query that has ended is not affected."""
        if self._cancel is not None and self._whole is None:
            self._cancel()

    def head(self, rows: int) -> pa.Table:
        """The first rows, reading no more than needed."""
        if self._whole is not None:
            return self._whole.slice(0, rows)
        self._pull(rows)
        return pa.Table.from_batches(self._read, schema=self.schema).slice(0, rows)

    def __repr__(self) -> str:
        return text_table(self.head(_SHOWN_ROWS + 1), limit=_SHOWN_ROWS)

    def _repr_html_(self) -> str:
        return html_table(self.head(_SHOWN_ROWS + 1), limit=_SHOWN_ROWS)

    def _pull(self, rows: int | None) -> None:
        """Read on until this many rows are there, or to the end for None."""
        if self._open is None and not self._read:
            self._open = self._run()
            self._schema = self._open.schema
        held = sum(batch.num_rows for batch in self._read)
        while self._open is not None and (rows is None or held < rows):
            try:
                batch = self._open.read_next_batch()
            except StopIteration:
                self._open = None
                break
            self._read.append(batch)
            held += batch.num_rows
        if self._open is None and self._whole is None:
            self._whole = pa.Table.from_batches(self._read, schema=self.schema)


def one_row(**values: Any) -> Result:
    """The result of a statement that gives no rows: what it did, as one row."""
    return Result.of(pa.table({key: arrow_values.array([value]) for key, value in values.items()}))
