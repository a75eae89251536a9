"""Random filters and small statistics to judge them by, for both Frazil and Iceberg Java.

Values come from small pools per type, so that literals meet bounds often. A filter is one tree that
becomes a PyIceberg expression for Frazil and Iceberg's JSON form for Java.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from hypothesis import strategies as st
from pyiceberg.expressions import (
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
)
from pyiceberg.expressions.literals import Literal, literal

from frazil.iceberg import types as ice
from frazil.iceberg.partitioning import PartitionField
from tests.interop.java.scenarios import BY_TRANSFORM, SCHEMA, STATS_IDS, Entry
from tests.support import pyiceberg_oracle

_HOUR = 3_600_000_000
_EPOCH = dt.datetime(1970, 1, 1)


def pool(kind: ice.IcebergType) -> Sequence[Any]:
    """A few values of the type in ascending order; no zero among floats, on which we differ."""
    match kind:
        case ice.BooleanType():
            return [False, True]
        case ice.IntegerType() | ice.LongType():
            return [-7, -1, 0, 1, 3, 100]
        case ice.FloatType() | ice.DoubleType():
            return [-2.5, -1.0, 0.5, 1.0, 1e30]
        case ice.DateType():
            return [-400, -1, 0, 1, 40, 20_000]
        case ice.TimeType():
            return [0, 1, _HOUR, 23 * _HOUR]
        case ice.TimestampType() | ice.TimestamptzType():
            return [_HOUR * hours for hours in (-9000, -1, 0, 1, 30, 800, 480_000)]
        case ice.TimestampNanoType() | ice.TimestamptzNanoType():
            return [1000 * _HOUR * hours for hours in (-9000, -1, 0, 1, 30, 800, 480_000)]
        case ice.StringType():
            return ["", "a", "ab", "abcde", "abcdf", "b", "é", "𐍈", "ｚ"]
        case ice.UUIDType():
            return [bytes([high] * 16) for high in (0, 1, 0x7F)]
        case ice.FixedType():
            return [bytes([high] * len(kind)) for high in (0, 1, 0x7F, 0x80, 0xFF)]
        case ice.BinaryType():
            return [b"", b"\x00", b"a", b"a\xff", b"\x80", b"\xff"]
        case ice.DecimalType():
            return [Decimal(n).scaleb(-kind.scale) for n in (-100, -1, 0, 1, 5, 99_999)]
        case _:
            raise AssertionError(kind)


# --- filters ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One predicate; `values` has as many as the operator takes."""

    __test__ = False
    op: str
    id: int
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """and, or, not."""

    op: str
    children: tuple[Tree, ...]


Tree: TypeAlias = "Test | Node"

_NEGATED = {
    "lt": "gt-eq",
    "lt-eq": "gt",
    "gt": "lt-eq",
    "gt-eq": "lt",
    "eq": "not-eq",
    "in": "not-in",
    "is-null": "not-null",
    "is-nan": "not-nan",
    "starts-with": "not-starts-with",
    "and": "or",
}
_NEGATED |= {right: left for left, right in _NEGATED.items()}

_COMPARISONS = ("lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq")
_SETS = ("in", "not-in")
_PREFIXES = ("starts-with", "not-starts-with")
DIFFERS = frozenset({"not-eq", "not-in", "not-starts-with"})


@st.composite
def tests(draw: st.DrawFn, ids: Sequence[int]) -> Test:
    """One predicate on one of the columns."""
    id = draw(st.sampled_from(ids))
    kind = SCHEMA.find_type(id)
    ops = ["is-null", "not-null", *_COMPARISONS, *_COMPARISONS]
    if not isinstance(kind, ice.TimestampNanoType | ice.TimestamptzNanoType):
        ops += _SETS * 2  # Java multiplies the nanoseconds of a set each time it binds them
    if isinstance(kind, ice.StringType):
        ops += _PREFIXES * 3
    if isinstance(kind, ice.FloatType | ice.DoubleType):
        ops += ("is-nan", "not-nan")
    op = draw(st.sampled_from(ops))
    values = st.sampled_from(pool(kind))
    if op in _SETS:
        chosen = draw(st.lists(values, min_size=2, max_size=3, unique=True))
        return Test(op=op, id=id, values=tuple(chosen))
    if op in _PREFIXES:
        text = draw(values.filter(lambda value: value != ""))
        return Test(op=op, id=id, values=(text,))
    return Test(op=op, id=id, values=(draw(values),) if op in _COMPARISONS else ())


