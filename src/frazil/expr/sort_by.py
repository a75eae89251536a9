"""Sort orders from text: `["day", "price desc", "bucket[16](id) asc nulls last"]`.

A term is what `partition_by` takes, then `asc` or `desc`, then `nulls first` or `nulls last`.
Ascending puts nulls first and descending puts them last unless it is said otherwise, as in Iceberg.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pyiceberg.schema import Schema
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder

from frazil.errors import InvalidInput
from frazil.expr.filter_columns import ColumnIndex
from frazil.expr.partition_by import parse_term
from frazil.format.plain import UNSORTED

_TERM: Final = re.compile(
    r"(?P<term>.*?)(?:\s+(?P<direction>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?",
    re.IGNORECASE | re.DOTALL,
)


def parse_sort_order(terms: Sequence[str], schema: Schema) -> SortOrder:
    """The sort order that the terms describe; no terms make the table unsorted."""
    if isinstance(terms, str):
        terms = [terms]
    columns = ColumnIndex.of(schema)
    fields: list[SortField] = []
    seen: set[tuple[int, str]] = set()
    for text in terms:
        if not isinstance(text, str):
            raise InvalidInput(f"sort_by {text!r}: a term is text, such as 'price desc'")
        match = _TERM.fullmatch(text.strip())
        assert match is not None
        column, transform = parse_term(match["term"], columns, what="sort_by")
        key = (column.field.field_id, str(transform))
        if key in seen:
            raise InvalidInput(f"sort_by '{text}': '{column.name}' is sorted by twice")
        seen.add(key)
        descending = (match["direction"] or "asc").lower() == "desc"
        nulls = (match["nulls"] or ("last" if descending else "first")).lower()
        fields.append(
            SortField(
                source_id=column.field.field_id,
                transform=transform,
                direction=SortDirection.DESC if descending else SortDirection.ASC,
                null_order=NullOrder.NULLS_FIRST if nulls == "first" else NullOrder.NULLS_LAST,
            )
        )
    return SortOrder(*fields, order_id=UNSORTED.order_id + 1) if fields else UNSORTED
