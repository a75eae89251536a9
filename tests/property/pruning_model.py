"""Small random tables with filters, and a model that evaluates every row in plain Python.

Files have exact, loose or missing statistics, are partitioned or not, with or without derived
columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st
from pyiceberg import expressions as ice

from frazil.filter.prune.prune import PruneContext
from frazil.format.values.types import arrow_type
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from frazil.iceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from tests.support import pyiceberg_oracle

NAN: Final = math.nan
DAY: Final = 86_400_000_000
Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A column type, values its rows may hold, and literals with their value in the same unit."""

    field_id: int
    name: str
    type: PrimitiveType
    values: tuple[Any, ...]
    literals: tuple[tuple[Any, Any], ...]

    @property
    def floating(self) -> bool:
        return isinstance(self.type, FloatType | DoubleType)


def _same(*values: Any) -> tuple[tuple[Any, Any], ...]:
    return tuple((value, value) for value in values)


def _dec(*texts: str) -> tuple[Decimal, ...]:
    return tuple(Decimal(text) for text in texts)


_UUIDS: Final = tuple(bytes([first]) + bytes(15) for first in (0, 1, 0x7F, 0x80, 0xFF))
KINDS: Final = (
    Kind(
        field_id=1,
        name="i",
        type=IntegerType(),
        values=(-7, -1, 0, 1, 2, 3, 100, 2**31 - 1),
        literals=(
            *_same(-7, -2, 0, 1, 3, 2**31 - 1, 2**31, -(2**40), 1.5, -6.5),
            ("2", 2),
            (Decimal("0.5"), Decimal("0.5")),
        ),
    ),
    Kind(
        field_id=2,
        name="l",
        type=LongType(),
        values=(-(2**62), -3, 0, 1, 2, 5, 2**53 + 1, 2**62),
        literals=_same(-3, 0, 1, 4, 2**53, 2**53 + 1, 2**70, Decimal("4.25")),
    ),
    Kind(
        field_id=3,
        name="f",
        type=FloatType(),
        values=(NAN, -math.inf, -1.5, -0.0, 0.0, 0.5, 2.0, math.inf),
        literals=(*_same(-1.5, 0.0, -0.0, 0.5, 1.0, 2.0, 1e300, -1e300, math.inf, 2), ("NaN", NAN)),
    ),
    Kind(
        field_id=4,
        name="d",
        type=DoubleType(),
        values=(NAN, -math.inf, -1.5, -0.0, 0.0, 0.1, 2.0, math.inf),
        literals=(
            *_same(-1.5, 0.0, -0.0, 0.1, 1.0, 2.0, -math.inf, 0),
            (10**400, math.inf),
            ("NaN", NAN),
        ),
    ),
    Kind(
        field_id=5,
        name="dec",
        type=DecimalType(9, 2),
        values=_dec("-1.25", "0.00", "0.01", "1.50", "1.51", "14.20", "9999999.99"),
        literals=(
            *_same(*_dec("-1.25", "0", "1.50", "1.505", "14.2", "1E+10", "-1E+10", "1E-9")),
            *_same(1, 14),
            ("1.5", Decimal("1.5")),
            (1.5, Decimal("1.5")),
        ),
    ),
    Kind(
        field_id=6,
        name="wide",
        type=DecimalType(30, 3),
        values=_dec("-1.250", "0.000", "1.500", "1.501", "123456789012345678901234567.001"),
        literals=_same(*_dec("-1.25", "0", "1.5", "1.5005", "123456789012345678901234567.001")),
    ),
    Kind(
        field_id=7,
        name="day",
        type=DateType(),
        values=(-400, -1, 0, 1, 31, 365, 19737),
        literals=(
            ("1970-01-01", 0),
            ("1970-01-02", 1),
            ("1969-12-31", -1),
            ("2024-01-15", 19737),
            ("1970-01-01T12:00:00", 0.5),
            (31, 31),
            (2**40, 2**40),
        ),
    ),
    Kind(
        field_id=8,
        name="ts",
        type=TimestampType(),
        values=(-DAY - 1, -1, 0, 1, 3_600_000_000, DAY, 19737 * DAY + 5),
        literals=(
            ("1970-01-01", 0),
            ("1969-12-31 23:59:59.999999", -1),
            ("1970-01-01T00:00:00.0000005", 0.5),
            ("1970-01-01T01:00", 3_600_000_000),
            ("2024-01-15", 19737 * DAY),
            (DAY, DAY),
        ),
    ),
    Kind(
        field_id=9,
        name="tz",
        type=TimestamptzType(),
        values=(-1, 0, 1, DAY, 19737 * DAY),
        literals=(
            ("1970-01-01T01:00:00+01:00", 0),
            ("1970-01-02", DAY),
            ("2024-01-15T00:00:00Z", 19737 * DAY),
            ("1969-12-31T19:00:00-0500", 0),
        ),
    ),
    Kind(
        field_id=10,
        name="ns",
        type=TimestampNanoType(),
        values=(-1, 0, 1, 999, 1000, DAY * 1000),
        literals=(
            ("1970-01-01", 0),
            ("1970-01-01T00:00:00.000000001", 1),
            ("1970-01-01T00:00:00.000001", 1000),
            ("2500-01-01", 2**63),
            ("1600-01-01", -(2**63) - 1),
        ),
    ),
    Kind(
        field_id=11,
        name="time",
        type=TimeType(),
        values=(0, 1, 3_600_000_000, DAY - 1),
        literals=(("00:00", 0), ("01:00:00", 3_600_000_000), ("23:59:59.999999", DAY - 1)),
    ),
    Kind(
        field_id=12,
        name="s",
        type=StringType(),
        values=("", "a", "aa", "ab", "abc", "abd", "b", "é", "z\U0010ffff", "\ue000", "\U00010000"),
        literals=_same("", "a", "ab", "abc", "b", "é", "z\U0010ffff", "\U00010000", "zz"),
    ),
    Kind(
        field_id=13,
        name="flag",
        type=BooleanType(),
        values=(True, False),
        literals=(*_same(True, False), ("true", True)),
    ),
    Kind(
        field_id=14,
        name="id",
        type=UUIDType(),
        values=_UUIDS,
        literals=(
            *_same(*_UUIDS),
            ("80000000-0000-0000-0000-000000000000", _UUIDS[3]),
        ),
    ),
    Kind(
        field_id=15,
        name="fix",
        type=FixedType(2),
        values=(b"\0\0", b"\0\1", b"\x7f\xff", b"\x80\0", b"\xff\xff"),
        literals=_same(b"\0\0", b"\0\2", b"\x80\0", b"\xff\xff"),
    ),
    Kind(
        field_id=16,
        name="bin",
        type=BinaryType(),
        values=(b"", b"\0", b"a", b"ab", b"\x80", b"\xff\xff"),
        literals=_same(b"", b"\0", b"aa", b"ab", b"\x80", b"\xff\xff"),
    ),
    Kind(
        field_id=18,
        name="inner.n",
        type=IntegerType(),
        values=(-1, 0, 1, 2),
        literals=_same(-1, 0, 1, 2, 0.5),
    ),
)
BY_NAME: Final = {kind.name: kind for kind in KINDS}
SCHEMA: Final = Schema(
    *(
        NestedField(kind.field_id, kind.name, kind.type, required=False)
        for kind in KINDS
        if "." not in kind.name
    ),
    NestedField(
        17, "inner", StructType(NestedField(18, "n", IntegerType(), required=True)), required=False
    ),
)
TRANSFORMS: Final[tuple[Transform, ...]] = (
    IdentityTransform(),
    BucketTransform(3),
    TruncateTransform(2),
    YearTransform(),
    MonthTransform(),
    DayTransform(),
    HourTransform(),
    VoidTransform(),
)

