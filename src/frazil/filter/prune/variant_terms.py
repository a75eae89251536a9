"""Fields inside variants in conditions: `v.price > 5`, `v.a.b::DATE = …`, `v['name'] = 'x'`.

Files have bounds of such fields, which an engine's condition is compared with where both mean the
same. DuckDB orders variants by their kind first, so that without a cast a bound says something
only beside a value of its own kind; a cast makes numbers of text, of which bounds say nothing.
What is not understood gives no term and prunes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, DecimalException, localcontext
from typing import Any, Final

import pyarrow as pa

from frazil.filter.bind.comparable import Comparable, vector
from frazil.filter.bind.file_predicates import ExpressionColumn
from frazil.filter.prune.bounds import Stats
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import stats_key
from frazil.format.values.types import arrow_type, plain_value
from frazil.format.values.variant_bounds import bound_at, path_text
from frazil.iceberg import types as ice
from frazil.iceberg.expressions import Column
from frazil.iceberg.types import VariantType
from frazil.parser import nodes as n

_EXTRACTS: Final = frozenset({"struct_extract", "array_extract", "variant_extract"})
_CASTS: Final[dict[str, ice.PrimitiveType]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), ice.LongType()),
    "DOUBLE": ice.DoubleType(),
    "VARCHAR": ice.StringType(),
    "DATE": ice.DateType(),
    "TIMESTAMP": ice.TimestampType(),
}
_DIGITS: Final = 38
_INT64: Final = 1 << 63

Inside = tuple[str, bool]
"""The path of a field, and whether its values are cast."""
PathOf = Callable[[n.ColumnRef], tuple[str, ...] | None]


class VariantPath(ExpressionColumn):
    """A field inside the variants of a column, as values of one type."""

    inside: Inside

    def __init__(
        self, column: Column, names: Sequence[str], kind: ice.PrimitiveType, *, is_cast: bool
    ) -> None:
        super().__init__(column.field.field_id, ".".join((column.name, *names)), kind)
        self.inside = path_text(names), is_cast


class Term:
    """A field inside variants as a condition names it, perhaps in a cast."""

    def __init__(self, column: Column, names: Sequence[str], cast: str | None) -> None:
        self._column = column
        self._names = tuple(names)
        self._cast = cast

    def beside(self, values: Sequence[Any]) -> VariantPath | None:
        """The term as values of the type that these are compared in."""
        is_cast = self._cast is not None
        kind = _CASTS.get(self._cast) if self._cast is not None else _compared(values)
        if kind is None:
            return None
        return VariantPath(self._column, self._names, kind, is_cast=is_cast)


def variant_term(node: n.Expression, columns: Sequence[Column], path_of: PathOf) -> Term | None:
    """The field inside a variant that a part of a condition is; None for anything else."""
    cast: str | None = None
    if isinstance(node, n.Cast):
        cast, node = node.type, node.children[0]
    names: list[str] = []
    while isinstance(node, n.Function | n.Operator) and _is_extract(node):
        node, part = node.children
        if not isinstance(part, n.Constant) or not isinstance(part.value, str):
            return None
        names.insert(0, part.value)
    if not isinstance(node, n.ColumnRef):
        return None
    full_path = path_of(node)
    for column in columns:
        if isinstance(column.field.field_type, VariantType) and full_path is not None:
            depth = len(column.path)
            if [part.lower() for part in full_path[:depth]] == [
                part.lower() for part in column.path
            ]:
                return Term(column, (*full_path[depth:], *names), cast)
    return None


def _is_extract(node: n.Function | n.Operator) -> bool:
    return node.name.lower() in _EXTRACTS and len(node.children) == 2


def _compared(values: Sequence[Any]) -> ice.PrimitiveType | None:
    """The type in which values without a cast are compared; None where they are of several."""
    if any(isinstance(value, bool) for value in values):
        return None
    if all(isinstance(value, int | Decimal) for value in values):
        places = [max(0, -int(Decimal(value).as_tuple().exponent)) for value in values]
        scale = max(places, default=0)
        return ice.DecimalType(_DIGITS, scale) if scale < _DIGITS else None
    for python, kind in _PYTHON.items():
        if all(type(value) is python for value in values):
            if python is datetime and any(value.tzinfo is not None for value in values):
                return None
            return kind
    return None


_PYTHON: Final[dict[type, ice.PrimitiveType]] = {
    float: ice.DoubleType(),
    str: ice.StringType(),
    date: ice.DateType(),
    datetime: ice.TimestampType(),
}


def stats_inside(batch: EntryBatch, field_id: int, inside: Inside, kind: ice.IcebergType) -> Stats:
    """The bounds of a field inside variants, as values of a type: how many rows have the field is
    not known."""
    ends: list[Comparable | None] = []
    for name in ("lower_bound", "upper_bound"):
        key = stats_key(field_id, name)
        has_stats = batch.has(key) and batch.num_rows > 0
        column = (
            _bounds(batch.column(key), inside, kind, upper=name == "upper_bound")
            if has_stats
            else None
        )
        ends.append(None if column is None else vector(column, kind))
    return Stats(
        lower=ends[0],
        upper=ends[1],
        values=None,
        nulls=None,
        nans=None,
        required=False,
        floating=False,
    )


def _bounds(
    column: pa.ChunkedArray, inside: Inside, kind: ice.IcebergType, *, upper: bool
) -> pa.ChunkedArray:
    path, is_cast = inside
    ends = [bound_at(row, path) for row in column.to_pylist()]
    if isinstance(kind, ice.DoubleType) and not is_cast:
        # DuckDB takes every whole number for less than every floating-point one.
        ends = [end if isinstance(end, float) else None for end in ends]
    ends = [_as(kind, end, upper=upper) for end in ends]
    storable = [None if end is None else plain_value(end, kind) for end in ends]
    return pa.chunked_array([pa.array(storable, arrow_type(kind))])


def _as(kind: ice.IcebergType, end: Any, *, upper: bool) -> Any:
    """A bound that encloses what a cast to the type makes of the values; None for other kinds."""
    if isinstance(end, bool) or end is None:
        return None
    is_number = isinstance(end, int | Decimal | float)
    match kind:
        case ice.LongType() if is_number and math.isfinite(end):
            rounded = math.ceil(end) if upper else math.floor(end)
            return rounded if -_INT64 <= rounded < _INT64 else None
        case ice.DoubleType() if isinstance(end, float):
            return end
        case ice.DoubleType() if is_number:
            return math.nextafter(float(end), math.inf if upper else -math.inf)
        case ice.DecimalType() if isinstance(end, int | Decimal):
            return _at_scale(end, kind, upper=upper)
        case ice.StringType() if isinstance(end, str):
            return end
        case ice.DateType() if type(end) is date:
            return end
        case ice.TimestampType() if isinstance(end, datetime) and end.tzinfo is None:
            return end
    return None


def _at_scale(end: int | Decimal, kind: ice.DecimalType, *, upper: bool) -> Decimal | None:
    with localcontext(Context(prec=100)):
        step = Decimal(1).scaleb(-kind.scale)
        try:
            value = Decimal(end).quantize(step, rounding=ROUND_CEILING if upper else ROUND_FLOOR)
        except DecimalException:
            return None
    return value if value.adjusted() < kind.precision - kind.scale else None


__all__ = ["Term", "VariantPath", "stats_inside", "variant_term"]
