"""Trees of columns, edited: pure functions on fields, and the rules of what may become what.

Ids are never touched here but by `renumbered`, which gives new fields fresh ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from enum import Enum
from typing import Any, Final

from frazil.errors import InvalidInput, Unsupported
from frazil.filter.bind.literals import Where, place
from frazil.format.values.types import is_floating, plain_value
from frazil.iceberg import types as ice
from frazil.iceberg.default_values import default_of_json
from frazil.iceberg.literals import StringLiteral
from frazil.iceberg.transforms import (
    DayTransform,
    MonthTransform,
    Transform,
    VoidTransform,
    YearTransform,
)
from frazil.iceberg.types import VariantType
from frazil.value_classes import frozen, replace

ROOT = -1
"""Stands for the table itself where the owner of a column is asked for."""

Fields = tuple[ice.NestedField, ...]

_READ_FROM_TEXT = (ice.DateType, ice.TimeType, ice.TimestampType, ice.TimestamptzType, ice.UUIDType)


def rebuilt(
    kind: ice.IcebergType,
    owner: int = ROOT,
    *,
    field: Callable[[ice.NestedField], ice.NestedField] = lambda field: field,
    siblings: Callable[[int, Fields], Fields] = lambda owner, fields: fields,
) -> ice.IcebergType:
    """A type with every field, and every list of fields of a struct, passed through a function.

    `owner` is the id of the field that has the type. Inner fields come first.
    """

    def inside(nested: ice.NestedField) -> ice.NestedField:
        inner = rebuilt(nested.field_type, nested.field_id, field=field, siblings=siblings)
        if inner is not nested.field_type:
            nested = replace(nested, field_type=inner)
        return field(nested)

    if isinstance(kind, ice.StructType):
        old = kind.fields
        new = siblings(owner, tuple(inside(child) for child in old))
        same = len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))
        return kind if same else ice.StructType(*new)
    if isinstance(kind, ice.ListType):
        return _list_of(inside(kind.element_field))
    if isinstance(kind, ice.MapType):
        return _map_of(inside(kind.key_field), inside(kind.value_field))
    return kind


def _list_of(element: ice.NestedField) -> ice.ListType:
    return ice.ListType(
        element_id=element.field_id,
        element_type=element.field_type,
        element_required=element.required,
    )


def _map_of(key: ice.NestedField, value: ice.NestedField) -> ice.MapType:
    return ice.MapType(
        key_id=key.field_id,
        key_type=key.field_type,
        value_id=value.field_id,
        value_type=value.field_type,
        value_required=value.required,
    )


def renumbered(field: ice.NestedField, next_id: Callable[[], int]) -> ice.NestedField:
    """A new field with fresh ids: its own first, then those inside it."""
    field_id = next_id()
    kind = field.field_type
    if isinstance(kind, ice.StructType):
        kind = ice.StructType(*(renumbered(child, next_id) for child in kind.fields))
    elif isinstance(kind, ice.ListType):
        kind = _list_of(renumbered(kind.element_field, next_id))
    elif isinstance(kind, ice.MapType):
        key = renumbered(kind.key_field, next_id)
        kind = _map_of(key, renumbered(kind.value_field, next_id))
    return replace(field, field_id=field_id, field_type=kind)


def ids_in(field: ice.NestedField) -> Iterator[int]:
    """The ids of a field and of everything inside it."""
    yield field.field_id
    for child in field.field_type.inner_fields:
        yield from ids_in(child)


def owners(kind: ice.IcebergType, owner: int = ROOT) -> dict[int, int]:
    """Field id to the id of the field around it."""
    owner_ids: dict[int, int] = {}
    for child in kind.inner_fields:
        owner_ids[child.field_id] = owner
        owner_ids.update(owners(child.field_type, child.field_id))
    return owner_ids


class SiblingSide(Enum):
    """Where among its siblings a column goes."""

    FIRST = "first"
    BEFORE = "before"
    AFTER = "after"
    LAST = "last"


@frozen
class SiblingPlace:
    """A place among siblings: at an end, or beside the one named."""

    side: SiblingSide
    sibling: str | None = None

    @staticmethod
    def of(*, first: bool, before: str | None, after: str | None) -> SiblingPlace | None:
        """The place that at most one of the arguments says; None when none does."""
        places = [
            *([SiblingPlace(side=SiblingSide.FIRST)] if first else []),
            *(
                [SiblingPlace(side=SiblingSide.BEFORE, sibling=before)]
                if before is not None
                else []
            ),
            *([SiblingPlace(side=SiblingSide.AFTER, sibling=after)] if after is not None else []),
        ]
        if len(places) > 1:
            raise InvalidInput("give only one of first, before and after")
        return places[0] if places else None


LAST: Final = SiblingPlace(side=SiblingSide.LAST)


def with_field(
    fields: Fields, moved: ice.NestedField, sibling: int | None, *, side: SiblingSide
) -> Fields:
    """The fields with one of them, new or old, at its place."""
    rest = [other for other in fields if other.field_id != moved.field_id]
    if side is SiblingSide.LAST:
        return (*rest, moved)
    at = 0
    if side is not SiblingSide.FIRST:
        at = [other.field_id for other in rest].index(sibling or ROOT) + (side is SiblingSide.AFTER)
    return (*rest[:at], moved, *rest[at:])


# --- what may become what --------------------------------------------------------------------


def keeps_partitions(
    transform: Transform, current: ice.IcebergType, target: ice.IcebergType
) -> bool:
    """Whether a partition transform gives the same values after a column was widened."""
    if not isinstance(target, ice.PrimitiveType) or not transform.can_transform(target):
        return False
    if isinstance(current, ice.DateType):
        return isinstance(transform, YearTransform | MonthTransform | DayTransform | VoidTransform)
    return True


# --- defaults --------------------------------------------------------------------------------


_NO_DEFAULT = (ice.UnknownType, VariantType)


def default_of(value: Any, kind: ice.IcebergType, column: str) -> Any:
    """A default value as a schema stores it; dates, times and uuids may be given as text."""
    if not isinstance(kind, ice.PrimitiveType) or isinstance(kind, _NO_DEFAULT):
        raise InvalidInput(f"column '{column}': a {kind} has no default but null")
    if isinstance(kind, ice.TimestampNanoType | ice.TimestamptzNanoType):
        raise Unsupported(
            f"column '{column}': defaults of {kind} cannot be stored",
            feature=f"default of {kind}",
        )
    try:
        if isinstance(value, str) and isinstance(kind, _READ_FROM_TEXT):
            literal = place(StringLiteral(value), kind)
            if literal.where is not Where.EXACT:
                raise InvalidInput(f"{value!r} is not a value of type {kind}")
            value = literal.value
        stored = plain_value(value, kind)
    except InvalidInput as problem:
        raise InvalidInput(f"column '{column}', default: {problem}") from None
    if is_floating(kind) and (stored != stored or stored in (float("inf"), float("-inf"))):
        raise InvalidInput(f"column '{column}': a default cannot be NaN or infinite")
    try:
        return default_of_json(stored, kind)
    except ValueError as error:
        raise InvalidInput(f"column '{column}': {error}") from error


def promoted_default(value: Any, target: ice.IcebergType) -> Any:
    """A default of a column after it was widened."""
    is_day = isinstance(value, date) and not isinstance(value, datetime)
    if is_day and isinstance(target, ice.TimestampType):
        return datetime.combine(value, time())
    if is_day and isinstance(target, ice.TimestampNanoType):
        raise Unsupported(
            f"defaults of {target} cannot be stored; remove the default first",
            feature=f"default of {target}",
        )
    return value