def trees(ids: Sequence[int]) -> st.SearchStrategy[Tree]:
    """Predicates under AND, OR and NOT."""
    return st.recursive(
        tests(ids),
        lambda children: st.one_of(
            st.builds(
                lambda op, pair: Node(op=op, children=pair),
                st.sampled_from(["and", "or"]),
                st.tuples(children, children),
            ),
            children.map(lambda child: Node(op="not", children=(child,))),
        ),
        max_leaves=4,
    )


def leaves(tree: Tree, *, negated: bool = False) -> Iterator[Test]:
    """The predicates once NOT has been pushed down to them."""
    if isinstance(tree, Test):
        yield Test(op=_NEGATED[tree.op], id=tree.id, values=tree.values) if negated else tree
        return
    for child in tree.children:
        yield from leaves(child, negated=negated != (tree.op == "not"))


def has_or(tree: Tree, *, negated: bool = False) -> bool:
    """Whether an OR is left once NOT has been pushed down."""
    if isinstance(tree, Test):
        return False
    if tree.op == ("and" if negated else "or"):
        return True
    return any(has_or(child, negated=negated != (tree.op == "not")) for child in tree.children)


_UNARY: dict[str, Any] = {
    "is-null": IsNull,
    "not-null": NotNull,
    "is-nan": IsNaN,
    "not-nan": NotNaN,
}
_BINARY: dict[str, Any] = {
    "lt": LessThan,
    "lt-eq": LessThanOrEqual,
    "gt": GreaterThan,
    "gt-eq": GreaterThanOrEqual,
    "eq": EqualTo,
    "not-eq": NotEqualTo,
    "starts-with": StartsWith,
    "not-starts-with": NotStartsWith,
}
_MANY: dict[str, Any] = {"in": In, "not-in": NotIn}


def expression(tree: Tree) -> BooleanExpression:
    """The filter as PyIceberg has it."""
    if isinstance(tree, Node):
        parts = [expression(child) for child in tree.children]
        if tree.op == "not":
            return Not(parts[0])
        return And(*parts) if tree.op == "and" else Or(*parts)
    name = SCHEMA.find_column_name(tree.id)
    literals: list[Literal[Any]] = [literal(value) for value in tree.values]
    made: BooleanExpression
    if tree.op in _UNARY:
        made = _UNARY[tree.op](name)
    elif tree.op in _MANY:
        made = _MANY[tree.op](name, set(literals))
    else:
        made = _BINARY[tree.op](name, literals[0])
    return made


def iceberg_json(tree: Tree) -> dict[str, Any]:
    """The filter in Iceberg's JSON form."""
    if isinstance(tree, Node):
        parts = [iceberg_json(child) for child in tree.children]
        if tree.op == "not":
            return {"type": "not", "child": parts[0]}
        return {"type": tree.op, "left": parts[0], "right": parts[1]}
    kind = SCHEMA.find_type(tree.id)
    shown: dict[str, Any] = {"type": tree.op, "term": SCHEMA.find_column_name(tree.id)}
    values = [_json_value(kind, value) for value in tree.values]
    if tree.op in _SETS:
        return {**shown, "values": values}
    return {**shown, "value": values[0]} if values else shown


