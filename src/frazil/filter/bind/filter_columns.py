"""Columns that a filter may name: resolving names and ids against a schema.

`Column` is PyIceberg's bound reference plus what it does not say: the path of names from the root
of the schema, and whether the value can be null when the structs around it are taken into account.
Knows nothing of values, text or files.
"""

from __future__ import annotations

from pyiceberg.expressions import BoundReference
from pyiceberg.schema import Accessor, Schema
from pyiceberg.types import NestedField, StructType

from frazil.errors import InvalidInput
from frazil.value_classes import dataclass

MAX_NAMES_SHOWN = 30


class Column(BoundReference):
    """A reference to one field, with its path of names.

    `field.required` is true only when every enclosing struct is required too: a required field of
    an optional struct is null where the struct is.
    """

    path: tuple[str, ...]

    def __init__(self, field: NestedField, accessor: Accessor, path: tuple[str, ...]) -> None:
        super().__init__(field=field, accessor=accessor)
        self.path = path

    @property
    def name(self) -> str:
        """The full name, as written in a filter."""
        return ".".join(self.path)


def _accessor(positions: tuple[int, ...]) -> Accessor:
    inner: Accessor | None = None
    for position in reversed(positions):
        inner = Accessor(position=position, inner=inner)
    assert inner is not None
    return inner


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnIndex:
    """The columns of one schema that a filter can name, by id and by full name."""

    by_id: dict[int, Column]
    by_name: dict[str, Column]
    schema: Schema

    @staticmethod
    def of(schema: Schema) -> ColumnIndex:
        """Index every field that is not inside a list or a map."""
        by_id: dict[int, Column] = {}

        def walk(
            fields: tuple[NestedField, ...],
            path: tuple[str, ...],
            positions: tuple[int, ...],
            required: bool,
        ) -> None:
            for position, field in enumerate(fields):
                names, at = (*path, field.name), (*positions, position)
                never_null = required and field.required
                visible = field
                if field.required and not never_null:
                    visible = field.model_copy(update={"required": False})
                by_id[field.field_id] = Column(visible, _accessor(at), names)
                if isinstance(field.field_type, StructType):
                    walk(field.field_type.fields, names, at, never_null)

        walk(schema.fields, (), (), True)
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
