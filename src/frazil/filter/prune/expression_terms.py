"""Which expression of a table a part of a condition is: their trees are compared, not their texts.

Spaces, the case of functions and columns, brackets and names of tables make no difference, nor
does the name that a column had when the expression was declared. `a ->> b` is
`json_extract_string(a, b)`; no other forms are taken for one another.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from frazil.errors import FrazilError
from frazil.filter.bind.file_predicates import ExpressionColumn
from frazil.format.expressions import SqlTransform, sql_columns, text_of
from frazil.iceberg.expressions import Column
from frazil.iceberg.schema import Schema
from frazil.parser import nodes as n
from frazil.parser.tree import function_name, parse_expression
from frazil.value_classes import frozen

if TYPE_CHECKING:
    from frazil.format.metadata.derived import DerivedColumn

ColumnOf = Callable[[n.Expression], Column | None]
"""The column that a part of a tree is, None for anything else."""
_LEFT_OUT: Final = frozenset(
    {"query_location", "query_location_length", "alias", "is_operator", "function_name"}
)
_SAME_FUNCTIONS: Final = {
    "->>": "json_extract_string",
    "lcase": "lower",
    "ucase": "upper",
    "substr": "substring",
}


@frozen
class Expressions:
    """The expressions of a table that its files may have statistics of, by their trees."""

    columns: Mapping[str, ExpressionColumn]

    @staticmethod
    def of(
        derived: Iterable[DerivedColumn], schema: Schema, *, current: Schema | None = None
    ) -> Expressions:
        """Those whose columns the schema has, in the types of the current one."""
        columns: dict[str, ExpressionColumn] = {}
        for column in sql_columns(derived):
            if not _same_columns(column, schema, current or schema):
                continue
            assert isinstance(column.transform, SqlTransform)
            key = _declared_key(column.transform.sql, column.source_ids)
            if key is not None:
                text = text_of(column, schema)
                columns[key] = ExpressionColumn(column.expr_id, text, column.transform.type)
        return Expressions(columns=columns)

    def column(self, node: n.Expression, column_of: ColumnOf) -> ExpressionColumn | None:
        """The expression that a part of a condition is."""
        if isinstance(node, n.Constant | n.ColumnRef):
            return None
        key = tree_key(node, lambda part: _id_of(column_of(part)))
        return None if key is None else self.columns.get(key)


def _same_columns(column: DerivedColumn, schema: Schema, current: Schema) -> bool:
    ids = set(column.source_ids)
    if not ids <= schema.field_ids or not ids <= current.field_ids:
        return False
    return all(schema.find_type(id) == current.find_type(id) for id in ids)


def _id_of(column: Column | None) -> int | None:
    return None if column is None else column.field.field_id


@lru_cache(maxsize=256)
def _declared_key(sql: str, source_ids: tuple[int, ...]) -> str | None:
    try:
        tree = parse_expression(sql)
    except FrazilError:  # written by a newer DuckDB
        return None

    def source(node: n.Expression) -> int | None:
        if node.raw.get("class") != "PARAMETER":
            return None
        return source_ids[int(node.raw["identifier"]) - 1]

    return tree_key(tree, source)


def tree_key(tree: n.Expression, id_of: Callable[[n.Expression], int | None]) -> str | None:
    """A text that two trees share if they mean the same of the same columns; None for a tree with
    queries in it. `id_of` says which column a part is."""
    parts = {id(node.raw): node for node in tree.walk()}
    if any(node.queries for node in parts.values()):
        return None

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(item) for item in value]
        if not isinstance(value, dict):
            return value
        node = parts.get(id(value))
        field_id = None if node is None else id_of(node)
        if field_id is not None:
            return {"column": field_id}
        relevant = {key: plain(item) for key, item in value.items() if key not in _LEFT_OUT}
        if value.get("class") == "FUNCTION":
            schema, name = function_name(value)
            relevant["qualified_name"] = [schema, _SAME_FUNCTIONS.get(name, name)]
        return relevant

    try:
        return json.dumps(plain(tree.raw), sort_keys=True, default=str)
    except RecursionError:
        return None


@lru_cache(maxsize=64)
def call_key(function: str, field_id: int) -> str:
    """The key of a call of a function with one column."""
    key = _declared_key(f"{function}($1)", (field_id,))
    assert key is not None
    return key


__all__ = ["Expressions", "call_key", "tree_key"]
