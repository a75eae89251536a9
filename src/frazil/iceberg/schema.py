"""A table's columns: fields by id and by name, and what follows from them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from frazil.iceberg import types as ice
from frazil.iceberg.type_json import field_document, fields_of_documents
from frazil.value_classes import replace

if TYPE_CHECKING:
    from frazil.iceberg.name_mapping import NameMapping

Fields = tuple[ice.NestedField, ...]
_FIRST_ID: Final = 0


class Schema:
    """Columns in their order. Two schemas are equal when their columns are, whatever their ids."""

    def __init__(
        self,
        *fields: ice.NestedField,
        schema_id: int = _FIRST_ID,
        identifier_field_ids: Iterable[int] = (),
    ) -> None:
        self.fields: Final[Fields] = fields
        self.schema_id: Final = schema_id
        self.identifier_field_ids: Final = list(identifier_field_ids)
        self._ids_by_name = _ids_by_name(fields)
        for field_id in self.identifier_field_ids:
            self._check_identifier(field_id)

    # Values

    @property
    def columns(self) -> Fields:
        """The fields, by their other name."""
        return self.fields

    def as_struct(self) -> ice.StructType:
        """The columns as the fields of a struct."""
        return ice.StructType(*self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __bool__(self) -> bool:
        return True  # also without columns

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return (
            self.fields == other.fields and self.identifier_field_ids == other.identifier_field_ids
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.fields)

    def __str__(self) -> str:
        return "table {\n" + "\n".join(f"  {field}" for field in self.fields) + "\n}"

    def __repr__(self) -> str:
        columns = ", ".join(map(repr, self.fields))
        return (
            f"Schema({columns}, schema_id={self.schema_id}, "
            f"identifier_field_ids={self.identifier_field_ids})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.fields, self.schema_id, self.identifier_field_ids)

    # Fields by id and by name

    @cached_property
    def _fields_by_id(self) -> dict[int, ice.NestedField]:
        return index_by_id(self.fields)

    @cached_property
    def _names_by_id(self) -> dict[int, str]:
        return index_name_by_id(self.fields)

    @cached_property
    def _ids_by_lower_name(self) -> dict[str, int]:
        return {name.lower(): field_id for name, field_id in self._ids_by_name.items()}

    @property
    def field_ids(self) -> set[int]:
        """The ids of all columns and their parts."""
        return set(self._ids_by_name.values())

    @property
    def highest_field_id(self) -> int:
        """The highest of the ids, 0 without columns."""
        return max(self._ids_by_name.values(), default=0)

    @property
    def column_names(self) -> list[str]:
        """The full names of all columns and their parts."""
        return list(self._names_by_id.values())

    def get_field(self, field_id: int) -> ice.NestedField | None:
        """The column, or part of one, with an id, if there is one."""
        return self._fields_by_id.get(field_id)

    def find_field(self, name_or_id: str | int, case_sensitive: bool = True) -> ice.NestedField:
        """The column, or part of one, of that full name or id. Raises ValueError."""
        if isinstance(name_or_id, int):
            field = self._fields_by_id.get(name_or_id)
            if field is None:
                raise ValueError(f"Could not find field with id: {name_or_id}")
            return field
        if case_sensitive:
            field_id = self._ids_by_name.get(name_or_id)
        else:
            field_id = self._ids_by_lower_name.get(name_or_id.lower())
        if field_id is None:
            raise ValueError(
                f"Could not find field with name {name_or_id}, case_sensitive={case_sensitive}"
            )
        return self._fields_by_id[field_id]

    def find_type(self, name_or_id: str | int, case_sensitive: bool = True) -> ice.IcebergType:
        """The type of the column of that full name or id. Raises ValueError."""
        return self.find_field(name_or_id, case_sensitive).field_type

    def find_column_name(self, field_id: int) -> str | None:
        """The full name of the column with an id, if there is one."""
        return self._names_by_id.get(field_id)

    def identifier_field_names(self) -> set[str]:
        """The full names of the columns that identify rows."""
        return {self._names_by_id[field_id] for field_id in self.identifier_field_ids}

    @cached_property
    def parent_ids(self) -> dict[int, int]:
        """Field id to the id of the field around it; columns are not in it."""
        return {
            inner.field_id: field.field_id
            for field in self._fields_by_id.values()
            for inner in field.field_type.inner_fields
        }

    @cached_property
    def name_mapping(self) -> NameMapping:
        """The names that columns have now, for files without field ids."""
        from frazil.iceberg.name_mapping import mapping_of

        return mapping_of(self.fields)

    # Parts of it

    def select(self, *names: str, case_sensitive: bool = True) -> Schema:
        """The schema of these columns alone, in its own order. Raises ValueError."""
        ids = {self.find_field(name, case_sensitive).field_id for name in names}
        return prune_columns(self, ids)

    # Rules

    def check_format_version_compatibility(self, format_version: int) -> None:
        """Refuse types that a format version does not have. Raises ValueError."""
        for field in self._fields_by_id.values():
            first = field.field_type.minimum_format_version()
            if format_version < first:
                raise ValueError(
                    f"{field.field_type} is only supported in {first} or higher. "
                    f"Current format version is: {format_version}"
                )

    def _check_identifier(self, field_id: int) -> None:
        field = self.find_field(field_id)
        parents: list[ice.NestedField] = []
        parent = self.parent_ids.get(field_id)
        while parent is not None:
            parents.append(self._fields_by_id[parent])
            parent = self.parent_ids.get(parent)
        if not field.field_type.is_primitive:
            problem = f"it is a {str(field.field_type).split('<', 1)[0]}"
        elif isinstance(field.field_type, ice.DoubleType | ice.FloatType):
            problem = f"it is a {field.field_type}"
        elif not field.required:
            problem = "it is not required"
        elif not all(outer.field_type.is_struct for outer in parents):
            problem = "it is inside a list or a map"
        elif not all(outer.required for outer in parents):
            problem = "it is inside a struct that is not required"
        else:
            return
        raise ValueError(f"field {field_id} ({field.name}) cannot identify rows: {problem}")


def _unpickled(fields: Fields, schema_id: int, identifier_field_ids: list[int]) -> Schema:
    return Schema(*fields, schema_id=schema_id, identifier_field_ids=identifier_field_ids)


# --- indexes -------------------------------------------------------------------------------------


def all_fields(fields: Iterable[ice.NestedField]) -> Iterator[ice.NestedField]:
    """The fields and everything inside them; a field comes before its parts."""
    for field in fields:
        yield field
        yield from all_fields(field.field_type.inner_fields)


def index_by_id(fields: Iterable[ice.NestedField]) -> dict[int, ice.NestedField]:
    """Field id to field, for fields and everything inside them."""
    return {field.field_id: field for field in all_fields(fields)}


def index_name_by_id(fields: Iterable[ice.NestedField]) -> dict[int, str]:
    """Field id to full name, for fields and everything inside them."""
    return {field_id: name for name, field_id, _ in _named(fields)}


def _named(
    fields: Iterable[ice.NestedField],
    prefix: str = "",
    short: str = "",
    *,
    of: ice.IcebergType | None = None,
) -> Iterator[tuple[str, int, str]]:
    """Full name, id and short name, of the fields and everything inside them. Short names leave out
    `element` and `value` where these are structs."""
    for field in fields:
        full, brief = f"{prefix}{field.name}", f"{short}{field.name}"
        yield full, field.field_id, brief
        kind = field.field_type
        is_value = isinstance(of, ice.MapType) and field.name != "key"
        is_item = isinstance(of, ice.ListType) or is_value
        is_left_out = is_item and isinstance(kind, ice.StructType)
        below = short if is_left_out else f"{brief}."
        yield from _named(kind.inner_fields, f"{full}.", below, of=kind)


def _ids_by_name(fields: Fields) -> dict[str, int]:
    """Full and short names to ids; a full name goes before a short one. Raises ValueError."""
    full: dict[str, int] = {}
    short: dict[str, int] = {}
    for name, field_id, brief in _named(fields):
        if name in full:
            raise ValueError(
                f"two fields have the full name '{name}': ids {full[name]} and {field_id}"
            )
        full[name] = field_id
        short[brief] = field_id
    return short | full


# --- schemas made of schemas ---------------------------------------------------------------------


def prune_columns(schema: Schema, ids: Collection[int]) -> Schema:
    """The schema with the fields of these ids, whole, and with what is around them."""
    fields = (_pruned(field, ids) for field in schema.fields)
    return Schema(
        *(field for field in fields if field is not None),
        schema_id=schema.schema_id,
        identifier_field_ids=[id for id in schema.identifier_field_ids if id in ids],
    )


def _pruned(field: ice.NestedField, ids: Collection[int]) -> ice.NestedField | None:
    if field.field_id in ids:
        return field
    kind = field.field_type
    if isinstance(kind, ice.MapType) and _pruned(kind.value_field, ids) is None:
        # Without the value a key would be alone.
        return field if _pruned(kind.key_field, ids) else None
    if isinstance(kind, ice.StructType):
        parts = [part for inner in kind.fields if (part := _pruned(inner, ids)) is not None]
        return _with_type(field, ice.StructType(*parts)) if parts else None
    if isinstance(kind, ice.ListType):
        element = _pruned(kind.element_field, ids)
        return element and _with_type(field, replace(kind, element_type=element.field_type))
    if isinstance(kind, ice.MapType):
        value = _pruned(kind.value_field, ids)
        return value and _with_type(field, replace(kind, value_type=value.field_type))
    return None


def _with_type(field: ice.NestedField, kind: ice.IcebergType) -> ice.NestedField:
    return field if field.field_type == kind else replace(field, field_type=kind)


def freshly_numbered(schema: Schema, *, first: int = 1) -> Schema:
    """The schema with new ids: those of a struct's fields first, then what is inside them."""
    ids = count(first)
    fresh_ids: dict[int, int] = {}

    def numbered(field_id: int) -> int:
        fresh_ids[field_id] = next(ids)
        return fresh_ids[field_id]

    def fields_of(fields: Fields) -> Iterator[ice.NestedField]:
        new_ids = [numbered(field.field_id) for field in fields]
        for field_id, field in zip(new_ids, fields, strict=True):
            yield replace(field, field_id=field_id, field_type=type_of(field.field_type))

    def type_of(kind: ice.IcebergType) -> ice.IcebergType:
        if isinstance(kind, ice.StructType):
            return ice.StructType(*fields_of(kind.fields))
        if isinstance(kind, ice.ListType):
            element_id = numbered(kind.element_id)
            return replace(kind, element_id=element_id, element_type=type_of(kind.element_type))
        if isinstance(kind, ice.MapType):
            key_id, value_id = numbered(kind.key_id), numbered(kind.value_id)
            return replace(
                kind,
                key_id=key_id,
                key_type=type_of(kind.key_type),
                value_id=value_id,
                value_type=type_of(kind.value_type),
            )
        return kind

    fields = tuple(fields_of(schema.fields))
    identifiers = [fresh_ids[field_id] for field_id in schema.identifier_field_ids]
    return Schema(*fields, identifier_field_ids=identifiers)


# --- JSON ----------------------------------------------------------------------------------------


def load_schema(document: Any) -> Schema:
    """A schema from the JSON of metadata. Raises ValueError."""
    if not isinstance(document, Mapping):
        raise ValueError(f"a schema is {document!r}; expected an object")
    schema_id = document.get("schema-id", _FIRST_ID)
    identifiers = document.get("identifier-field-ids")
    if type(schema_id) is not int:
        raise ValueError(f"schema-id is {schema_id!r}; expected a whole number")
    if identifiers is not None and not (
        isinstance(identifiers, list) and all(type(field_id) is int for field_id in identifiers)
    ):
        raise ValueError(f"identifier-field-ids is {identifiers!r}; expected a list of field ids")
    fields = fields_of_documents(document.get("fields"))
    return Schema(*fields, schema_id=schema_id, identifier_field_ids=identifiers or ())


def schema_document(schema: Schema) -> dict[str, Any]:
    """A schema as the JSON of metadata."""
    return {
        "type": "struct",
        "fields": list(map(field_document, schema.fields)),
        "schema-id": schema.schema_id,
        "identifier-field-ids": schema.identifier_field_ids,
    }
