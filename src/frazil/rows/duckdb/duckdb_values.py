"""New values of columns as SQL for DuckDB: constants, expressions, and parts of structs."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from frazil import arrow_values
from frazil.data.schema import nested_arrow_type
from frazil.data.write.row_input import NO_ARROW_FORM, conformed
from frazil.errors import InvalidInput
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_text import RowsName, SqlText
from frazil.filter.text.sql_values import string_text, type_text
from frazil.format.values.variant_type import has_variant
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import IcebergType, NestedField, StructType
from frazil.rows.duckdb.duckdb_connection import forget
from frazil.rows.duckdb.duckdb_types import literal
from frazil.rows.engine import Assignments, Value

if TYPE_CHECKING:
    import duckdb


class Values:
    """New values of columns as SQL, and the rows that they are about. Nested constants come from a
    table of one row."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._tables: list[str] = []
        self._views: set[str] = set()

    def named(self, query: str, rows: RowsName) -> str:
        """The rows of a query as FROM has them, under the name that expressions have for them."""
        if not rows.schema:
            return f"({query}) {rows}"
        # Only what is in a schema can be called by it.
        self._connection.execute(f"CREATE OR REPLACE VIEW {rows} AS {query}")
        self._views.add(str(rows))
        return str(rows)

    def assigned(self, column: NestedField, old: str, values: Assignments) -> str:
        """The new value of a column: replaced, changed inside, or as it was."""
        expression = self._changed(column.field_type, old, (column.name,), values)
        return (
            old if expression is None else f"CAST({expression} AS {type_text(column.field_type)})"
        )

    def _changed(
        self, kind: IcebergType, old: str, path: tuple[str, ...], values: Assignments
    ) -> str | None:
        if path in values:
            return self.value(values[path], kind, ".".join(path))
        if not isinstance(kind, StructType):
            return None
        parts, is_changed = [], False
        for part in kind.fields:
            before = f"struct_extract({old}, {string_text(part.name)})"
            after = self._changed(part.field_type, before, (*path, part.name), values)
            is_changed |= after is not None
            parts.append(f"{quoted(part.name)} := {after or before}")
        if not is_changed:
            return None
        return f"CASE WHEN {old} IS NULL THEN NULL ELSE struct_pack({', '.join(parts)}) END"

    def value(self, value: Value, kind: IcebergType, name: str) -> str:
        """A value of a type."""
        if isinstance(value, SqlText):
            return f"({value.text}\n)"
        if value.value is not None and has_variant(kind):
            column = NestedField(field_id=1, name=name, field_type=kind, required=False)
            rows = conformed([{name: value.value}], Schema(column))
            return self._table_of_one(pa.Table.from_batches(rows).rename_columns(["v"]))
        if kind.is_primitive or value.value is None:
            try:
                return literal(value.value, kind)
            except InvalidInput as problem:
                raise InvalidInput(f"column {name}: {problem}") from None
        try:
            array = arrow_values.array([value.value], nested_arrow_type(kind))
        except NO_ARROW_FORM as error:
            raise InvalidInput(f"column {name}: {value.value!r} is not a {kind}") from error
        return self._table_of_one(pa.table({"v": array}))

    def _table_of_one(self, row: pa.Table) -> str:
        table = f"__frazil_value_{uuid.uuid4().hex[:12]}"
        self._connection.register(table, row)
        self._tables.append(table)
        return f"(SELECT v FROM {table})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Forget the constants and the rows."""
        forget(self._connection, self._tables)
        for view in self._views:
            self._connection.execute(f"DROP VIEW IF EXISTS {view}")
