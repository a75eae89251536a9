"""Filters over rows: bound expressions as Arrow expressions, or evaluated on a table.

Columns are found by their current names, nested ones through their structs. The meaning is that of
`filter.bind.bind`: null matches nothing but IS NULL and IS NOT NAN; NaN is greater than every
number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from frazil import arrow_compute as pc
from frazil import arrow_values
from frazil.errors import InvalidInput
from frazil.filter.bind.file_predicates import is_of_files
from frazil.format.values.types import arrow_type, is_floating
from frazil.iceberg.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BooleanExpression,
    Column,
    Op,
    Or,
    literals_of,
    operator_of,
)

_COMPARE: Final[dict[Op, Callable[[Any, Any], Any]]] = {
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
}


def to_arrow(expression: BooleanExpression) -> pc.Expression:
    """The filter as an Arrow expression, for rows in memory (`Table.filter`)."""
    filter_ = _evaluate(expression, lambda column: pc.field(*column.path))
    return pc.scalar(filter_) if isinstance(filter_, bool) else filter_


def row_mask(expression: BooleanExpression, table: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
    """Which rows match; never null."""
    mask = _evaluate(expression, lambda column: _values(table, column))
    if isinstance(mask, bool):
        return arrow_values.repeat(arrow_values.scalar(mask), table.num_rows)
    if isinstance(mask, pa.ChunkedArray):
        mask = mask.combine_chunks()
    return pc.fill_null(mask, arrow_values.scalar(False)) if mask.null_count else mask


def columns_of(expression: BooleanExpression) -> frozenset[int]:
    """Field ids of the columns that the filter uses."""
    if isinstance(expression, And | Or):
        return columns_of(expression.left) | columns_of(expression.right)
    if isinstance(expression, AlwaysTrue | AlwaysFalse) or is_of_files(expression):
        return frozenset()
    return frozenset({_column(expression).field.field_id})


def _values(table: pa.Table | pa.RecordBatch, column: Column) -> Any:
    """The column's values, of the Arrow type the literals have."""
    name, *inner = column.path
    if table.schema.get_field_index(name) < 0:
        raise InvalidInput(
            f"the filter needs column '{column.name}', but the rows have only: "
            f"{', '.join(table.schema.names)}"
        )
    values = table.column(name)
    for step in inner:
        values = pc.struct_field(values, step)
    if isinstance(values.type, pa.BaseExtensionType):
        values = pc.cast(values, values.type.storage_type)
    type_ = column.field.field_type
    if type_.is_primitive and values.type != arrow_type(type_):
        values = pc.cast(values, arrow_type(type_))
    return values


def _column(predicate: Any) -> Column:
    term = getattr(predicate, "term", None)
    if not isinstance(term, Column):
        raise InvalidInput(
            f"the filter is not bound: {predicate}; bind it with frazil.filter.text.filter_text"
        )
    return term


def _evaluate(expression: BooleanExpression, values: Callable[[Column], Any]) -> Any:
    """A mask, an Arrow expression (whatever `values` gives), or a constant."""
    if isinstance(expression, AlwaysTrue) or is_of_files(expression):
        return True
    if isinstance(expression, AlwaysFalse):
        return False
    if isinstance(expression, And | Or):
        left, right = _evaluate(expression.left, values), _evaluate(expression.right, values)
        return _both(left, right) if isinstance(expression, And) else _either(left, right)
    return _predicate(expression, values)


def _both(left: Any, right: Any) -> Any:
    if isinstance(left, bool):
        return right if left else False
    if isinstance(right, bool):
        return left if right else False
    return pc.and_kleene(left, right)


def _either(left: Any, right: Any) -> Any:
    if isinstance(left, bool):
        return True if left else right
    if isinstance(right, bool):
        return True if right else left
    return pc.or_kleene(left, right)


def _predicate(predicate: BooleanExpression, values: Callable[[Column], Any]) -> Any:
    column = _column(predicate)
    op = operator_of(predicate)
    field = values(column)
    type_ = column.field.field_type
    if op is Op.IS_NULL:
        return pc.is_null(field)
    if op is Op.NOT_NULL:
        return pc.is_valid(field)
    if op is Op.IS_NAN:
        return pc.is_nan(field)
    if op is Op.NOT_NAN:
        return pc.or_kleene(pc.invert(pc.is_nan(field)), pc.is_null(field))
    literals = [literal.value for literal in literals_of(predicate)]
    if op is Op.STARTS_WITH:
        return pc.starts_with(field, pattern=literals[0])
    if op is Op.NOT_STARTS_WITH:
        return pc.invert(pc.starts_with(field, pattern=literals[0]))
    if op in (Op.IN, Op.NOT_IN):
        if is_floating(type_) and 0.0 in literals:
            literals += [0.0, -0.0]  # the two zeros are equal, but not to a lookup
        value_set = arrow_values.array(literals, arrow_type(type_))
        mask = pc.is_in(field, value_set=value_set)
        return mask if op is Op.IN else pc.and_kleene(pc.invert(mask), pc.is_valid(field))
    assert op is not None
    mask = _COMPARE[op](field, arrow_values.scalar(literals[0], arrow_type(type_)))
    if op in (Op.GT, Op.GE) and is_floating(type_):
        return pc.or_kleene(mask, pc.is_nan(field))
    return mask
