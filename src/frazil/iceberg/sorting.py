"""The order of rows in files: sort orders and their fields."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    FieldList,
    IdentityTransform,
    Transform,
    check_source,
    parse_transform,
)
from frazil.value_classes import dataclass, replace

_FIRST_ORDER_ID: Final = 1


class SortDirection(Enum):
    """Which values come first."""

    ASC = "asc"
    DESC = "desc"

    def __str__(self) -> str:
        return self.name


class NullOrder(Enum):
    """Where nulls go."""

    NULLS_FIRST = "nulls-first"
    NULLS_LAST = "nulls-last"

    def __str__(self) -> str:
        return self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class SortField:
    """One term of an order."""

    source_id: int
    transform: Transform = IdentityTransform()
    direction: SortDirection = SortDirection.ASC
    null_order: NullOrder = NullOrder.NULLS_FIRST

    def __str__(self) -> str:
        is_identity = isinstance(self.transform, IdentityTransform)
        term = str(self.source_id) if is_identity else f"{self.transform}({self.source_id})"
        return f"{term} {self.direction} {self.null_order}"


class SortOrder(FieldList[SortField]):
    """The terms that rows are sorted by, one after the other; none for an unsorted table."""

    __slots__ = ("order_id",)
    ID = "order_id"

    def __init__(self, *fields: SortField, order_id: int = _FIRST_ORDER_ID) -> None:
        self.fields = fields
        self.order_id = order_id

    @property
    def is_unsorted(self) -> bool:
        """Whether it has no terms."""
        return not self.fields

    def check_compatible(self, schema: Schema) -> None:
        """Refuse columns that do not exist, or whose types cannot be sorted."""
        for term in self.fields:
            source = schema.get_field(term.source_id)
            check_source(source, term.transform, term, what="sort", verb="sort")


UNSORTED: Final = SortOrder(order_id=0)
"""The order of a table that has none."""


def fresh_order(order: SortOrder, old: Schema, fresh: Schema) -> SortOrder:
    """The order with the ids of a schema that was numbered afresh. Raises ValueError."""
    if order.is_unsorted:
        return UNSORTED
    fields: list[SortField] = []
    for term in order.fields:
        name = old.find_column_name(term.source_id)
        if name is None:
            raise ValueError(f"no column has field id {term.source_id}, by which rows are sorted")
        fields.append(replace(term, source_id=fresh.find_field(name).field_id))
    return SortOrder(*fields)


# --- JSON ----------------------------------------------------------------------------------------


def load_order(document: Any) -> SortOrder:
    """A sort order from the JSON of metadata. Raises ValueError."""
    if not isinstance(document, Mapping):
        raise ValueError(f"a sort order is {document!r}; expected an object")
    order_id, fields = document.get("order-id", _FIRST_ORDER_ID), document.get("fields")
    if type(order_id) is not int:
        raise ValueError(f"order-id is {order_id!r}; expected a whole number")
    if not isinstance(fields, list):
        raise ValueError(f"fields is {fields!r}; expected a list")
    return SortOrder(*map(_load_field, fields), order_id=order_id)


def _load_field(document: Any) -> SortField:
    if not isinstance(document, Mapping):
        raise ValueError(f"a sort field is {document!r}; expected an object")
    source_id = document.get("source-id")
    sources = document.get("source-ids")
    if source_id is None and isinstance(sources, list) and len(sources) == 1:
        source_id = sources[0]
    if type(source_id) is not int:
        raise ValueError(f"source-id is {source_id!r}; expected the id of one column")
    text = document.get("transform", "identity")
    if not isinstance(text, str):
        raise ValueError(f"transform is {text!r}; expected text")
    direction = SortDirection(document.get("direction") or "asc")
    is_ascending = direction is SortDirection.ASC
    nulls = document.get("null-order") or ("nulls-first" if is_ascending else "nulls-last")
    return SortField(source_id, parse_transform(text), direction, NullOrder(nulls))


def order_document(order: SortOrder) -> dict[str, Any]:
    """A sort order as JSON."""
    return {
        "order-id": order.order_id,
        "fields": [
            {
                "source-id": term.source_id,
                "transform": str(term.transform),
                "direction": term.direction.value,
                "null-order": term.null_order.value,
            }
            for term in order.fields
        ],
    }
