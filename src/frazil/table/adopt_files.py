"""Parquet files that exist already, described as entries: footers are read, rows are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.table.name_mapping import NameMapping

from frazil.commit.handle import TableHandle
from frazil.data.footer import footer_stats
from frazil.data.parquet_file import row_group_offsets
from frazil.data.projection import file_fields, projection
from frazil.data.read_files import name_mapping_of
from frazil.data.sources import ParquetSource, explained
from frazil.data.write_files import derived_stats, metrics_of
from frazil.errors import FormatError, InvalidInput
from frazil.format import paths
from frazil.format.batch import EntryBatch
from frazil.format.fields import ContentType, partition_key, stats_key
from frazil.format.metadata import TableMetadata
from frazil.format.stats import stats_types
from frazil.format.tracking import Status
from frazil.format.types import arrow_type
from frazil.table.merged_names import MergedNames
from frazil.tree.locate import locate
from frazil.tree.write import tracked_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    """Files as entries; `mapping` is the name mapping to set on the table, None to leave it."""

    entries: EntryBatch
    mapping: str | None


def describe(handle: TableHandle, files: Sequence[str], *, check_duplicates: bool) -> FoundFiles:
    """Entries for Parquet files; refuses files that do not fit the table, naming each."""
    if not files:
        raise InvalidInput("add_files needs at least one file")
    stored = [paths.relativise(handle.location, _absolute(path)) for path in files]
    repeated = sorted({path for path in stored if stored.count(path) > 1})
    if repeated:
        raise InvalidInput(f"files given twice: {', '.join(repeated[:5])}")
    if check_duplicates:
        _check_not_listed(handle, stored)
    known = name_mapping_of(handle.metadata.properties)
    names = MergedNames.of(known, handle.metadata.schema().name_mapping)
    sources = [_Source.open(handle, location, names) for location in stored]
    rows = [_entry(handle, source) for source in sources]
    types = stats_types(tracked_fields(handle.metadata))
    types |= partition_types(handle.metadata)
    by_name = not all(source.has_ids for source in sources)
    return FoundFiles(
        entries=EntryBatch.from_rows(rows, types),
        mapping=names.mapping.model_dump_json() if by_name and names.mapping != known else None,
    )


def _absolute(path: str) -> str:
    if not isinstance(path, str):
        raise InvalidInput(f"{path!r} is not the path of a file; expected text")
    if paths.is_absolute(path):
        if ".." in path.split("/"):
            raise InvalidInput(f"{path}: a '..' segment is not allowed in the path of a file")
        return path
    return f"file://{Path(path).resolve()}"


def _check_not_listed(handle: TableHandle, stored: Sequence[str]) -> None:
    reader = handle.reader()
    wanted = EntryBatch.from_rows([{"location": location} for location in stored])
    found = locate(reader, reader.tree(handle.state.tip()), wanted)
    known = sorted(set(stored) - set(found.missing))
    if known:
        raise InvalidInput(
            f"in the table already: {', '.join(known[:5])}{' …' if len(known) > 5 else ''}. "
            "check_duplicates=False skips this check, but rows of a file that is listed twice "
            "are read twice"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    location: str
    path: str
    size: int
    footer: Any
    mapping: NameMapping
    has_ids: bool

    @staticmethod
    def open(handle: TableHandle, location: str, names: MergedNames) -> _Source:
        metadata = handle.metadata
        path = paths.resolve(handle.location, location)
        access = handle.storage.open(path)
        mapping = names.mapping
        with explained(path):
            source = ParquetSource(access)
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
        )


def _entry(handle: TableHandle, source: _Source) -> dict[str, Any]:
    metadata = handle.metadata
    schema = metadata.schema()
    footer = source.footer
    metrics = metrics_of(metadata.properties, schema, metadata.spec(), metadata.sort_order())
    stats = footer_stats(footer, schema, metrics, name_mapping=source.mapping)
    partition = _partition(metadata, stats, source.path)
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


def _partition(metadata: TableMetadata, stats: dict[str, Any], path: str) -> dict[int, Any]:
    """Partition values from bounds: both ends must give the same value."""
    values: dict[int, Any] = {}
    schema = metadata.schema()
    for part in metadata.spec().fields:
        lower = stats.get(stats_key(part.source_id, "lower_bound"))
        upper = stats.get(stats_key(part.source_id, "upper_bound"))
        nulls = stats.get(stats_key(part.source_id, "null_value_count"))
        count = stats.get(stats_key(part.source_id, "value_count"))
        kind = schema.find_type(part.source_id)
        transform = part.transform.transform(kind)
        if lower is None and nulls is not None and nulls == count:
            values[part.field_id] = None
            continue
        low, high = (transform(lower), transform(upper)) if lower is not None else (None, None)
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


def partition_types(metadata: TableMetadata) -> dict[str, pa.DataType]:
    """Arrow types of the partition columns of every spec."""
    types: dict[str, pa.DataType] = {}
    known = {
        field_id: schema.find_type(field_id)
        for schema in (*metadata.schemas, metadata.schema())
        for field_id in schema.field_ids
    }
    for spec in metadata.partition_specs:
        for part in spec.fields:
            if part.source_id in known:
                result = part.transform.result_type(known[part.source_id])
                types[partition_key(part.field_id)] = arrow_type(result)
    return types
