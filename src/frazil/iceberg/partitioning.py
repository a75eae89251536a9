"""How files are partitioned: specs and their fields.

A partition field is made from one column or from several (`bucket[16](a, b)`, in JSON
`source-ids`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from frazil.errors import InvalidInput
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import (
    FieldList,
    Transform,
    VoidTransform,
    check_source,
    parse_transform,
)
from frazil.value_classes import dataclass, field, replace

FIRST_FIELD_ID: Final = 1000
"""The first id that a partition field can have."""
MAX_SOURCES: Final = 32
"""More columns than anybody partitions by together; a limit for what is read from JSON."""


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A value that all rows of a file have in common, and the columns that it is made from."""

    source_id: int
    """The column, the first one of several."""
    field_id: int
    transform: Transform
    name: str
    other_source_ids: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    def source_ids(self) -> tuple[int, ...]:
        """The columns that it is made from."""
        return self.source_id, *self.other_source_ids

    @property
    def is_joint(self) -> bool:
        """Whether it is made from several columns."""
        return bool(self.other_source_ids)

    def __str__(self) -> str:
        sources = ", ".join(map(str, self.source_ids))
        return f"{self.field_id}: {self.name}: {self.transform}({sources})"


class PartitionSpec(FieldList[PartitionField]):
    """The partition fields of files; none for files that are not partitioned."""

    __slots__ = ("spec_id",)
    ID = "spec_id"

    def __init__(self, *fields: PartitionField, spec_id: int = 0) -> None:
        self.fields = fields
        self.spec_id = spec_id

    @property
    def is_joint(self) -> bool:
        """Whether one of its fields is made from several columns."""
        return any(part.is_joint for part in self.fields)

    def is_unpartitioned(self) -> bool:
        """Whether it has no fields."""
        return not self.fields

    def check_compatible(self, schema: Schema) -> None:
        """Refuse columns that do not exist, or whose types cannot be transformed."""
        for part in self.fields:
            if not isinstance(part.transform, VoidTransform):
                for source_id in part.source_ids:
                    _check_source(part, source_id, schema)


UNPARTITIONED: Final = PartitionSpec()
"""The spec of a table that has none."""


def _check_source(part: PartitionField, source_id: int, schema: Schema) -> None:
    source = schema.get_field(source_id)
    check_source(source, part.transform, part, what="partition", verb="partition")
    outer_id = schema.parent_ids.get(source_id)
    while outer_id is not None:
        outer = schema.find_type(outer_id)
        if not outer.is_struct:
            raise InvalidInput(f"Invalid partition field parent: {outer}")
        outer_id = schema.parent_ids.get(outer_id)


def partition_field(
    sources: Sequence[int], *, field_id: int, transform: Transform, name: str
) -> PartitionField:
    """A partition field of one column or of several."""
    first, *others = sources
    return PartitionField(first, field_id, transform, name, other_source_ids=tuple(others))


# --- specs made of specs -------------------------------------------------------------------------


def published_spec(spec: PartitionSpec) -> PartitionSpec:
    """The spec with `void` in place of every transform of several columns.

    Readers of v3 look for one `source-id` and would take `bucket[16](a, b)` for `bucket[16](a)`;
    every version knows `void`, whose value is always null and prunes nothing.
    """
    if not spec.is_joint:
        return spec
    return PartitionSpec(*map(_published, spec.fields), spec_id=spec.spec_id)


def _published(part: PartitionField) -> PartitionField:
    if not part.is_joint:
        return part
    return replace(part, transform=VoidTransform(), other_source_ids=())


def as_known(spec: PartitionSpec, specs: Iterable[PartitionSpec]) -> PartitionSpec:
    """A client's spec with the fields of several columns that it was shown as `void`."""
    joint = {_published(part): part for old in specs for part in old.fields if part.is_joint}
    return PartitionSpec(*(joint.get(part, part) for part in spec.fields), spec_id=spec.spec_id)


def fresh_spec(spec: PartitionSpec, old: Schema, fresh: Schema) -> PartitionSpec:
    """The spec with the ids of a schema that was numbered afresh; its own ids from 1000 on. Raises
    ValueError."""
    fields: list[PartitionField] = []
    for position, part in enumerate(spec.fields):
        sources: list[int] = []
        for source_id in part.source_ids:
            name = old.find_column_name(source_id)
            if name is None:
                raise ValueError(f"no column has field id {source_id}, a source of '{part.name}'")
            sources.append(fresh.find_field(name).field_id)
        fields.append(
            partition_field(
                sources,
                field_id=FIRST_FIELD_ID + position,
                transform=part.transform,
                name=part.name,
            )
        )
    return PartitionSpec(*fields)


# --- JSON ----------------------------------------------------------------------------------------


def load_spec(document: Any) -> PartitionSpec:
    """A partition spec from the JSON of metadata. Raises ValueError."""
    if not isinstance(document, Mapping):
        raise ValueError(f"a partition spec is {document!r}; expected an object")
    spec_id, fields = document.get("spec-id", 0), document.get("fields")
    if type(spec_id) is not int:
        raise ValueError(f"spec-id is {spec_id!r}; expected a whole number")
    if not isinstance(fields, list):
        raise ValueError(f"fields is {fields!r}; expected a list")
    return PartitionSpec(*map(_load_field, fields), spec_id=spec_id)


def _load_field(document: Any) -> PartitionField:
    if not isinstance(document, Mapping):
        raise ValueError(f"a partition field is {document!r}; expected an object")
    sources = document.get("source-ids")
    if document.get("source-id") is not None and not (
        isinstance(sources, list) and len(sources) > 1
    ):
        sources = [document["source-id"]]
    if (
        not isinstance(sources, list)
        or not 1 <= len(sources) <= MAX_SOURCES
        or not all(type(source) is int for source in sources)
    ):
        raise ValueError(f"source-ids must list at most {MAX_SOURCES} field ids: {sources!r}")
    if len(set(sources)) != len(sources):
        raise ValueError(f"source-ids names a column twice: {sources}")
    field_id, name, text = (document.get(key) for key in ("field-id", "name", "transform"))
    if type(field_id) is not int:
        raise ValueError(f"field-id is {field_id!r}; expected a whole number")
    if not isinstance(name, str):
        raise ValueError(f"name is {name!r}; expected text")
    if not isinstance(text, str):
        raise ValueError(f"transform is {text!r}; expected text")
    transform = parse_transform(text, sources=len(sources))
    return partition_field(sources, field_id=field_id, transform=transform, name=name)


def spec_document(spec: PartitionSpec) -> dict[str, Any]:
    """A partition spec as JSON."""
    return {"spec-id": spec.spec_id, "fields": field_documents(spec)}


def field_documents(spec: PartitionSpec) -> list[dict[str, Any]]:
    """The fields of a partition spec as JSON."""
    return [
        {
            **(
                {"source-ids": list(part.source_ids)}
                if part.is_joint
                else {"source-id": part.source_id}
            ),
            "field-id": part.field_id,
            "transform": str(part.transform),
            "name": part.name,
        }
        for part in spec.fields
    ]
