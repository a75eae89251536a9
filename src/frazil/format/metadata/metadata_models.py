"""Iceberg's values in table metadata, from JSON: schemas, specs, sort orders, transforms.

Ids are read, and what surrounds the values is checked, at once; the values themselves can be left
until they are first used, because a table may have many schemas and an opened table needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from frazil.errors import FormatError
from frazil.format.metadata.json_fields import Fields

if TYPE_CHECKING:
    from frazil.format.metadata.derived import DerivedColumn
    from frazil.iceberg.transforms import Transform


_IDS = {"schemas": "schema-id", "partition-specs": "spec-id", "sort-orders": "order-id"}


def models(raw: Fields, key: str, ids: dict[str, list[int]], *, later: bool) -> Sequence[Any]:
    """The values; their ids are noted without making them."""
    items = raw.objects(key)
    if not items:
        raise raw.bad(key, "is missing or empty")
    model_ids = ids[key] = []
    for item in items:
        # A default for these would make another table of it.
        model_ids.append(item.need(_IDS[key], int))
        item.values[_IDS[key]] = model_ids[-1]
        item.values["fields"] = item.need("fields", list)
    return _made([partial(_model, item, key) for item in items], later=later)


def _made(makers: Sequence[Callable[[], Any]], *, later: bool) -> Sequence[Any]:
    return LazyTuple(makers) if later else tuple(make() for make in makers)


def _model(item: Fields, key: str) -> Any:
    from frazil.iceberg.partitioning import load_spec
    from frazil.iceberg.schema import load_schema
    from frazil.iceberg.sorting import load_order

    what, load = {
        "schemas": ("schema", load_schema),
        "partition-specs": ("partition spec", load_spec),
        "sort-orders": ("sort order", load_order),
    }[key]
    try:
        return load(item.values)
    except ValueError as error:
        raise FormatError(
            f"is not a valid {what}: {error}", path=item.path, field=item.at
        ) from error


def column_ids(schemas: Any) -> set[int]:
    """The ids of all columns in the JSON of schemas, nested ones included."""
    numbers: set[int] = set()
    pending: list[Any] = [schemas]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            ids = (value.get(key) for key in ("id", "element-id", "key-id", "value-id"))
            numbers.update(field_id for field_id in ids if type(field_id) is int)
            pending.extend(value.get(key) for key in ("fields", "type", "element", "key", "value"))
        elif isinstance(value, list):
            pending.extend(value)
    return numbers


def derived_columns(
    raw: Fields, ids: dict[str, list[int]], *, later: bool
) -> Sequence[DerivedColumn]:
    expression_ids = ids["expressions"] = []
    makers = []
    for expression in raw.objects("expressions"):
        expr_id, make = _derived(expression)
        expression_ids.append(expr_id)
        makers.append(make)
    return _made(makers, later=later)


def _derived(raw: Fields) -> tuple[int, Callable[[], DerivedColumn]]:
    """The id of a derived column, and what makes it."""
    expr_id = raw.need("expr-id", int)
    expr = raw.inner("expr")
    partition_field_id = raw.take("partition-field-id", int)
    if partition_field_id is None:  # the proposal's example has it inside of one expression
        partition_field_id = expr.take("partition-field-id", int)
    source = expr.take("source-id", int)
    sources = expr.need("source-ids", list) if source is None else [source]
    if not sources or not all(type(source) is int for source in sources):
        raise expr.bad("source-ids", "must list field ids")
    text = expr.need("transform", str)
    name = expr.need("name", str)
    keys = ("sql", "dialect", "type") if "dialect" in expr.values else ()
    texts = {key: value for key in keys if (value := expr.take(key, str)) is not None}

    def make() -> DerivedColumn:
        from frazil.format.expressions import transform_from
        from frazil.format.metadata.derived import DerivedColumn, FieldId
        from frazil.iceberg.transforms import parse_transform

        transform: Transform | None
        unknown_fields = expr.values
        try:
            transform = transform_from(texts, len(sources)) if texts else None
            if transform is None:
                transform = parse_transform(text, sources=len(sources))
                unknown_fields = {**texts, **unknown_fields}
        except ValueError as error:
            raise expr.bad("transform", f"is {text!r}: {error}") from error
        return DerivedColumn(
            expr_id=FieldId(expr_id),
            source_ids=tuple(sources),
            transform=transform,
            name=name,
            partition_field_id=partition_field_id,
            extra={**raw.values, "expr": unknown_fields} if unknown_fields else raw.values,
        )

    return expr_id, make


Value = TypeVar("Value")


class LazyTuple(Sequence[Value]):
    """As many values as there are makers, all made on first use; equal to the tuple of them.

    What a maker raises comes up on first use, and again on the next. Pickled as the tuple.
    """

    __slots__ = ("_made", "_makers")

    def __init__(self, makers: Sequence[Callable[[], Value]]) -> None:
        self._makers = tuple(makers)
        self._made: tuple[Value, ...] | None = None

    def _values(self) -> tuple[Value, ...]:
        if self._made is None:
            self._made = tuple(make() for make in self._makers)
        return self._made

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Value, ...]: ...
    def __getitem__(self, index: int | slice) -> Value | tuple[Value, ...]:
        return self._values()[index]

    def __len__(self) -> int:
        return len(self._makers)

    def __iter__(self) -> Iterator[Value]:
        return iter(self._values())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LazyTuple):
            return other is self or self._values() == other._values()
        return self._values() == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return repr(self._values())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._values(),)


__all__ = [
    "LazyTuple",
    "column_ids",
    "derived_columns",
    "models",
]
