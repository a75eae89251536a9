"""Two snapshots side by side: schema, files, rows, leaves, and how one descends from the other.

How one schema follows another is told in sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from frazil.format import paths
from frazil.format.metadata.summary_totals import number
from frazil.iceberg.schema import Schema, index_by_id, index_name_by_id
from frazil.iceberg.types import NestedField, StructType
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer.subject import Subject
from frazil.serve.rest_errors import bad_request
from frazil.serve.service import Service
from frazil.table import Table
from frazil.tree.read import leaf_refs
from frazil.value_classes import frozen

_EXAMPLES = 20


def show(service: Service, call: Request) -> Response:
    """GET compare. Leaves that both have with the same dead positions are not opened."""
    table = service.table(call.identifier())
    sides = [Subject.at(table, call.query.get(name)) for name in ("from", "to")]
    first, second = (side.snapshot for side in sides)
    if first is None or second is None:
        raise bad_request(f"{table.name} has no snapshot to compare yet")
    comparison = table.compare(second, as_of=first)
    files = comparison.files
    before = number(first.summary, "total-data-files")
    after = number(second.summary, "total-data-files")
    changes = schema_changes(table.metadata.schema_of(first), table.metadata.schema_of(second))
    behind, ahead, base = _apart(table, int(first.snapshot_id), int(second.snapshot_id))
    return Response(
        body={
            "from": str(first.snapshot_id),
            "to": str(second.snapshot_id),
            "times": [first.timestamp_ms, second.timestamp_ms],
            "schema": [change.to_dict() for change in changes],
            "files": {
                "from": before,
                "to": after,
                "only_from": len(files.only_left),
                "only_to": len(files.only_right),
                "other_vector": len(files.changed),
                "both": None if before is None else before - len(files.only_left),
                "bytes_from": number(first.summary, "total-files-size"),
                "bytes_to": number(second.summary, "total-files-size"),
            },
            "rows": {"from": comparison.rows_left, "to": comparison.rows_right},
            "common": None if base is None else str(base),
            "behind": behind,
            "ahead": ahead,
            "leaves": _leaves(sides),
            "examples": {
                "only_from": list(files.only_left[:_EXAMPLES]),
                "only_to": list(files.only_right[:_EXAMPLES]),
                "other_vector": list(files.changed[:_EXAMPLES]),
            },
        }
    )


def _apart(table: Table, first: int, second: int) -> tuple[int, int, int | None]:
    """Commits that only the first has, that only the second has, and the last that both have."""
    parents = {
        int(snapshot.snapshot_id): snapshot.parent_snapshot_id for snapshot in table.snapshots()
    }

    def line(start: int) -> list[int]:
        walk: int | None = start
        chain: list[int] = []
        while walk is not None and walk in parents:
            chain.append(int(walk))
            walk = parents[walk]
        return chain

    left, right = line(first), line(second)
    shared = set(left) & set(right)
    base = next((snapshot_id for snapshot_id in right if snapshot_id in shared), None)
    return len(left) - len(shared), len(right) - len(shared), base


def _leaves(sides: list[Subject]) -> dict[str, Any]:
    names = [
        {
            paths.resolve(side.table.location, leaf.location): leaf.location
            for leaf in leaf_refs(side.reader.tree(side.snapshot, keys=()).root)
        }
        for side in sides
    ]
    first, other = names
    return {
        "only_from": [first[name] for name in first if name not in other],
        "only_to": [other[name] for name in other if name not in first],
        "both": sum(name in other for name in first),
    }


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
