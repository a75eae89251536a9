"""Orders as DuckDB sorts by them. Transforms and Z-values are functions over Arrow arrays that
DuckDB calls, so that they are what partitions and Spark have."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from frazil.data.metadata_columns import path_of
from frazil.filter.text.quotes import quoted
from frazil.filter.text.sql_values import string_text, type_text
from frazil.filter.transforms import result_type, transform_array
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import IdentityTransform
from frazil.iceberg.types import NestedField, StructType
from frazil.rows.duckdb.duckdb_connection import streaming
from frazil.rows.z_order import SAMPLE_ROWS, ZOrder, ZValue

if TYPE_CHECKING:
    import duckdb

    from frazil.iceberg.sorting import SortField, SortOrder


@contextmanager
def sort_keys(
    connection: duckdb.DuckDBPyConnection, rows: str, order: SortOrder | ZOrder, schema: Schema
) -> Iterator[str]:
    """What to put after ORDER BY in a query over `rows`, a SELECT of the table's columns."""
    functions = _Functions(connection)
    try:
        if isinstance(order, ZOrder):
            yield _z_value(functions, rows, order, schema)
        else:
            yield ", ".join(_term(functions, field, schema) for field in order.fields)
    finally:
        functions.release()


class _Functions:
    """Python functions that a connection knows for a while."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._names: list[str] = []

    def add(self, work: Callable[[pa.Array], pa.Array], argument: str, result: str) -> str:
        """The name of a function from one type to another; it sees nulls."""
        name = f"__frazil_order_{uuid.uuid4().hex[:12]}"
        self.connection.create_function(
            name, work, [argument], result, type="arrow", null_handling="special"
        )
        self._names.append(name)
        return name

    def release(self) -> None:
        self.connection.abort()
        for name in self._names:
            self.connection.remove_function(name)


def _term(functions: _Functions, field: SortField, schema: Schema) -> str:
    from frazil.iceberg.sorting import NullOrder, SortDirection

    kind = schema.find_field(field.source_id).field_type
    source = _column(schema, field.source_id)
    if not isinstance(field.transform, IdentityTransform):

        def transformed(values: Any) -> pa.Array:
            return transform_array(field.transform, values, kind)

        result = type_text(result_type(field.transform, kind))
        source = f"{functions.add(transformed, type_text(kind), result)}({source})"
    direction = "ASC" if field.direction == SortDirection.ASC else "DESC"
    nulls = "FIRST" if field.null_order == NullOrder.NULLS_FIRST else "LAST"
    return f"{source} {direction} NULLS {nulls}"


def _column(schema: Schema, field_id: int) -> str:
    first, *rest = path_of(schema, field_id)
    field: NestedField = schema.fields[first]
    expression = quoted(field.name)
    for at in rest:
        assert isinstance(field.field_type, StructType)
        field = field.field_type.fields[at]
        expression = f"struct_extract({expression}, {string_text(field.name)})"
    return expression


def _z_value(functions: _Functions, rows: str, order: ZOrder, schema: Schema) -> str:
    columns = ", ".join(map(quoted, order.columns))
    query = (
        f"SELECT {columns} FROM ({rows}) USING SAMPLE reservoir({SAMPLE_ROWS} ROWS) REPEATABLE (7)"
    )
    with streaming(functions.connection, query):
        sample = functions.connection.sql(query).to_arrow_table()
    z = ZValue.sampled(order.columns, sample)

    def z_values(values: Any) -> pa.Array:
        whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        return z.of(whole)

    types = [schema.find_field(name).field_type for name in order.columns]
    parts = ", ".join(f"c{at} {type_text(kind)}" for at, kind in enumerate(types))
    packed = ", ".join(f"c{at} := {quoted(name)}" for at, name in enumerate(order.columns))
    return f"{functions.add(z_values, f'STRUCT({parts})', 'BIGINT')}(struct_pack({packed}))"
