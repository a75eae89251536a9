"""A schema being edited: finding columns, changing them, and the rules that hold for each change.

Knows the table around it: what it is partitioned and sorted by, which ids are taken; and unites two
schemas by name: what the other one has more goes into the draft. The calls that
users make, and the commit, are in `evolve`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final

from frazil.data.metadata_columns import METADATA_COLUMNS
from frazil.errors import InvalidInput
from frazil.filter.text.sql_text import RESERVED
from frazil.format.metadata.definition_checks import promotable
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import IcebergType, ListType, MapType, NestedField, StructType
from frazil.table.columns.column_tree import (
    LAST,
    ROOT,
    Fields,
    SiblingPlace,
    default_of,
    ids_in,
    keeps_partitions,
    owners,
    promoted_default,
    rebuilt,
    renumbered,
    with_field,
)
from frazil.value_classes import dataclass, field, replace

ColumnPath = str | Sequence[str]
"""A column by its full name, `a.b`, or by the names on the way, `("a", "b")`."""

_RESERVED: Final = frozenset({*METADATA_COLUMNS, "_partition"})


class SchemaDraft:
    """The columns of a table with the edits made so far."""

    def __init__(self, metadata: TableMetadata, *, case_sensitive: bool) -> None:
        current = metadata.schema()
        self.metadata = metadata
        self.root = StructType(*current.fields)
        self.identifiers = frozenset(current.identifier_field_ids)
        self._case_sensitive = case_sensitive
        self._ids = count(metadata.last_column_id + 1)

    @property
    def schema(self) -> Schema:
        """The draft as a schema."""
        return Schema(
            *self.root.fields,
            schema_id=self.metadata.current_schema_id,
            identifier_field_ids=sorted(self.identifiers),
        )

    # Finding

    def find(self, path: ColumnPath) -> NestedField:
        """The column at a path."""
        name = ".".join(_parts(path))
        schema = Schema(*self.root.fields)
        try:
            return schema.find_field(name, case_sensitive=self._case_sensitive)
        except ValueError:
            names = ", ".join(schema.column_names[:30])
            raise InvalidInput(f"unknown column '{name}'. Known columns: {names}") from None

    def by_id(self, field_id: int) -> NestedField:
        """The field of an id, wherever it is."""
        return Schema(*self.root.fields).find_field(field_id)

    def struct_field(self, path: ColumnPath, verb: str) -> NestedField:
        """A column of the table or of a struct; elements, keys and values are parts of a type."""
        field = self.find(path)
        owner = owners(self.root)[field.field_id]
        if owner != ROOT and not isinstance(self.by_id(owner).field_type, StructType):
            raise InvalidInput(
                f"'{path_name(path)}' is part of a {self.by_id(owner).field_type} "
                f"and cannot be {verb}"
            )
        return field

    def struct_at(self, parents: Sequence[str]) -> int:
        """The id of the struct that a path leads to, through a list's element or a map's value."""
        field = self.find(parents)
        if isinstance(field.field_type, ListType):
            field = field.field_type.element_field
        elif isinstance(field.field_type, MapType):
            field = field.field_type.value_field
        if not isinstance(field.field_type, StructType):
            raise InvalidInput(
                f"'{'.'.join(parents)}' is a {field.field_type}; columns are added to structs"
            )
        return field.field_id

    def children(self, owner: int) -> Fields:
        """The fields of the struct that a field has for its type; of the table for ROOT."""
        kind = self.root if owner == ROOT else self.by_id(owner).field_type
        assert isinstance(kind, StructType)
        return kind.fields

    # Changing

    def edit_field(self, field_id: int, changes: Mapping[str, Any]) -> None:
        """Change attributes of one field."""

        def changed(field: NestedField) -> NestedField:
            return replace(field, **changes) if field.field_id == field_id else field

        self._edit(field=changed)

    def _edit(self, **passes: Any) -> None:
        root = rebuilt(self.root, **passes)
        assert isinstance(root, StructType)
        self.root = root

    def add(
        self,
        owner: int,
        field: NestedField,
        *,
        where: str,
        default: Any = None,
        allow_incompatible: bool = False,
        place: SiblingPlace = LAST,
    ) -> None:
        """Add a column to the struct of `owner`, with fresh ids."""
        self.check_name(owner, field.name)
        if field.required and default is None and not allow_incompatible:
            raise InvalidInput(
                f"column '{where}' is required, but rows written before have no value for it; "
                "give it a default"
            )
        if default is not None:
            if self.metadata.format_version < 3:
                raise InvalidInput(f"column '{where}': defaults need format-version 3 or later")
            value = default_of(default, field.field_type, where)
            field = replace(field, initial_default=value, write_default=value)
        self._put(owner, renumbered(field, lambda: next(self._ids)), place)

    def move(self, field: NestedField, place: SiblingPlace) -> None:
        """Put a column elsewhere among its siblings."""
        self._put(owners(self.root)[field.field_id], field, place)

    def drop(self, field: NestedField, name: str) -> None:
        """Take a column out."""
        self.check_unused(field, name)

        def without(owner: int, fields: Fields) -> Fields:
            children = tuple(child for child in fields if child.field_id != field.field_id)
            if fields and not children:
                raise InvalidInput(f"column '{name}' is the only one left; it must stay")
            return children

        self._edit(siblings=without)

    def _put(self, owner: int, field: NestedField, place: SiblingPlace) -> None:
        sibling = None if place.sibling is None else self._sibling(owner, place.sibling)
        if sibling == field.field_id:
            raise InvalidInput(f"column '{field.name}' cannot be put beside itself")

        def changed(mine: int, fields: Fields) -> Fields:
            if mine != owner:
                return fields
            return with_field(fields, field, sibling, side=place.side)

        self._edit(siblings=changed)

    def _sibling(self, owner: int, name: str) -> int:
        siblings = self.children(owner)
        for child in siblings:
            if child.name == name:
                return child.field_id
        try:
            sibling_id = self.find(name).field_id
        except InvalidInput:
            sibling_id = ROOT
        if sibling_id not in {child.field_id for child in siblings}:
            names = ", ".join(child.name for child in siblings)
            raise InvalidInput(f"no column '{name}' to move beside; there are {names}")
        return sibling_id

    def retype(self, field: NestedField, target: IcebergType, label: str) -> None:
        """Widen a column."""
        current = field.field_type
        if current == target:
            return
        if not promotable(current, target, format_version=self.metadata.format_version):
            raise InvalidInput(
                f"column '{label}' cannot change from {current} to {target}; columns can only be "
                "widened: int to long, float to double, decimal to more digits of the same scale, "
                "date to timestamp"
            )
        owner = owners(self.root)[field.field_id]
        parent = None if owner == ROOT else self.by_id(owner).field_type
        if isinstance(parent, MapType) and parent.key_id == field.field_id:
            raise InvalidInput(f"column '{label}' is the key of a map and cannot change")
        for spec in self.metadata.partition_specs:
            for part in spec.fields:
                if field.field_id in part.source_ids and not keeps_partitions(
                    part.transform, current, target
                ):
                    raise InvalidInput(
                        f"column '{label}' cannot change from {current} to {target}: "
                        f"partition field '{part.name}' ({part.transform}) would get other values"
                    )
        changes: dict[str, Any] = {"field_type": target}
        for name in ("initial_default", "write_default"):
            value = getattr(field, name)
            if value is not None:
                changes[name] = promoted_default(value, target)
        self.edit_field(field.field_id, changes)

    # Checking

    def folded(self, name: str) -> str:
        """A name as names are compared."""
        return name if self._case_sensitive else name.lower()

    def check_name(self, owner: int, name: str, *, renamed: int | None = None) -> None:
        """Refuse names that are taken, among siblings or by what comes with every table."""
        if not isinstance(name, str) or not name or name != name.strip():
            raise InvalidInput(f"{name!r} is not a name for a column")
        for child in self.children(owner):
            if self.folded(child.name) == self.folded(name) and child.field_id != renamed:
                raise InvalidInput(f"column '{child.name}' already exists")
        if owner != ROOT:
            return
        if name in _RESERVED:
            raise InvalidInput(f"'{name}' is the name of a metadata column; choose another")
        if name.lower().startswith(RESERVED):
            raise InvalidInput(f"'{name}' is reserved, as are all names that begin with {RESERVED}")
        for part in self.metadata.spec().fields:
            if part.name == name and part.source_ids != (renamed,):
                raise InvalidInput(
                    f"'{name}' is the name of a partition field; choose another, or rename that"
                )

    def check_unused(self, field: NestedField, name: str) -> None:
        """Refuse to lose a column that partitioning, sorting or identity relies on."""
        dropped_ids = set(ids_in(field))
        for part in self.metadata.spec().fields:
            if not dropped_ids.isdisjoint(part.source_ids):
                raise InvalidInput(
                    f"column '{name}' cannot be dropped: the table is partitioned by it "
                    f"('{part.name}'). Change the partitioning first."
                )
        if any(term.source_id in dropped_ids for term in self.metadata.sort_order().fields):
            raise InvalidInput(
                f"column '{name}' cannot be dropped: the table is sorted by it. "
                "Change the sort order first."
            )
        if dropped_ids & self.identifiers:
            raise InvalidInput(
                f"column '{name}' cannot be dropped: it identifies rows. "
                "Change the identifier fields first."
            )

    def check_required(
        self, field: NestedField, name: str, required: bool, *, allow_incompatible: bool = False
    ) -> None:
        """Refuse nulls where they must not be, and the promise that there are none."""
        if required and not allow_incompatible:
            raise InvalidInput(
                f"column '{name}' is optional and may hold nulls; pass allow_incompatible=True "
                "if it holds none"
            )
        if not required and not self.identifiers.isdisjoint(ids_in(field)):
            raise InvalidInput(f"column '{name}' identifies rows and must stay required")

    def check_identifier(self, field_id: int, name: str) -> None:
        """Refuse a column that cannot identify rows."""
        try:
            Schema(*self.root.fields, identifier_field_ids=[field_id])
        except ValueError as error:
            raise InvalidInput(
                f"column '{name}' cannot identify rows: identifier columns are required, also the "
                "structs around them, and neither float, double nor nested, nor in a list or map"
            ) from error


def _parts(path: ColumnPath) -> tuple[str, ...]:
    parts = (path,) if isinstance(path, str) else tuple(path)
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise InvalidInput(f"{path!r} is not the name of a column")
    return parts


def split(path: ColumnPath) -> tuple[tuple[str, ...], str]:
    """The way to a new column and its name; text is cut at dots, a sequence is not."""
    if isinstance(path, str):
        parents, _, name = path.rpartition(".")
        return ((parents,) if parents else ()), name
    *above, name = _parts(path)
    return tuple(above), name


def path_name(path: ColumnPath) -> str:
    """A path as one name."""
    return ".".join(_parts(path))


def unite(draft: SchemaDraft, incoming: Fields, *, relaxes: bool) -> None:
    """Take new columns, wider types and docs into the draft, all or nothing.

    `relaxes`: a column that is optional in the other becomes optional.
    """
    before = draft.root
    union = _Union(draft=draft, relaxes=relaxes)
    union.fields(ROOT, incoming, "")
    if union.problems:
        draft.root = before
        listed = "".join(f"\n  - {problem}" for problem in union.problems)
        raise InvalidInput(f"The schemas cannot be united:{listed}")


@dataclass(slots=True, kw_only=True)
class _Union:
    """One pass over the incoming schema; every misfit is kept."""

    draft: SchemaDraft
    relaxes: bool
    problems: list[str] = field(default_factory=list)

    def fields(self, owner: int, incoming: Fields, prefix: str) -> None:
        draft = self.draft
        own_fields = {draft.folded(child.name): child for child in draft.children(owner)}
        for other in incoming:
            where = f"{prefix}{other.name}"
            own_field = own_fields.get(draft.folded(other.name))
            if own_field is not None:
                self._field(own_field, other, where)
                continue
            # Rows written before have no value: a new column is optional, whatever the other says.
            optional = replace(other, required=False, initial_default=None, write_default=None)
            try:
                draft.add(owner, optional, where=where)
            except InvalidInput as problem:
                self.problems.append(str(problem))

    def _field(self, mine: NestedField, other: NestedField, where: str) -> None:
        changes: dict[str, Any] = {}
        if other.doc and other.doc != mine.doc:
            changes["doc"] = other.doc
        if self.relaxes and mine.required and not other.required:
            changes["required"] = False
        try:
            if "required" in changes:
                self.draft.check_required(mine, where, False)
            self._type(mine, other.field_type, where)
        except InvalidInput as problem:
            self.problems.append(str(problem))
            return
        if changes:
            self.draft.edit_field(mine.field_id, changes)

    def _type(self, mine: NestedField, other: IcebergType, where: str) -> None:
        kind = mine.field_type
        version = self.draft.metadata.format_version
        if isinstance(kind, StructType) and isinstance(other, StructType):
            self.fields(mine.field_id, other.fields, f"{where}.")
        elif isinstance(kind, ListType) and isinstance(other, ListType):
            self._field(kind.element_field, other.element_field, f"{where}.element")
        elif isinstance(kind, MapType) and isinstance(other, MapType):
            self._field(kind.key_field, other.key_field, f"{where}.key")
            self._field(kind.value_field, other.value_field, f"{where}.value")
        elif kind != other and not promotable(other, kind, format_version=version):
            self.draft.retype(mine, other, where)
