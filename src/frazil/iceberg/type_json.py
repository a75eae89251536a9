"""Types and fields in the JSON of metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from frazil.iceberg import types as ice


def type_of_document(document: Any) -> ice.IcebergType:
    """A type from the JSON of metadata. Raises ValueError."""
    if isinstance(document, str):
        return ice.primitive_type(document)
    kind = document.get("type") if isinstance(document, Mapping) else None
    if kind == "struct":
        return ice.StructType(*fields_of_documents(document.get("fields")))
    if kind == "list":
        return ice.ListType(
            element_id=_need(document, "element-id", int),
            element_type=type_of_document(document.get("element")),
            element_required=_need(document, "element-required", bool, default=True),
        )
    if kind == "map":
        return ice.MapType(
            key_id=_need(document, "key-id", int),
            key_type=type_of_document(document.get("key")),
            value_id=_need(document, "value-id", int),
            value_type=type_of_document(document.get("value")),
            value_required=_need(document, "value-required", bool, default=True),
        )
    raise ValueError(f"{document!r} is not a type of Iceberg")


def fields_of_documents(documents: Any) -> tuple[ice.NestedField, ...]:
    """Fields from the JSON of a struct or a schema. Raises ValueError."""
    if not isinstance(documents, list | tuple):
        raise ValueError(f"fields is {documents!r}; expected a list")
    return tuple(map(_field_of, documents))


def _field_of(document: Any) -> ice.NestedField:
    if not isinstance(document, Mapping):
        raise ValueError(f"a field is {document!r}; expected an object")
    name = _need(document, "name", str)
    try:
        kind = type_of_document(document.get("type"))
        return ice.NestedField(
            field_id=_need(document, "id", int),
            name=name,
            field_type=kind,
            required=_need(document, "required", bool, default=False),
            doc=None if document.get("doc") is None else _need(document, "doc", str),
            initial_default=_default(document.get("initial-default"), kind),
            write_default=_default(document.get("write-default"), kind),
        )
    except ValueError as error:
        raise ValueError(f"field {name!r}: {error}") from error


def _default(value: Any, kind: ice.IcebergType) -> Any:
    if value is None:
        return None
    from frazil.iceberg.default_values import default_of_json

    return default_of_json(value, kind)


def _need(document: Mapping[str, Any], key: str, kind: type, *, default: Any = None) -> Any:
    value = document.get(key, default)
    if type(value) is not kind:
        raise ValueError(f"{key} is {value!r}; expected {_KINDS[kind]}")
    return value


_KINDS: Final[dict[type, str]] = {int: "a whole number", str: "text", bool: "true or false"}


def type_document(kind: ice.IcebergType) -> Any:
    """A type as JSON."""
    if isinstance(kind, ice.StructType):
        return {"type": "struct", "fields": list(map(field_document, kind.fields))}
    if isinstance(kind, ice.ListType):
        return {
            "type": "list",
            "element-id": kind.element_id,
            "element": type_document(kind.element_type),
            "element-required": kind.element_required,
        }
    if isinstance(kind, ice.MapType):
        return {
            "type": "map",
            "key-id": kind.key_id,
            "key": type_document(kind.key_type),
            "value-id": kind.value_id,
            "value": type_document(kind.value_type),
            "value-required": kind.value_required,
        }
    return str(kind)


def field_document(field: ice.NestedField) -> dict[str, Any]:
    """A field as JSON."""
    document: dict[str, Any] = {
        "id": field.field_id,
        "name": field.name,
        "type": type_document(field.field_type),
        "required": field.required,
    }
    if field.doc is not None:
        document["doc"] = field.doc
    for key, value in (
        ("initial-default", field.initial_default),
        ("write-default", field.write_default),
    ):
        if value is not None:
            from frazil.iceberg.default_values import json_of_default

            document[key] = json_of_default(value, field.field_type)
    return document