# --- filters: a tree of tuples, as PyIceberg expressions and as plain Python ---------------------

_OPPOSITE: Final = {
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "=": "!=",
    "!=": "=",
    "in": "not in",
    "not in": "in",
    "null": "not null",
    "not null": "null",
    "nan": "not nan",
    "not nan": "nan",
    "prefix": "not prefix",
    "not prefix": "prefix",
}
_ICEBERG: Final[dict[str, Callable[..., ice.BooleanExpression]]] = {
    "<": ice.LessThan,
    ">=": ice.GreaterThanOrEqual,
    ">": ice.GreaterThan,
    "<=": ice.LessThanOrEqual,
    "=": ice.EqualTo,
    "!=": ice.NotEqualTo,
    "in": ice.In,
    "not in": ice.NotIn,
    "null": ice.IsNull,
    "not null": ice.NotNull,
    "nan": ice.IsNaN,
    "not nan": ice.NotNaN,
    "prefix": ice.StartsWith,
    "not prefix": ice.NotStartsWith,
}


def to_iceberg(node: tuple[Any, ...]) -> ice.BooleanExpression:
    if node[0] == "and":
        return ice.And(to_iceberg(node[1]), to_iceberg(node[2]))
    if node[0] == "or":
        return ice.Or(to_iceberg(node[1]), to_iceberg(node[2]))
    if node[0] == "not":
        return ice.Not(to_iceberg(node[1]))
    op, name, literals = node
    if "in" in op.split():
        return _ICEBERG[op](name, [written for written, _ in literals])
    return _ICEBERG[op](name, *(written for written, _ in literals))


