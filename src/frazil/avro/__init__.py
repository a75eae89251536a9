"""Avro containers, read and written as columns: what Iceberg v1–v3 and Paimon manifests are in."""

from frazil.avro.by_field_id import RecordColumns, decode
from frazil.avro.container import Header, read_header

__all__ = ["Header", "RecordColumns", "decode", "read_header"]
