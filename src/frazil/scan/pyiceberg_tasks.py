"""Tasks as PyIceberg's `FileScanTask`, so that its readers and tools can take a Frazil plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import FileScanTask
from pyiceberg.typedef import Record

from frazil.data.slices import DataFileSlice
from frazil.errors import Unsupported
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.metadata import TableMetadata
from frazil.format.vectors.puffin import StoredVector
from frazil.scan.tasks import DeleteFile, Task

_VERSION: Final = 3


def file_scan_tasks(
    tasks: Iterable[Task], metadata: TableMetadata, *, where: BooleanExpression
) -> Iterator[FileScanTask]:
    """One PyIceberg task per file. Deletion vectors become delete files of theirs; PyIceberg
    cannot read equality deletes, so a file that has one is refused."""
    for task in tasks:
        if task.source.column_files:
            raise Unsupported(
                f"{task.location}: it has columns in column files, which PyIceberg cannot read; "
                "merge them first with table.compact(merge_columns=True)",
                feature="column files in PyIceberg",
            )
        deletes = {_delete_file(file, task, metadata) for file in task.deletes}
        if task.vector is not None:
            deletes.add(_vector_file(task.vector, task, metadata))
        yield FileScanTask(
            data_file=_data_file(task.source, metadata),
            delete_files=deletes,
            residual=AlwaysTrue() if task.must_match else where,
        )


def _data_file(
    source: DataFileSlice,
    metadata: TableMetadata,
    *,
    content: DataFileContent = DataFileContent.DATA,
) -> DataFile:
    data_file = DataFile.from_args(
        _table_format_version=_VERSION,
        content=content,
        file_path=source.path,
        file_format=FileFormat(source.file_format.upper()),
        partition=_partition(source, metadata),
        record_count=source.record_count,
        file_size_in_bytes=source.file_size_in_bytes,
        first_row_id=source.first_row_id,
    )
    data_file.spec_id = _spec_id(source, metadata)
    return data_file


def _vector_file(vector: StoredVector, task: Task, metadata: TableMetadata) -> DataFile:
    vector_file = DataFile.from_args(
        _table_format_version=_VERSION,
        content=DataFileContent.POSITION_DELETES,
        file_path=vector.location,
        file_format=FileFormat.PUFFIN,
        partition=_partition(task.source, metadata),
        record_count=vector.cardinality,
        file_size_in_bytes=vector.offset + vector.size_in_bytes,
        referenced_data_file=task.source.path,
        content_offset=vector.offset,
        content_size_in_bytes=vector.size_in_bytes,
    )
    vector_file.spec_id = _spec_id(task.source, metadata)
    return vector_file


def _delete_file(file: DeleteFile, task: Task, metadata: TableMetadata) -> DataFile:
    if file.content_type is ContentType.EQUALITY_DELETES:
        raise Unsupported(
            f"{task.location}: equality deletes apply to it, which PyIceberg cannot read; "
            "read it here, or turn them into deletion vectors first",
            feature="equality deletes in PyIceberg",
        )
    if file.vector is not None:
        return _vector_file(file.vector, task, metadata)
    return _data_file(file.source, metadata, content=DataFileContent.POSITION_DELETES)


def _spec_id(source: DataFileSlice, metadata: TableMetadata) -> int:
    if source.spec_id is not None:
        return source.spec_id
    unpartitioned_ids = [spec.spec_id for spec in metadata.partition_specs if not spec.fields]
    return unpartitioned_ids[0] if unpartitioned_ids else int(metadata.default_spec_id)


def _partition(source: DataFileSlice, metadata: TableMetadata) -> Record:
    spec = metadata.specs_by_id()[_spec_id(source, metadata)]
    return Record(*(source.partition.get(part.field_id) for part in spec.fields))