def matches(node: tuple[Any, ...], row: Row, *, negated: bool = False) -> bool:
    """Two truth values are enough: with negation pushed down, unknown and false are the same."""
    if node[0] == "not":
        return matches(node[1], row, negated=not negated)
    if node[0] in ("and", "or"):
        sides = (matches(side, row, negated=negated) for side in node[1:])
        return all(sides) if (node[0] == "and") != negated else any(sides)
    op, name, literals = node
    return _compare(_OPPOSITE[op] if negated else op, row[name], [plain for _, plain in literals])


def _compare(op: str, value: Any, literals: Sequence[Any]) -> bool:
    if op == "null":
        return value is None
    if op == "not nan":
        return value is None or value == value
    if value is None:
        return False
    if op in ("not null", "nan"):
        return op == "not null" or value != value
    found, wanted = _ranked(value), [_ranked(literal) for literal in literals]
    if op == "in":
        return any(found == literal for literal in wanted)
    if op == "not in":
        return all(found != literal for literal in wanted)
    if not literals:
        return False
    if op in ("prefix", "not prefix"):
        return bool(value.startswith(literals[0])) == (op == "prefix")
    literal = wanted[0]
    return bool(
        {
            "<": lambda: found < literal,
            "<=": lambda: found <= literal,
            ">": lambda: found > literal,
            ">=": lambda: found >= literal,
            "=": lambda: found == literal,
            "!=": lambda: found != literal,
        }[op]()
    )


def _ranked(value: Any) -> tuple[bool, Any]:
    """NaN equals itself and is greater than every number."""
    return (True, 0) if value != value else (False, value)


def predicates(kind: Kind) -> st.SearchStrategy[tuple[Any, ...]]:
    literal = st.sampled_from(kind.literals)
    ops = [
        st.tuples(
            st.sampled_from(["<", "<=", ">", ">=", "=", "!="]),
            st.just(kind.name),
            st.tuples(literal),
        ),
        st.tuples(
            st.sampled_from(["in", "not in"]),
            st.just(kind.name),
            st.lists(literal, min_size=2, max_size=5).map(tuple),
        ),
        st.tuples(st.sampled_from(["null", "not null"]), st.just(kind.name), st.just(())),
    ]
    if kind.floating:
        ops.append(st.tuples(st.sampled_from(["nan", "not nan"]), st.just(kind.name), st.just(())))
    if isinstance(kind.type, StringType):
        ops.append(
            st.tuples(
                st.sampled_from(["prefix", "not prefix"]), st.just(kind.name), st.tuples(literal)
            )
        )
    return st.one_of(ops)


