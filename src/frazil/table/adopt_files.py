"""Parquet files that exist already, described as entries: footers are read, rows are not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from frazil.arrow_parquet import row_group_offsets
from frazil.commit.handle import TableHandle
from frazil.commit.head import Neighbour
from frazil.data.projection import file_fields, projection
from frazil.data.read.sources import ParquetSource, explained
from frazil.data.statistics.footer import footer_stats
from frazil.data.write.write_files import derived_stats, metrics_of
from frazil.errors import FormatError, InvalidInput
from frazil.filter.transforms import joint_array, transform_array
from frazil.format import paths
from frazil.format.checks import repeated
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, partition_key, stats_key
from frazil.format.entries.tracking import Status
from frazil.format.metadata.metadata import TableMetadata
from frazil.format.values.types import arrow_type, scalar_value
from frazil.iceberg.name_mapping import NameMapping
from frazil.iceberg.partitioning import PartitionField
from frazil.iceberg.schema import Schema
from frazil.iceberg.transforms import IdentityTransform
from frazil.iceberg.types import IcebergType
from frazil.maintenance.progress import Progress, silent
from frazil.properties.registry import NAME_MAPPING
from frazil.storage import Storage
from frazil.storage.base import RandomAccess, is_local, local_path
from frazil.storage.places import is_pattern, matching, root_of, values_in_path, visible
from frazil.table.columns.merged_names import MergedNames
from frazil.tree.locate import locate
from frazil.tree.table_shape import shape_of
from frazil.value_classes import frozen

_ENDINGS: Final = (".parquet", ".parq")


@frozen
class FoundFiles:
    """Files as entries; `mapping` is the name mapping to set on the table, None to leave it."""

    entries: EntryBatch
    mapping: str | None


def describe(
    handle: TableHandle,
    files: str | Sequence[str],
    *,
    check_duplicates: bool,
    progress: Progress = silent,
) -> FoundFiles:
    """Entries for Parquet files; refuses files that do not fit the table, naming each."""
    file_names = [files] if isinstance(files, str) else files
    if not file_names:
        raise InvalidInput("add_files needs at least one file")
    files = [file for name in file_names for file in _expanded(handle.storage, _absolute(name))]
    stored = [paths.relativise(handle.location, path) for path in files]
    if twice := repeated(stored):
        raise InvalidInput(f"files given twice: {', '.join(twice[:5])}")
    if isinstance(handle.head, Neighbour):
        handle.head.refuse_files_of_others(handle.metadata, [*stored, *_targets(handle, stored)])
    if check_duplicates:
        _check_not_listed(handle, stored)
    name_mapping = NAME_MAPPING.of(handle.metadata.properties)
    names = MergedNames.of(name_mapping, handle.metadata.schema().name_mapping)
    sources: list[_Source] = []
    for number, location in enumerate(stored, start=1):
        sources.append(_Source.open(handle, location, names))
        progress(number, len(stored), "files")
    rows = [_entry(handle, source) for source in sources]
    types = shape_of(handle.metadata).stats_types
    types |= partition_types(handle.metadata)
    by_name = not all(source.has_ids for source in sources)
    return FoundFiles(
        entries=EntryBatch.from_rows(rows, types),
        mapping=names.mapping.json() if by_name and names.mapping != name_mapping else None,
    )


def _expanded(storage: Storage, path: str) -> list[str]:
    """The files that a path stands for: itself, those below it, or those that match it."""
    if is_pattern(path) and not storage.exists(path):
        listed = (file.path for file in storage.list(root_of(path)))
        if chosen := matching(listed, path):
            return chosen
        raise InvalidInput(f"{path}: no file matches")
    is_folder = path.endswith("/") or not path.endswith(_ENDINGS)
    if is_local(path):
        is_folder = os.path.isdir(local_path(path))
    if not is_folder:
        return [path]
    listed = (file.path for file in storage.list(path))
    if chosen := visible(listed, path, _ENDINGS):
        return chosen
    raise InvalidInput(f"{path}: no Parquet files in this folder")


def _absolute(path: str) -> str:
    if not isinstance(path, str) or "\0" in path:
        raise InvalidInput(f"{path!r} is not the path of a file; expected text")
    if paths.is_absolute(path):
        if ".." in path.split("/"):
            raise InvalidInput(f"{path}: a '..' segment is not allowed in the path of a file")
        return path
    return f"file://{Path(path).resolve()}"


def _targets(handle: TableHandle, stored: Sequence[str]) -> list[str]:
    """What local files that are links lead to: it is read in their place."""
    addresses = [paths.resolve(handle.location, location) for location in stored]
    local = [local_path(address) for address in addresses if is_local(address)]
    return [f"file://{os.path.realpath(path)}" for path in local if os.path.islink(path)]


def _check_not_listed(handle: TableHandle, stored: Sequence[str]) -> None:
    reader = handle.reader()
    entries = EntryBatch.from_rows([{"location": location} for location in stored])
    located = locate(reader, reader.tree(handle.state.tip()), entries)
    listed = sorted(set(stored) - set(located.missing))
    if listed:
        raise InvalidInput(
            f"already in the table: {', '.join(listed[:5])}{' …' if len(listed) > 5 else ''}. "
            "check_duplicates=False skips this check, but rows of a file that is listed twice "
            "are read twice"
        )


@frozen
class _Source:
    location: str
    path: str
    size: int
    footer: Any
    mapping: NameMapping
    has_ids: bool
    columns: frozenset[int | None]
    """Ids of the columns that the file has."""

    @staticmethod
    def open(handle: TableHandle, location: str, names: MergedNames) -> _Source:
        metadata = handle.metadata
        path = paths.resolve(handle.location, location)
        access = handle.storage.open(path)
        mapping = names.mapping
        with explained(path):
            source = _parquet(access, path)
            fields = file_fields(source.schema, mapping)
            has_ids = any(b"PARQUET:field_id" in (field.metadata or {}) for field in source.schema)
            if not has_ids:
                names.check(source.schema.names, path)
            projection(fields, metadata.schema())
        return _Source(
            location=location,
            path=path,
            size=access.size,
            footer=source.footer,
            mapping=mapping,
            has_ids=has_ids,
            columns=frozenset(field.field_id for field in fields),
        )


def _parquet(access: RandomAccess, path: str) -> ParquetSource:
    try:
        return ParquetSource(access)
    except (pa.ArrowException, FormatError) as error:
        if path.endswith(_ENDINGS):
            raise
        raise InvalidInput(
            f"{path}: not a Parquet file, and add_files references Parquet files only; load the "
            "rows with append, in the terminal with `frazil append TABLE FILE`"
        ) from error


def _entry(handle: TableHandle, source: _Source) -> dict[str, Any]:
    metadata = handle.metadata
    schema = metadata.schema()
    footer = source.footer
    metrics = metrics_of(metadata.properties, schema, metadata.spec(), metadata.row_order())
    stats = footer_stats(footer, schema, metrics, name_mapping=source.mapping)
    partition = _partition(metadata, stats, source)
    spec = metadata.spec()
    return {
        "tracking.status": int(Status.ADDED),
        "content_type": int(ContentType.DATA),
        "location": source.location,
        "file_format": "parquet",
        "record_count": footer.num_rows,
        "file_size_in_bytes": source.size,
        "spec_id": spec.spec_id if spec.fields else None,
        "split_offsets": list(row_group_offsets(footer)) or None,
        **{partition_key(id): value for id, value in partition.items()},
        **stats,
        **derived_stats(metadata.expressions, partition, footer.num_rows),
    }


def _partition(metadata: TableMetadata, stats: dict[str, Any], source: _Source) -> dict[int, Any]:
    """Partition values from bounds: both ends must give the same value. A column that the file
    lacks has the value that its path says."""
    values: dict[int, Any] = {}
    schema = metadata.schema()
    path = source.path
    path_values = values_in_path(path)
    parts = {part.source_id for part in metadata.spec().fields if _is_identity(part)}
    for name in path_values:
        column = next((field for field in schema.fields if field.name == name), None)
        if column and column.field_id not in source.columns and column.field_id not in parts:
            raise FormatError(
                f"only the path has a value for column {name!r}; partition the table by it, or "
                "load the file with append",
                path=path,
                field=name,
            )
    for part in metadata.spec().fields:
        if part.is_joint:
            values[part.field_id] = _joint_value(part, schema, stats, path)
            continue
        name = schema.find_column_name(part.source_id) or ""
        if part.source_id not in source.columns and _is_identity(part) and name in path_values:
            values[part.field_id] = _value(
                path_values[name], schema.find_type(part.source_id), path, name
            )
            continue
        lower = stats.get(stats_key(part.source_id, "lower_bound"))
        upper = stats.get(stats_key(part.source_id, "upper_bound"))
        nulls = stats.get(stats_key(part.source_id, "null_value_count"))
        count = stats.get(stats_key(part.source_id, "value_count"))
        kind = schema.find_type(part.source_id)
        if lower is None and nulls is not None and nulls == count:
            values[part.field_id] = None
            continue
        low = high = None
        if lower is not None:
            ends = pa.array([lower, upper], arrow_type(kind))
            low, high = map(scalar_value, transform_array(part.transform, ends, kind))
        exact = lower == upper or part.transform.preserves_order
        if lower is None or low != high or nulls or not exact:
            raise FormatError(
                f"rows of more than one partition, or no statistics to tell: {part.name} is "
                f"{low!r} to {high!r} with {nulls} nulls. Rewrite the file with append.",
                path=path,
                field=part.name,
            )
        values[part.field_id] = low
    return values


def _is_identity(part: PartitionField) -> bool:
    return isinstance(part.transform, IdentityTransform)


def _value(text: str | None, kind: IcebergType, path: str, name: str) -> Any:
    """The value that a path says, in the type of the column."""
    if text is None:
        return None
    try:
        return pa.scalar(text).cast(arrow_type(kind)).as_py()
    except pa.ArrowException as error:
        raise FormatError(
            f"the path says {text!r}; expected a {kind}", path=path, field=name
        ) from error


def _joint_value(part: PartitionField, schema: Schema, stats: dict[str, Any], path: str) -> Any:
    """The partition value of several columns: each must have one value in the whole file."""
    kinds = [schema.find_type(source) for source in part.source_ids]
    arrays: list[pa.Array] = []
    for source, kind in zip(part.source_ids, kinds, strict=True):
        lower, upper, nulls, count = (
            stats.get(stats_key(source, name))
            for name in ("lower_bound", "upper_bound", "null_value_count", "value_count")
        )
        if lower is None and nulls is not None and nulls == count:
            return None
        if lower is None or lower != upper or nulls != 0:
            raise FormatError(
                f"rows of more than one partition, or no statistics to tell: {part.name} needs one "
                f"value of '{schema.find_column_name(source)}', which is {lower!r} to {upper!r} "
                f"with {nulls} nulls. Rewrite the file with append.",
                path=path,
                field=part.name,
            )
        arrays.append(pa.array([lower], arrow_type(kind)))
    return joint_array(part.transform, arrays, kinds)[0].as_py()


def partition_types(metadata: TableMetadata) -> dict[str, pa.DataType]:
    """Arrow types of the partition columns of every spec."""
    types: dict[str, pa.DataType] = {}
    types_by_id = {
        field_id: schema.find_type(field_id)
        for schema in (*metadata.schemas, metadata.schema())
        for field_id in schema.field_ids
    }
    for spec in metadata.partition_specs:
        for part in spec.fields:
            if part.source_id in types_by_id:
                result = part.transform.result_type(types_by_id[part.source_id])
                types[partition_key(part.field_id)] = arrow_type(result)
    return types
