"""What PyIceberg has no classes for, as classes of its kind: for those who work with its objects.

Importing this imports PyIceberg.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field
from pyiceberg.partitioning import PartitionField
from pyiceberg.transforms import Transform, UnknownTransform
from pyiceberg.typedef import TableVersion
from pyiceberg.types import PrimitiveType

from frazil.iceberg.types import VARIANT


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


class KeptTransform(UnknownTransform[Any, Any]):
    """A transform that PyIceberg does not know, under its own name."""

    def __init__(self, text: str) -> None:
        super().__init__(transform=text)

    def __str__(self) -> str:
        return str(self._transform)


class JointField(PartitionField):
    """A partition field made from several columns; `source_id` is the first of `source_ids`."""

    source_ids: tuple[int, ...] = Field(alias="source-ids")

    def __init__(
        self,
        source_ids: Sequence[int] | None = None,
        field_id: int | None = None,
        transform: Transform[Any, Any] | None = None,
        name: str | None = None,
        **data: Any,
    ) -> None:
        sources = tuple(data.pop("source-ids", None) or source_ids or ())
        data["source-ids"] = sources
        super().__init__(
            source_id=sources[0], field_id=field_id, transform=transform, name=name, **data
        )
