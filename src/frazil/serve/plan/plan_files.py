"""Entries of a plan as the files of scan tasks: columns in, shapes of `wire_plans` out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.commit.handle import TableHandle
from frazil.errors import Unsupported
from frazil.format import paths
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import refuse_column_files
from frazil.format.entries.fields import ContentType, partition_key, stats_key
from frazil.format.entries.stats import is_ordered
from frazil.format.values import single_value
from frazil.iceberg.partitioning import PartitionSpec, published_spec
from frazil.iceberg.transforms import VoidTransform
from frazil.iceberg.types import IcebergType, UUIDType
from frazil.legacy.publish.published import DeleteFileRef
from frazil.scan.plan import MUST_MATCH
from frazil.serve.plan.planning import PlanPart
from frazil.serve.wire.wire_plans import ContentFile, IdMap, ScanTask, Tasks
from frazil.tree.table_shape import shape_of
from frazil.value_classes import frozen

COUNTS: Final = {
    "value_counts": "value_count",
    "null_value_counts": "null_value_count",
    "nan_value_counts": "nan_value_count",
}
BOUNDS: Final = {"lower_bounds": "lower_bound", "upper_bounds": "upper_bound"}
_VECTOR: Final = "deletion_vector.location"
_EVERYTHING: Final = msgspec.Raw(b"true")


def stats_ids(handle: TableHandle, names: Sequence[str], *, case_sensitive: bool) -> list[int]:
    """Ids of the columns whose statistics a request wants; unknown names are left out."""
    schema = handle.metadata.schema()
    ids: list[int] = []
    for name in names:
        try:
            ids.append(schema.find_field(name, case_sensitive=case_sensitive).field_id)
        except ValueError:
            continue
    return ids


def stats_keys(ids: Sequence[int]) -> list[str]:
    """What a plan must read for these statistics."""
    return [
        stats_key(field_id, name)
        for field_id in ids
        for name in (*COUNTS.values(), *BOUNDS.values())
    ]


@frozen
class FileShapes:
    """Makes the shapes of one part. `positions` are position delete files that stand for vectors,
    where clients cannot read those; `residual` is the filter as the client stated it.

    `omits_nulls` leaves out partition tuples that hold a null, which some clients refuse; they
    need them only for columns that files do not have.
    """

    handle: TableHandle
    residual: msgspec.Raw
    stats: Sequence[int] = ()
    positions: Mapping[str, DeleteFileRef] | None = None
    omits_nulls: bool = False

    def tasks(self, part: PlanPart, rest: Sequence[str]) -> Tasks:
        """The tasks of a part; `rest` are the tokens of what is left."""
        if not part.files.num_rows:
            return Tasks(plan_tasks=list(rest))
        data = list(self.files(part.files, content="data"))
        deletes: list[ContentFile] = []
        vectors = self._vectors(part.files, data)
        shared = _Shared(self, part.deletes, deletes)
        must = part.files.pylist(MUST_MATCH)
        tasks: list[ScanTask] = []
        for row, file in enumerate(data):
            vector = vectors.get(row)
            references = [] if vector is None else [len(deletes)]
            if vector is not None:
                deletes.append(vector)
            for matched in part.matches.get(row, ()):
                references += shared.reference(matched, file, has_vector=vector is not None)
            tasks.append(
                ScanTask(
                    data_file=file,
                    residual_filter=(
                        _EVERYTHING if must[row] and part.filter.is_exact else self.residual
                    ),
                    delete_file_references=references or msgspec.UNSET,
                )
            )
        return Tasks(file_scan_tasks=tasks, delete_files=deletes, plan_tasks=list(rest))

    def vector_file(
        self, about: ContentFile, where: str, offset: int, size: int, cardinality: int
    ) -> ContentFile:
        """A deletion vector of a data file as the client reads it."""
        location = self.handle.location
        if self.positions is not None:
            number = self.positions.get(f"{where} {offset}")
            if number is None:
                raise Unsupported(
                    f"{about.file_path}: has a deletion vector that is not published for v2",
                    feature="planning a snapshot that is not shown",
                )
            return ContentFile(
                spec_id=about.spec_id,
                content="position-deletes",
                file_path=number.path,
                file_format="parquet",
                partition=about.partition,
                file_size_in_bytes=number.size,
                record_count=cardinality,
                referenced_data_file=about.file_path,
            )
        path = _spelled(location, where)
        return ContentFile(
            spec_id=about.spec_id,
            content="position-deletes",
            file_path=path,
            file_format="puffin",
            partition=about.partition,
            file_size_in_bytes=offset + size,
            record_count=cardinality,
            referenced_data_file=about.file_path,
            content_offset=offset,
            content_size_in_bytes=size,
        )

    def _vectors(self, files: EntryBatch, data: Sequence[ContentFile]) -> dict[int, ContentFile]:
        if not files.has(_VECTOR) or files.column(_VECTOR).null_count == files.num_rows:
            return {}
        columns = zip(
            files.pylist(_VECTOR),
            files.pylist("deletion_vector.offset"),
            files.pylist("deletion_vector.size_in_bytes"),
            files.pylist("deletion_vector.cardinality"),
            strict=True,
        )
        return {
            row: self.vector_file(data[row], *values)
            for row, values in enumerate(columns)
            if values[0] is not None
        }

    def files(self, batch: EntryBatch, *, content: str) -> Iterator[ContentFile]:
        """Entries as files of one kind."""
        refuse_column_files(batch, "the REST protocol")
        partitions = self._partitions(batch)
        stats = self._counts(batch) | self._bounds(batch)
        columns = zip(
            paths.spelled(self.handle.location, batch.column("location")).to_pylist(),
            batch.pylist("file_format"),
            batch.pylist("record_count"),
            batch.pylist("file_size_in_bytes"),
            _or_none(batch, "tracking.first_row_id"),
            _or_none(batch, "split_offsets"),
            _or_none(batch, "sort_order_id"),
            _or_none(batch, "equality_ids"),
            strict=True,
        )
        for row, (path, kind, records, size, first, splits, order, ids) in enumerate(columns):
            spec_id, values = partitions[row]
            file = ContentFile(
                spec_id=spec_id,
                content=content,
                file_path=path,
                file_format=kind,
                partition=values,
                file_size_in_bytes=size,
                record_count=records,
                first_row_id=first if content == "data" else None,
                split_offsets=splits or None,
                sort_order_id=order,
                equality_ids=ids or None,
            )
            for name, by_id in stats.items():
                setattr(file, name, _id_map(by_id, row))
            yield file

    def _partitions(self, batch: EntryBatch) -> list[tuple[int, list[Any]]]:
        """Spec and partition tuple of every file."""
        metadata = self.handle.metadata
        specs = metadata.specs_by_id()
        types = shape_of(metadata).partition_types
        unpartitioned = next((s for s in metadata.partition_specs if not s.fields), metadata.spec())
        columns: dict[int, list[Any]] = {}
        for spec in metadata.partition_specs:
            for part in published_spec(spec).fields:
                if isinstance(part.transform, VoidTransform):
                    continue
                key = partition_key(part.field_id)
                if part.field_id not in columns and batch.has(key):
                    kind = types.get(part.field_id)
                    columns[part.field_id] = json_values(batch.column(key), kind)
        partitions: list[tuple[int, list[Any]]] = []
        for row, spec_id in enumerate(batch.pylist("spec_id")):
            file_spec: PartitionSpec = unpartitioned if spec_id is None else specs[spec_id]
            values = [
                columns[f.field_id][row] if f.field_id in columns else None
                for f in file_spec.fields
            ]
            if self.omits_nulls and None in values:
                values = []
            partitions.append((file_spec.spec_id, values))
        return partitions

    def _counts(self, batch: EntryBatch) -> dict[str, dict[int, list[Any]]]:
        return {
            name: {
                field_id: batch.pylist(stats_key(field_id, key))
                for field_id in self.stats
                if batch.has(stats_key(field_id, key))
            }
            for name, key in COUNTS.items()
            if self.stats
        }

    def _bounds(self, batch: EntryBatch) -> dict[str, dict[int, list[Any]]]:
        types = shape_of(self.handle.metadata).column_types
        bounds: dict[str, dict[int, list[Any]]] = {}
        for name, key in BOUNDS.items() if self.stats else ():
            bounds[name] = {}
            for field_id in self.stats:
                kind = types.get(field_id)
                if kind is None or not is_ordered(kind) or not batch.has(stats_key(field_id, key)):
                    continue
                encoded = single_value.encode_bounds(batch.column(stats_key(field_id, key)), kind)
                bounds[name][field_id] = [
                    None if v is None else v.hex() for v in encoded.to_pylist()
                ]
        return bounds


class _Shared:
    """Delete files of a part: listed when the first task needs them, once."""

    def __init__(
        self, shapes: FileShapes, batch: EntryBatch | None, listed: list[ContentFile]
    ) -> None:
        self._shapes = shapes
        self._batch = batch
        self._listed = listed
        self._known: dict[int, int] = {}

    def reference(self, row: int, file: ContentFile, *, has_vector: bool) -> list[int]:
        """Where a delete file is in the list; nothing when a newer vector says it all."""
        if row in self._known:
            return [self._known[row]]
        assert self._batch is not None
        entry = self._batch.row(row)
        is_equality = entry["content_type"] == ContentType.EQUALITY_DELETES
        if has_vector and not is_equality:
            return []
        if entry.get(_VECTOR) is not None:
            delete_file = self._shapes.vector_file(
                file,
                entry[_VECTOR],
                entry["deletion_vector.offset"],
                entry["deletion_vector.size_in_bytes"],
                entry["deletion_vector.cardinality"],
            )
        else:
            content = "equality-deletes" if is_equality else "position-deletes"
            single = self._batch.slice(row, 1)
            (delete_file,) = self._shapes.files(single, content=content)
        self._known[row] = len(self._listed)
        self._listed.append(delete_file)
        return [self._known[row]]


def json_values(column: pa.ChunkedArray, kind: IcebergType | None) -> list[Any]:
    """Values as the JSON of Iceberg's single values."""
    type_ = column.type
    if pa.types.is_timestamp(type_):
        zoned = type_.tz is not None
        text = pc.replace_substring(
            column.cast(pa.timestamp(type_.unit)).cast(pa.string()), " ", "T"
        )
        if zoned:
            text = pc.binary_join_element_wise(text, "+00:00", "")
        return list(text.to_pylist())
    if pa.types.is_date(type_) or pa.types.is_time(type_) or pa.types.is_decimal(type_):
        return list(column.cast(pa.string()).to_pylist())
    values = list(column.to_pylist())
    if isinstance(kind, UUIDType):
        return [None if v is None else str(UUID(bytes=bytes(v))) for v in values]
    return [v.hex() if isinstance(v, bytes) else v for v in values]


def _id_map(values: Mapping[int, list[Any]], row: int) -> IdMap | None:
    value_of_id = {
        field_id: column[row] for field_id, column in values.items() if column[row] is not None
    }
    return IdMap(keys=list(value_of_id), values=list(value_of_id.values())) if value_of_id else None


def _or_none(batch: EntryBatch, key: str) -> list[Any]:
    return batch.pylist(key) if batch.has(key) else [None] * batch.num_rows


def _spelled(location: str, path: str) -> str:
    spelled: str = paths.spelled(location, pa.chunked_array([[path]]))[0].as_py()
    return spelled


__all__ = ["FileShapes", "stats_ids", "stats_keys"]