def _json_value(kind: ice.IcebergType, value: Any) -> Any:
    match kind:
        case ice.DateType():
            return (_EPOCH + dt.timedelta(days=value)).date().isoformat()
        case ice.TimeType():
            return (_EPOCH + dt.timedelta(microseconds=value)).time().isoformat("microseconds")
        case ice.TimestampType() | ice.TimestamptzType():
            text = (_EPOCH + dt.timedelta(microseconds=value)).isoformat("T", "microseconds")
            return text + ("+00:00" if isinstance(kind, ice.TimestamptzType) else "")
        case ice.TimestampNanoType() | ice.TimestamptzNanoType():
            # Java takes the nanoseconds that it parsed from JSON for microseconds.
            count = value // 1000
            moment = _EPOCH + dt.timedelta(microseconds=count // 1000)
            text = f"{moment.isoformat('T', 'microseconds')}{count % 1000:03d}"
            return text + ("+00:00" if isinstance(kind, ice.TimestamptzNanoType) else "")
        case ice.UUIDType():
            return str(uuid.UUID(bytes=value))
        case ice.FixedType() | ice.BinaryType():
            return value.hex().upper()
        case ice.DecimalType():
            return f"{value:f}"
        case _:
            return value


# --- entries to judge ------------------------------------------------------------------------


@st.composite
def judged_stats(draw: st.DrawFn, id: int, rows: int) -> Entry:
    """Statistics of one column, consistent in themselves; parts may be missing."""
    kind = SCHEMA.find_type(id)
    prefix = f"content_stats.{id}."
    floating = isinstance(kind, ice.FloatType | ice.DoubleType)
    nulls = draw(st.sampled_from([0, 0, 1, rows]))
    nans = draw(st.integers(0, rows - nulls)) if floating else 0
    entry: Entry = {}
    if nulls + nans < rows:
        bounds = draw(st.lists(st.sampled_from(pool(kind)), min_size=2, max_size=2))
        entry[prefix + "lower_bound"], entry[prefix + "upper_bound"] = sorted(bounds)
        entry[prefix + "tight_bounds"] = draw(st.booleans())
    if draw(st.integers(0, 5)) == 0:
        entry.pop(prefix + draw(st.sampled_from(["lower_bound", "upper_bound"])), None)
    if draw(st.integers(0, 5)):
        entry[prefix + "value_count"] = rows
        entry[prefix + "null_value_count"] = nulls
    if floating and draw(st.integers(0, 3)):
        entry[prefix + "nan_value_count"] = nans
    return entry


def _plain_entry(number: int, rows: int) -> Entry:
    return {
        "tracking.status": 1,
        "content_type": 0,
        "location": f"data/{number}.parquet",
        "file_format": "parquet",
        "record_count": rows,
        "file_size_in_bytes": 100,
    }


@st.composite
def by_bounds(draw: st.DrawFn) -> tuple[list[Entry], Tree]:
    """Files and manifests with statistics, and a filter on their columns."""
    ids = draw(st.lists(st.sampled_from(STATS_IDS), min_size=1, max_size=2, unique=True))
    entries = []
    for number in range(draw(st.integers(1, 6))):
        rows = draw(st.integers(1, 3))
        entry = _plain_entry(number, rows)
        for id in ids:
            if draw(st.integers(0, 9)):
                entry |= draw(judged_stats(id, rows))
        entries.append(entry)
    return entries, draw(trees(ids))


def transformed(field: PartitionField, value: Any) -> Any:
    """The partition value of a source value; PyIceberg's transform is the peer here."""
    kind = SCHEMA.find_type(field.source_id)
    return pyiceberg_oracle.transformed(field.transform, kind, value)


@st.composite
def by_partition(draw: st.DrawFn) -> tuple[list[Entry], Tree]:
    """Files with partition tuples and no statistics, and a filter on the source columns.

    The last file has no null: a column that is null everywhere is not stored, and to us a column
    that is not there is unknown.
    """
    spec_id = draw(st.sampled_from([1, 2]))
    sources: dict[int, PartitionField | None]
    if spec_id == 2:
        fields = draw(
            st.lists(
                st.sampled_from(BY_TRANSFORM.fields),
                min_size=1,
                max_size=2,
                unique_by=lambda field: field.source_id,
            )
        )
        sources = {field.source_id: field for field in fields}
    else:
        ids = [id for id in STATS_IDS if id < 19 and id not in (4, 5)]
        chosen = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=2, unique=True))
        sources = dict.fromkeys(chosen)
    entries = []
    last = draw(st.integers(0, 5))
    for number in range(last + 1):
        entry = _plain_entry(number, 3) | {"spec_id": spec_id}
        for id, field in sources.items():
            values = pool(SCHEMA.find_type(id))
            value = draw(st.sampled_from(values if number == last else [None, *values]))
            key = f"partition.{1000 + id if field is None else field.field_id}"
            entry[key] = value if field is None or value is None else transformed(field, value)
        entries.append(entry)
    return entries, draw(trees(list(sources)))


@st.composite
def by_everything(draw: st.DrawFn) -> tuple[list[Entry], Tree]:
    """Files with partition tuples and statistics of the same columns."""
    entries, tree = draw(by_partition())
    for entry in entries:
        for id in {test.id for test in leaves(tree)}:
            entry |= draw(judged_stats(id, entry["record_count"]))
    return entries, tree
