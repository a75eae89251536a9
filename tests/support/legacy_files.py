"""Manifest lists and manifests of v1 to v3, written and read back with PyIceberg.

PyIceberg has writers for v1 and v2; v3 files are written with its Avro writer and its v3 schemas.
Nothing here uses Frazil.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from frazil.iceberg.pyiceberg_values import (
    AnySchema,
    AnySpec,
    pyiceberg_schema,
    pyiceberg_spec,
)

Version = Literal[1, 2, 3]
IO = PyArrowFileIO()


def entry(
    version: Version,
    *,
    path: str,
    status: ManifestEntryStatus = ManifestEntryStatus.ADDED,
    snapshot_id: int | None = None,
    sequence_number: int | None = None,
    file_sequence_number: int | None = None,
    content: DataFileContent = DataFileContent.DATA,
    file_format: FileFormat = FileFormat.PARQUET,
    partition: Sequence[Any] = (),
    record_count: int = 1,
    file_size_in_bytes: int = 100,
    **others: Any,
) -> ManifestEntry:
    """A manifest entry of that version; `others` are further fields of its data file."""
    if version == 1:
        others["block_size_in_bytes"] = 64 << 20
    file = DataFile.from_args(
        _table_format_version=version,
        content=content,
        file_path=path,
        file_format=file_format,
        partition=Record(*partition),
        record_count=record_count,
        file_size_in_bytes=file_size_in_bytes,
        **others,
    )
    return ManifestEntry.from_args(
        _table_format_version=version,
        status=status,
        snapshot_id=snapshot_id,
        sequence_number=sequence_number,
        file_sequence_number=file_sequence_number,
        data_file=file,
    )


def write_manifest(
    path: Path,
    version: Version,
    entries: Sequence[ManifestEntry],
    *,
    schema: AnySchema,
    spec: AnySpec,
    block: int = 1,
    codec: str = "null",
) -> bytes:
    """A manifest file as bytes; `block` entries share an Avro block."""
    schema = schema if isinstance(schema, Schema) else pyiceberg_schema(schema)
    spec = spec if isinstance(spec, PartitionSpec) else pyiceberg_spec(spec)
    partition_type = spec.partition_type(schema)
    file_schema = manifest_entry_schema_with_data_file(
        version, data_file_with_partition(partition_type, version)
    )
    writer = AvroOutputFile[ManifestEntry](
        output_file=IO.new_output(str(path)),
        file_schema=file_schema,
        record_schema=file_schema,
        schema_name="manifest_entry",
        metadata={
            "schema": schema.model_dump_json(),
            "partition-spec-id": str(spec.spec_id),
            "format-version": str(version),
            "avro.codec": codec,
        },
    )
    with writer:
        for start in range(0, len(entries), block):
            writer.write_block(list(entries[start : start + block]))
    return path.read_bytes()


def write_list(path: Path, version: Version, manifests: Sequence[ManifestFile]) -> bytes:
    """A manifest list as bytes."""
    writer = AvroOutputFile[ManifestFile](
        output_file=IO.new_output(str(path)),
        file_schema=MANIFEST_LIST_FILE_SCHEMAS[version],
        record_schema=MANIFEST_LIST_FILE_SCHEMAS[version],
        schema_name="manifest_file",
        metadata={"format-version": str(version), "avro.codec": "null"},
    )
    with writer:
        writer.write_block(list(manifests))
    return path.read_bytes()


def manifest_row(version: Version, *, path: str, **others: Any) -> ManifestFile:
    """A row of a manifest list of that version, with plain values for what is not given."""
    values: dict[str, Any] = {
        "manifest_path": path,
        "manifest_length": 1000,
        "partition_spec_id": 0,
        "added_snapshot_id": 1,
        "added_files_count": 1,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": 1,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
    }
    if version > 1:
        values |= {"content": ManifestContent.DATA, "sequence_number": 1, "min_sequence_number": 1}
    return ManifestFile.from_args(_table_format_version=version, **{**values, **others})


def summary(
    lower: bytes | None,
    upper: bytes | None,
    *,
    contains_null: bool = False,
    contains_nan: bool | None = False,
) -> PartitionFieldSummary:
    """One partition field's summary."""
    return PartitionFieldSummary.from_args(
        contains_null=contains_null,
        contains_nan=contains_nan,
        lower_bound=lower,
        upper_bound=upper,
    )


def read_entries(path: Path, version: Version) -> list[ManifestEntry]:
    """A manifest's entries as PyIceberg reads them, with nothing inherited."""
    with AvroFile[ManifestEntry](
        IO.new_input(str(path)),
        MANIFEST_ENTRY_SCHEMAS[max(2, version)],  # v1 files are read as v2 ones
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        return list(reader)