def filters(kinds: Sequence[Kind]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.recursive(
        st.one_of([predicates(kind) for kind in kinds]),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["and", "or"]), inner, inner),
            st.tuples(st.just("not"), inner),
        ),
        max_leaves=5,
    )


# --- files and their statistics ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A derived column, as the pruning code expects it."""

    expr_id: int
    source_ids: tuple[int, ...]
    transform: Transform


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Files of one table, how they are described, and a filter."""

    kinds: tuple[Kind, ...]
    files: tuple[tuple[Row, ...], ...]
    entries: tuple[dict[str, Any], ...]
    context: PruneContext
    node: tuple[Any, ...]
    types: dict[str, pa.DataType]


def order(value: Any) -> Any:
    """Text is ordered by its UTF-8 bytes."""
    return value.encode("utf-8") if isinstance(value, str) else value


def statistics(field_id: int, values: Sequence[Any], *, floating: bool) -> dict[str, Any]:
    """Exact statistics of a column."""
    base = f"content_stats.{field_id}."
    present = [v for v in values if v is not None and v == v]
    found: dict[str, Any] = {
        f"{base}value_count": len(values),
        f"{base}null_value_count": sum(v is None for v in values),
    }
    if floating:
        found[f"{base}nan_value_count"] = sum(v is not None and v != v for v in values)
    if present:
        found[f"{base}lower_bound"] = min(present, key=order)
        found[f"{base}upper_bound"] = max(present, key=order)
        found[f"{base}tight_bounds"] = True
    return found


def loosened(entry: dict[str, Any], field_id: int, kind: Kind) -> dict[str, Any]:
    """The same entry with bounds that enclose the values without touching them."""
    base = f"content_stats.{field_id}."
    if f"{base}lower_bound" not in entry:
        return entry
    lower, upper = entry[f"{base}lower_bound"], entry[f"{base}upper_bound"]
    changed: dict[str, Any] = {f"{base}tight_bounds": False}
    if isinstance(lower, str):
        changed |= {f"{base}lower_bound": lower[:1], f"{base}upper_bound": upper + "z"}
    elif isinstance(lower, bytes) and isinstance(kind.type, BinaryType):
        changed |= {f"{base}lower_bound": lower[:1], f"{base}upper_bound": upper + b"\x01"}
    else:
        below = [v for v in kind.values if v == v and v <= lower]
        above = [v for v in kind.values if v == v and v >= upper]
        changed |= {f"{base}lower_bound": min(below), f"{base}upper_bound": max(above)}
    return entry | changed


def transformed(transform: Transform, kind: Kind, value: Any) -> Any:
    return None if value is None else pyiceberg_oracle.transformed(transform, kind.type, value)


@st.composite
def cases(draw: st.DrawFn, *, exact_single_rows: bool = False) -> Case:
    kinds = tuple(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2, unique=True)))
    row = st.fixed_dictionaries(
        {kind.name: st.none() | st.sampled_from(kind.values) for kind in kinds}
    )
    rows = draw(st.lists(row, min_size=1, max_size=8))
    choices = [
        (kind, transform)
        for kind in kinds
        for transform in TRANSFORMS
        if transform.can_transform(kind.type)
    ]
    chosen = draw(st.lists(st.sampled_from(choices), max_size=2, unique_by=lambda c: str(c)))
    spec_id = draw(st.integers(0, 3))
    spec = PartitionSpec(
        *(
            PartitionField(kind.field_id, 1000 + index, transform, f"p{index}")
            for index, (kind, transform) in enumerate(chosen)
        ),
        spec_id=spec_id,
    )
    derived = tuple(
        Derived(expr_id=100 + index, source_ids=(kind.field_id,), transform=transform)
        for index, (kind, transform) in enumerate(chosen)
        if not isinstance(transform, IdentityTransform | VoidTransform)
    )
    groups: dict[Any, list[Row]] = {}
    for index, each in enumerate(rows):
        key = tuple(str(transformed(t, k, each[k.name])) for k, t in chosen)
        groups.setdefault((key, index if exact_single_rows else draw(st.booleans())), []).append(
            each
        )
    files = tuple(tuple(group) for group in groups.values())
    entries = []
    for group in files:
        entry: dict[str, Any] = {"content_type": 0, "spec_id": spec_id, "record_count": len(group)}
        for index, (kind, transform) in enumerate(chosen):
            entry[f"partition.{1000 + index}"] = transformed(transform, kind, group[0][kind.name])
        for kind in kinds:
            values = [each[kind.name] for each in group]
            entry |= statistics(kind.field_id, values, floating=kind.floating)
            if not exact_single_rows and draw(st.booleans()):
                entry = loosened(entry, kind.field_id, kind)
        for each_derived in derived:
            kind = next(k for k in kinds if k.field_id == each_derived.source_ids[0])
            values = [transformed(each_derived.transform, kind, each[kind.name]) for each in group]
            entry |= statistics(each_derived.expr_id, values, floating=False)
        if not exact_single_rows:
            # A partition value that is left out of one row would say "null", not "unknown".
            spare = sorted(k for k in entry if not k.startswith(("partition.", "record_count")))
            dropped = draw(st.sets(st.sampled_from(spare), max_size=4))
            entry = {k: v for k, v in entry.items() if k not in dropped}
        entries.append(entry)
    if not exact_single_rows and draw(st.booleans()):
        entries = [
            {k: v for k, v in entry.items() if not k.startswith("partition.")} for entry in entries
        ]
    types = {}
    for kind in kinds:
        for end in ("lower_bound", "upper_bound"):
            types[f"content_stats.{kind.field_id}.{end}"] = arrow_type(kind.type)
    for index, (kind, transform) in enumerate(chosen):
        types[f"partition.{1000 + index}"] = arrow_type(transform.result_type(kind.type))
    for each_derived in derived:
        kind = next(k for k in kinds if k.field_id == each_derived.source_ids[0])
        for end in ("lower_bound", "upper_bound"):
            types[f"content_stats.{each_derived.expr_id}.{end}"] = arrow_type(
                each_derived.transform.result_type(kind.type)
            )
    return Case(
        kinds=kinds,
        files=files,
        entries=tuple(entries),
        context=PruneContext(
            schema=SCHEMA,
            specs={spec_id: spec, 9: PartitionSpec(spec_id=9)},
            derived=derived,
        ),
        node=draw(filters(kinds)),
        types=types,
    )


def aggregated(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A manifest entry over the files: sums, extremes; null where one file lacks a value."""
    found: dict[str, Any] = {
        "content_type": 3,
        "spec_id": entries[0].get("spec_id"),
        "record_count": len(entries),
    }
    for key in {key for entry in entries for key in entry if key.startswith("content_stats.")}:
        values = [entry.get(key) for entry in entries]
        if any(value is None for value in values):
            continue
        if key.endswith("lower_bound"):
            found[key] = min(values, key=order)
        elif key.endswith("upper_bound"):
            found[key] = max(values, key=order)
        elif key.endswith("_count"):
            found[key] = sum(value for value in values if value is not None)
    return found


def arrow_rows(kinds: Sequence[Kind], rows: Sequence[Row]) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for kind in kinds:
        values = pa.array([row[kind.name] for row in rows], arrow_type(kind.type))
        if "." in kind.name:
            outer, inner = kind.name.split(".")
            columns[outer] = pa.StructArray.from_arrays(
                [values], names=[inner], mask=pa.array([row[kind.name] is None for row in rows])
            )
        else:
            columns[kind.name] = values
    return pa.table(columns)
