"""Two schemas united by name: what one has more goes into the other."""

from __future__ import annotations

from typing import Any

from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

from frazil.errors import InvalidInput
from frazil.format.metadata.definition_checks import promotable
from frazil.table.columns.column_tree import ROOT, Fields
from frazil.table.columns.schema_draft import SchemaDraft
from frazil.value_classes import dataclass, field


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
        mine = {draft.folded(child.name): child for child in draft.children(owner)}
        for other in incoming:
            where = f"{prefix}{other.name}"
            known = mine.get(draft.folded(other.name))
            if known is not None:
                self._field(known, other, where)
                continue
            # Rows written before have no value: a new column is optional, whatever the other says.
            optional = other.model_copy(
                update={"required": False, "initial_default": None, "write_default": None}
            )
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
