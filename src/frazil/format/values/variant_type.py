"""Columns of the type `variant`, and how their values are held.

In Arrow a value is a struct of two binaries, as in Iceberg and Parquet; a column of them is marked
by the name of Arrow's canonical extension type, in the field's metadata. No extension type is used:
pyarrow has no class for it, and its Parquet writer crashes on a Python class with that name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from frazil.iceberg.schema import Schema, all_fields
from frazil.iceberg.types import IcebergType, VariantType

if TYPE_CHECKING:
    import pyarrow as pa

EXTENSION_NAME: Final = b"arrow.parquet.variant"
MARK: Final = {b"ARROW:extension:name": EXTENSION_NAME, b"ARROW:extension:metadata": b""}
"""Metadata of an Arrow field that holds variants."""


def has_variant(kind: IcebergType) -> bool:
    """Whether a type is a variant, or has one inside."""
    return isinstance(kind, VariantType) or any(
        has_variant(field.field_type) for field in kind.inner_fields
    )


def variant_ids(schema: Schema) -> frozenset[int]:
    """The ids of columns, and of parts of them, that hold variants."""
    return frozenset(
        field.field_id
        for field in all_fields(schema.fields)
        if isinstance(field.field_type, VariantType)
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
