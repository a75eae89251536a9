"""What PyIceberg makes of values of ours, as an oracle."""

from __future__ import annotations

from typing import Any

from pyiceberg import conversions
from pyiceberg.transforms import parse_transform
from pyiceberg.types import PrimitiveType

from frazil.iceberg.pyiceberg_values import pyiceberg_type
from frazil.iceberg.transforms import Transform
from frazil.iceberg.types import IcebergType


def transformed(transform: Transform, kind: IcebergType, value: Any) -> Any:
    """What PyIceberg's transform of the same name makes of a value."""
    return parse_transform(str(transform)).transform(pyiceberg_type(kind))(value)


def to_bytes(kind: IcebergType, value: Any) -> bytes:
    """A single value as PyIceberg writes it into bounds."""
    return conversions.to_bytes(_primitive(kind), value)


def from_bytes(kind: IcebergType, data: bytes) -> Any:
    """A single value as PyIceberg reads it from bounds."""
    value: Any = conversions.from_bytes(_primitive(kind), data)
    return value


def _primitive(kind: IcebergType) -> PrimitiveType:
    made = pyiceberg_type(kind)
    assert isinstance(made, PrimitiveType)
    return made
