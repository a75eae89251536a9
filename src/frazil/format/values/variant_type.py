"""The type `variant`, which PyIceberg has no class for, and how its values are held.

`VariantType` is a primitive to PyIceberg's visitors: it has no fields with ids. In Arrow a value is
a struct of two binaries, as in Iceberg and Parquet; a column of them is marked by the name of
Arrow's canonical extension type, in the field's metadata. The type itself is not used: pyarrow has
no class for it, and its Parquet writer ends the process on a Python class of that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field
from pyiceberg.schema import Schema
from pyiceberg.typedef import TableVersion
from pyiceberg.types import IcebergType, ListType, MapType, PrimitiveType, StructType

if TYPE_CHECKING:
    import pyarrow as pa

VARIANT: Final = "variant"
EXTENSION_NAME: Final = b"arrow.parquet.variant"
MARK: Final = {b"ARROW:extension:name": EXTENSION_NAME, b"ARROW:extension:metadata": b""}
"""Metadata of an Arrow field that holds variants."""


class VariantType(PrimitiveType):
    """A value of any type in every row: what JSON has, and dates, decimals, bytes and others."""

    root: Literal["variant"] = Field(default="variant")

    def minimum_format_version(self) -> TableVersion:
        """Variants came with format version 3."""
        return 3

    def __str__(self) -> str:
        return VARIANT

    def __repr__(self) -> str:
        return "VariantType()"


def has_variant(kind: IcebergType) -> bool:
    """Whether a type is a variant, or has one inside."""
    match kind:
        case VariantType():
            return True
        case StructType():
            return any(has_variant(field.field_type) for field in kind.fields)
        case ListType():
            return has_variant(kind.element_type)
        case MapType():
            return has_variant(kind.value_type) or has_variant(kind.key_type)
    return False


def variant_ids(schema: Schema) -> frozenset[int]:
    """The ids of columns, and of parts of them, that hold variants."""
    return frozenset(
        field_id
        for field_id in schema.field_ids
        if isinstance(schema.find_field(field_id).field_type, VariantType)
    )


def is_marked(field: pa.Field) -> bool:
    """Whether an Arrow field says that it holds variants."""
    return (field.metadata or {}).get(b"ARROW:extension:name") == EXTENSION_NAME


def has_marked(fields: Iterable[pa.Field]) -> bool:
    """Whether Arrow fields, or parts of them, hold variants."""
    return any(is_marked(field) or has_marked(parts_of(field.type)) for field in fields)


def parts_of(kind: pa.DataType) -> list[pa.Field]:
    """The fields inside a type; extension types hold no variants."""
    if hasattr(kind, "storage_type"):
        return []
    return [kind.field(at) for at in range(kind.num_fields)]


def load_schema(document: Any) -> Schema:
    """A schema from its JSON."""
    return Schema.model_validate(_with_types(document))


def _with_types(document: Any) -> Any:
    """The JSON of a schema with the name of the type replaced by the type, for PyIceberg's models;
    the document itself when it has none."""
    if isinstance(document, Mapping):
        made = {
            key: VariantType()
            if value == VARIANT and key in ("type", "element", "key", "value")
            else _with_types(value)
            if key in _NESTING
            else value
            for key, value in document.items()
        }
        return made if any(made[key] is not document[key] for key in made) else document
    if isinstance(document, list | tuple):
        items = [_with_types(item) for item in document]
        return items if any(a is not b for a, b in zip(items, document, strict=True)) else document
    return document


_NESTING: Final = frozenset({"fields", "type", "element", "key", "value"})
