"""Columns that a filter may name: resolving names and ids against a schema.

Knows nothing of values, text or files.
"""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import InvalidInput
from frazil.iceberg.expressions import Column
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import NestedField, StructType
from frazil.value_classes import frozen, replace

MAX_NAMES_SHOWN = 30


@frozen
class ColumnIndex:
    """The columns of one schema that a filter can name, by id and by full name."""

    by_id: dict[int, Column]
    by_name: dict[str, Column]
    schema: Schema

    @staticmethod
    def of(schema: Schema) -> ColumnIndex:
        """Index every field that is not inside a list or a map."""
        by_id: dict[int, Column] = {}

        def walk(fields: Sequence[NestedField], path: tuple[str, ...], required: bool) -> None:
            for field in fields:
                names = (*path, field.name)
                never_null = required and field.required
                visible = field
                if field.required and not never_null:
                    visible = replace(field, required=False)
                by_id[field.field_id] = Column(visible, names)
                if isinstance(field.field_type, StructType):
                    walk(field.field_type.fields, names, never_null)

        walk(schema.fields, (), True)
        return ColumnIndex(
            by_id=by_id, by_name={column.name: column for column in by_id.values()}, schema=schema
        )

    def named(self, name: str, *, case_sensitive: bool = True) -> Column:
        """The column with this full name; refuses unknown and ambiguous names."""
        column = self.by_name.get(name)
        if column is not None:
            return column
        if not case_sensitive:
            matches = [c for key, c in self.by_name.items() if key.lower() == name.lower()]
            if len(matches) == 1:
                return matches[0]
            if matches:
                names = ", ".join(column.name for column in matches)
                raise InvalidInput(f"column '{name}' is ambiguous: it could be {names}")
        if name in self.schema.column_names:
            raise InvalidInput(
                f"column '{name}' is inside a list or a map; filters reach only into structs"
            )
        raise InvalidInput(f"unknown column '{name}'. {self.known_names(name)}")

    def with_id(self, field_id: int) -> Column:
        """The column with this field id."""
        column = self.by_id.get(field_id)
        if column is None:
            raise InvalidInput(f"no column has field id {field_id}. {self.known_names()}")
        return column

    def known_names(self, name: str | None = None) -> str:
        """A sentence that lists the columns, with the closest to `name` first."""
        from difflib import get_close_matches

        names = list(self.by_name)
        close = get_close_matches(name, names, n=1) if name else []
        hint = f"Did you mean '{close[0]}'? " if close else ""
        more = len(names) - MAX_NAMES_SHOWN
        tail = f", … and {more} more" if more > 0 else ""
        return f"{hint}Known columns: {', '.join(names[:MAX_NAMES_SHOWN])}{tail}"
