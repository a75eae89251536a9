"""Names of columns for files without field ids: which name means which field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from frazil.iceberg.types import NestedField
from frazil.value_classes import dataclass, frozen


@frozen
class MappedField:
    """A field, its names, and the fields inside it; an id of None means that it is not read."""

    names: tuple[str, ...]
    field_id: int | None = None
    fields: tuple[MappedField, ...] = ()

    def document(self) -> dict[str, Any]:
        """The field as JSON."""
        document: dict[str, Any] = {"names": list(self.names)}
        if self.field_id is not None:
            document["field-id"] = self.field_id
        if self.fields:
            document["fields"] = [field.document() for field in self.fields]
        return document


@dataclass(frozen=True, slots=True)
class NameMapping:
    """The names of a table's columns."""

    fields: tuple[MappedField, ...] = ()

    def __iter__(self) -> Iterator[MappedField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def json(self) -> str:
        """The mapping as a table property has it."""
        return json.dumps([field.document() for field in self.fields], separators=(",", ":"))


def mapping_of(fields: Iterable[NestedField]) -> NameMapping:
    """The names that columns have now."""
    return NameMapping(_mapped(fields))


def _mapped(fields: Iterable[NestedField]) -> tuple[MappedField, ...]:
    return tuple(
        MappedField(
            names=(field.name,),
            field_id=field.field_id,
            fields=_mapped(field.field_type.inner_fields),
        )
        for field in fields
    )


def parse_mapping(text: str) -> NameMapping:
    """A mapping from a table property. Raises ValueError."""
    return NameMapping(_load_fields(json.loads(text)))


def _load_fields(documents: Any) -> tuple[MappedField, ...]:
    if documents is None:
        return ()
    if not isinstance(documents, list):
        raise ValueError(f"{documents!r} is not a list of names")
    return tuple(map(_load_field, documents))


def _load_field(document: Any) -> MappedField:
    if not isinstance(document, Mapping):
        raise ValueError(f"{document!r} is not a field with names")
    names, field_id = document.get("names"), document.get("field-id")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names is {names!r}; expected a list of text")
    if field_id is not None and type(field_id) is not int:
        raise ValueError(f"field-id is {field_id!r}; expected a whole number")
    return MappedField(
        names=tuple(names), field_id=field_id, fields=_load_fields(document.get("fields"))
    )
