"""SQL whose filters prune files through the tree.

Spark 4.3 keeps what it planned for one query of a Python data source and hands it to others, so
filters cannot be taken into planning there without losing rows. Here the query is optimised once,
to see which filters stand over which table; then it is run on frames that were planned with them.
Spark applies every filter again, so one that is not understood costs files, never rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyiceberg import types as ice
from pyiceberg.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMPARISONS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ALIKE = (
    ice.BooleanType,
    ice.IntegerType,
    ice.LongType,
    ice.DecimalType,
    ice.DateType,
    ice.TimestampType,
    ice.TimestamptzType,
    ice.StringType,
)
"""Types that Spark compares as Frazil does. Floating ones are not among them: NaN."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A view of a table: the options of its relation, and the table's columns."""

    options: Mapping[str, str]
    schema: Schema


@dataclass(slots=True)
class Asked:
    """What a query asks of one table: the filter of every reference, None where there is none."""

    filters: list[str | None] = field(default_factory=list)

    @property
    def where(self) -> str | None:
        """A filter that keeps all rows which some reference needs; None when that is all rows."""
        texts = [text for text in self.filters if text is not None]
        if not texts or len(texts) < len(self.filters):
            return None
        return " or ".join(f"({text})" for text in dict.fromkeys(texts))


def is_query(spark: SparkSession, text: str) -> bool:
    """Whether a statement only reads; any other is carried out as soon as it is analysed."""
    parsed = spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    logical = "org.apache.spark.sql.catalyst.plans.logical"
    doing = [
        spark._jvm.java.lang.Class.forName(f"{logical}.{name}")
        for name in ("Command", "ParsedStatement")
    ]
    return not any(kind.isInstance(node) for node in _nodes(parsed) for kind in doing)


def asked_of(plan: Any, views: Mapping[str, View]) -> dict[str, Asked]:
    """What an optimised plan asks of the views, by name.

    Nothing when part of the plan is cached: what that was made of is not to be seen.
    """
    found: dict[str, Asked] = {}
    try:
        for relation, condition in _relations(plan, None):
            options = dict(relation.relation().options().asCaseSensitiveMap())
            for name, view in views.items():
                if options == view.options:
                    text = None if condition is None else filter_text(condition, view.schema)
                    found.setdefault(name, Asked()).filters.append(text)
    except _Hidden:
        return {}
    return found


class _Hidden(Exception):
    """A part of the plan cannot be looked into."""


def _relations(node: Any, condition: Any) -> Iterator[tuple[Any, Any]]:
    """Relations of data sources, each with the condition right above it, subqueries included."""
    kind = _kind(node)
    if kind == "InMemoryRelation":
        raise _Hidden
    if kind == "DataSourceV2ScanRelation":
        yield node, condition
        return
    above = node.condition() if kind == "Filter" else None
    for child in _sequence(node.children()):
        yield from _relations(child, above)
    for subquery in _sequence(node.subqueries()):
        yield from _relations(subquery, None)


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in _sequence(node.children()):
        yield from _nodes(child)


def filter_text(condition: Any, schema: Schema) -> str | None:
    """The parts of a condition of Spark's that Frazil can say, as the text of a filter."""
    return _Filter(schema).conjuncts(condition)


@dataclass(frozen=True, slots=True)
class _Filter:
    schema: Schema

    def conjuncts(self, node: Any) -> str | None:
        """All that can be said of a condition; what cannot is left out."""
        if _kind(node) == "And":
            parts = [self.conjuncts(child) for child in _sequence(node.children())]
            said = [part for part in parts if part is not None]
            return " and ".join(said) or None
        return self.whole(node)

    def whole(self, node: Any) -> str | None:
        """A condition in full, or nothing."""
        kind, children = _kind(node), _sequence(node.children())
        if kind in ("And", "Or"):
            parts = [self.whole(child) for child in children]
            if any(part is None for part in parts):
                return None
            return "(" + f" {kind.lower()} ".join(map(str, parts)) + ")"
        if kind in ("IsNull", "IsNotNull"):
            column = self.column(children[0])
            words = "is null" if kind == "IsNull" else "is not null"
            return None if column is None else f"{column} {words}"
        if kind in _COMPARISONS:
            return self.comparison(_COMPARISONS[kind], *children)
        if kind == "In":
            return self.inside(children[0], [_literal(each) for each in children[1:]])
        if kind == "InSet":
            kind_of = children[0].dataType().simpleString()
            values = [_text(value, kind_of) for value in _sequence(node.hset().toSeq())]
            return self.inside(children[0], values)
        if kind == "StartsWith":
            column, prefix = self.column(children[0]), _literal(children[1])
            known = column is not None and prefix is not None
            return f"{column} starts with {prefix}" if known else None
        return None

    def comparison(self, sign: str, left: Any, right: Any) -> str | None:
        column, value = self.column(left), _literal(right)
        if column is None:
            column, value, sign = self.column(right), _literal(left), _FLIPPED[sign]
        return None if column is None or value is None else f"{column} {sign} {value}"

    def inside(self, node: Any, values: Sequence[str | None]) -> str | None:
        column = self.column(node)
        if column is None or not values or None in values:
            return None
        return f"{column} in ({', '.join(map(str, values))})"

    def column(self, node: Any) -> str | None:
        """A top-level column that both compare alike."""
        if _kind(node) != "AttributeReference":
            return None
        name = str(node.name())
        kind = next((each.field_type for each in self.schema.fields if each.name == name), None)
        if not isinstance(kind, _ALIKE):
            return None
        return '"' + name.replace('"', '""') + '"'


def _literal(node: Any) -> str | None:
    if _kind(node) != "Literal":
        return None
    return _text(node.value(), node.dataType().simpleString())


def _text(value: Any, kind: str) -> str | None:
    """A value of Spark's as a literal of a filter; None for what is not taken over."""
    if value is None:
        return None
    if kind == "boolean":
        return "true" if value else "false"
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return str(int(value))
    if kind.startswith("decimal"):
        return str(value.toString())
    if kind == "string":
        return "'" + str(value.toString()).replace("'", "''") + "'"
    if kind == "date":
        return f"date '{date(1970, 1, 1) + timedelta(days=int(value))}'"
    if kind in ("timestamp", "timestamp_ntz"):
        moment = _EPOCH + timedelta(microseconds=int(value))
        shown = moment if kind == "timestamp" else moment.replace(tzinfo=None)
        return f"timestamp '{shown.isoformat()}'"
    return None


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _sequence(found: Any) -> list[Any]:
    return [found.apply(index) for index in range(found.size())]


__all__ = ["Asked", "View", "asked_of", "filter_text", "is_query"]
