"""A query that DuckDB has bound: its rows as Arrow, or as a relation for those who want one.

DuckDB's relations are a Python layer above its compiled module, which takes as long to import as
DuckDB itself and binds every query once more. What the layer does to read a relation is done here
with the methods that it calls. They are private: versions of DuckDB that they were not tried with
are read through relations.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from frazil.data.write.row_input import with_plain_booleans
from frazil.rows.duckdb.duckdb_streams import casts, in_arrow_types
from frazil.sql.engine.sql_engine import SqlEngine

if TYPE_CHECKING:
    import duckdb


_TRIED_VERSION: Final = "2.0."


@cache
def are_methods_tried() -> bool:
    """Whether the compiled module is of the version that its private methods were tried with."""
    import _duckdb

    return _duckdb.__version__.startswith(_TRIED_VERSION)


class PreparedQuery:
    """A query in types that Arrow has. It stays valid as long as its engine."""

    __slots__ = ("_engine", "_is_plain", "_relation", "_statement")

    def __init__(self, engine: SqlEngine, statement: duckdb.Statement) -> None:
        """Bind it; DuckDB's errors are raised as they are."""
        self._engine = engine
        self._statement = statement
        self._relation: duckdb.DuckDBPyRelation | None = None
        self._is_plain = False
        if not are_methods_tried():
            self.relation()
            return
        names, types, _, kind, is_deferred, writes = engine.compiled._bind(
            statement, with_writes=True, values=None
        )
        self._is_plain = (
            kind == "query_result"
            and not is_deferred
            and not writes
            and casts(names, types) is None
        )

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The query as a relation."""
        if self._relation is None:
            self._relation = in_arrow_types(self._engine.connection.sql(self._statement))
        return self._relation

    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return with_plain_booleans(self.relation().limit(0).to_arrow_table().to_reader()).schema

    def to_arrow_reader(self, batch_rows: int) -> pa.RecordBatchReader:
        """Run it."""
        if not self._is_plain:
            return self.relation().to_arrow_reader(batch_rows)
        text = self._statement.query
        return self._engine.compiled._submit(text, None, "stream", batch_rows).arrow_reader()
