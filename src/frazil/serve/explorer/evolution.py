"""How one schema follows another, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from frazil.iceberg.schema import Schema, index_by_id, index_name_by_id
from frazil.iceberg.types import NestedField, StructType
from frazil.value_classes import frozen


@frozen
class SchemaChange:
    """One difference: of which kind, in which column, and what it was and is."""

    kind: str
    column: str
    was: str | None = None
    now: str | None = None
    text: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "kind": self.kind,
            "column": self.column,
            "was": self.was,
            "now": self.now,
            "text": self.text,
        }


def schema_changes(before: Schema | None, after: Schema) -> list[SchemaChange]:
    """What is different, in the order of the later schema; dropped columns come last."""
    if before is None:
        return []
    return list(_changes(before, after))


def _changes(before: Schema, after: Schema) -> Iterator[SchemaChange]:
    old, new = index_by_id(before.fields), index_by_id(after.fields)
    old_names, new_names = index_name_by_id(before.fields), index_name_by_id(after.fields)
    for id, field in new.items():
        name = new_names[id]
        if id not in old:
            kind = str(field.field_type)
            yield SchemaChange(
                kind="added", column=name, now=kind, text=f"{name} was added as {kind}"
            )
            continue
        yield from _of_field(old[id], field, old_names[id], name)
    yield from _moves(before, after)
    was, now = (sorted(schema.identifier_field_names()) for schema in (before, after))
    if was != now:
        names = ", ".join(now) or "none"
        yield SchemaChange(
            kind="identifier",
            column=", ".join(now),
            was=", ".join(was),
            now=names,
            text=f"the identifier fields became {names}",
        )
    for id in old.keys() - new.keys():
        name = old_names[id]
        yield SchemaChange(
            kind="dropped", column=name, was=str(old[id].field_type), text=f"{name} was dropped"
        )


def _of_field(
    old: NestedField, new: NestedField, old_name: str, name: str
) -> Iterator[SchemaChange]:
    if old.name != new.name:
        text = f"{old_name} was renamed to {name}"
        yield SchemaChange(kind="renamed", column=name, was=old_name, now=name, text=text)
    was, now = str(old.field_type), str(new.field_type)
    if was != now and old.field_type.is_primitive:
        text = f"{name} was widened from {was} to {now}"
        yield SchemaChange(kind="widened", column=name, was=was, now=now, text=text)
    if old.required != new.required:
        kind = "required" if new.required else "optional"
        yield SchemaChange(kind=kind, column=name, text=f"{name} became {kind}")
    if (old.doc or "") != (new.doc or ""):
        text = f"the comment of {name} was changed"
        yield SchemaChange(kind="doc", column=name, was=old.doc, now=new.doc, text=text)


def _moves(before: Schema, after: Schema) -> Iterator[SchemaChange]:
    """Columns of the top level that stand elsewhere among those that both schemas have."""
    shared = {field.field_id for field in before.fields} & {
        field.field_id for field in after.fields
    }
    old = [field.field_id for field in before.fields if field.field_id in shared]
    new = [field.field_id for field in after.fields if field.field_id in shared]
    for at, id in enumerate(new):
        if old[at] == id:
            continue
        field: NestedField = after.find_field(id)
        place = "first" if at == 0 else f"after {after.find_field(new[at - 1]).name}"
        yield SchemaChange(
            kind="moved", column=field.name, now=place, text=f"{field.name} was moved {place}"
        )
        old.remove(id)
        old.insert(at, id)


def leaf_columns(schema: Schema) -> Iterator[tuple[str, NestedField]]:
    """Every column with its full name; structs are given by their fields."""

    def walk(fields: tuple[NestedField, ...], prefix: str) -> Iterator[tuple[str, NestedField]]:
        for field in fields:
            name = prefix + field.name
            if isinstance(field.field_type, StructType):
                yield from walk(field.field_type.fields, f"{name}.")
            else:
                yield name, field

    return walk(schema.fields, "")
