"""Conditions on shapes, as DuckDB writes them, as windows that bounding boxes are judged by.

Knows which functions say that two shapes meet, and the box of a constant shape. What it does not
understand gives no window and prunes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from frazil.errors import FrazilError
from frazil.filter.bind.file_predicates import BoxPredicate, Window
from frazil.filter.text.sql_values import string_text
from frazil.format.values.types import is_geo
from frazil.iceberg.expressions import Column
from frazil.iceberg.types import GeometryType
from frazil.parser import nodes as n
from frazil.parser.duckdb_parser import values_of

BOX: Final = "bbox"
_MEET: Final = frozenset({"&&", "st_intersects_extent", "st_intersects", "st_within"})
"""The two shapes have a place in common, or their boxes have; where one lies within the other,
its box lies within the other's."""
_CONTAINS: Final = "st_contains"
_CONSTRUCTORS: Final = frozenset({"st_geomfromwkb", "st_geomfromtext"})
_POINT: Final = "st_point"
_ENVELOPE: Final = "st_makeenvelope"
NAMES: Final = frozenset({*_MEET, _CONTAINS, BOX})
"""Functions that `box_predicate` understands."""

ColumnOf = Callable[[n.Expression], Column]
ConstantOf = Callable[[n.Expression], Any]


def box_predicate(
    node: n.Function, column_of: ColumnOf, constant_of: ConstantOf
) -> BoxPredicate | None:
    """What a condition asks of the boxes of its column; None if nothing can be said.

    `column_of` and `constant_of` raise for what is not a column, or not a constant.
    """
    if node.name == BOX:
        if len(node.children) != 5:
            return None
        column = _shape_column(node.children[0], column_of)
        west, *ys, east = (_number(constant_of(node.children[at])) for at in (1, 2, 4, 3))
        window = Window(west=west, south=min(ys), east=east, north=max(ys))
        return None if column is None else BoxPredicate(column, window)
    if len(node.children) != 2:
        return None
    for at, (shape, other) in enumerate((node.children, node.children[::-1])):
        column = _shape_column(shape, column_of)
        if column is None:
            continue
        ends_of_other = _box_of(other, constant_of)
        if ends_of_other is None:
            return None
        # contains(column, constant), and within(constant, column): the column's covers the constant
        covers = (node.name == _CONTAINS and at == 0) or (node.name == "st_within" and at == 1)
        return BoxPredicate(column, Window(**ends_of_other, covers=covers))
    return None


def _shape_column(node: n.Expression, column_of: ColumnOf) -> Column | None:
    """The column of shapes that a term is, as bytes or as a shape."""
    match node:
        case n.Cast(type="GEOMETRY", is_try=False) | n.Function(name="st_geomfromwkb"):
            node = node.children[0]
    match node:
        case n.ColumnRef() | n.Function(name="struct_extract"):
            column = column_of(node)
            return column if is_geo(column.field.field_type) else None
    return None


def _box_of(node: n.Expression, constant_of: ConstantOf) -> dict[str, float] | None:
    if isinstance(node, n.Function) and node.is_plain and node.name in (_POINT, _ENVELOPE):
        numbers = [_number(constant_of(child)) for child in node.children]
        if len(numbers) != (2 if node.name == _POINT else 4):
            return None
        xs, ys = numbers[::2], numbers[1::2]
        return {"west": min(xs), "south": min(ys), "east": max(xs), "north": max(ys)}
    from frazil.format.values.boxes import BoxCollector

    collector = BoxCollector(GeometryType())
    collector.update_one(_bytes(node, constant_of))
    box = collector.finish()
    if not box:
        return None
    return {
        "west": box["lower_x"],
        "south": box["lower_y"],
        "east": box["upper_x"],
        "north": box["upper_y"],
    }


def _bytes(node: n.Expression, constant_of: ConstantOf) -> bytes:
    """The WKB of a constant shape; empty for what is not one."""
    value: Any = None
    if isinstance(node, n.Function) and node.is_plain and len(node.children) == 1:
        if node.name in _CONSTRUCTORS:
            value = constant_of(node.children[0])
    else:
        value = constant_of(node)
    if isinstance(value, str):
        value = _wkb(value)
    return value if isinstance(value, bytes) else b""


def _wkb(text: str) -> Any:
    from frazil.parser.tree import parse_expression

    try:
        return values_of([parse_expression(f"CAST({string_text(text)} AS GEOMETRY)").raw])[0]
    except FrazilError:  # the engine says what is wrong with it
        return None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError("expected a number")
    number = float(value)
    if number != number:
        raise ValueError("NaN cannot bound a window")
    return number
