"""The summary of a snapshot: Iceberg's keys, with totals carried on from the parent's."""

from __future__ import annotations

from collections.abc import Mapping

from frazil import arrow_compute as pc
from frazil.errors import InvalidInput
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.column_files import column_files_of
from frazil.format.entries.fields import COLUMN_FILES, PARTITION_PREFIX, ContentType
from frazil.format.metadata.metadata import Snapshot
from frazil.format.metadata.summary_totals import COLUMN_FILES_TOTAL, has_column_files
from frazil.value_classes import frozen, replace, summed

_DATA, _EQUALITY_DELETES = int(ContentType.DATA), int(ContentType.EQUALITY_DELETES)
ROOT_ENTRIES = "frazil.root-entries"
LEAVES_WRITTEN = "frazil.leaves-written"
ENTRIES_FLUSHED = "frazil.entries-flushed"
LEAVES_MERGED = "frazil.leaves-merged"
LEAVES_SPLIT = "frazil.leaves-split"
METADATA_BYTES_WRITTEN = "frazil.metadata-bytes-written"

_OPERATION = "operation"
_FEW_ENTRIES = 1_000
"""Up to this number, partitions are compared one by one: Arrow's own grouping wakes threads."""
_COUNTS = (
    "data-files",
    "records",
    "files-size",
    "equality-delete-files",
    "equality-deletes",
    "dvs",
    "position-delete-files",
    "position-deletes",
    "delete-files",
)
RESERVED = frozenset(
    {
        _OPERATION,
        COLUMN_FILES_TOTAL,
        "deleted-data-files",
        "deleted-records",
        "changed-partition-count",
        ROOT_ENTRIES,
        LEAVES_WRITTEN,
        ENTRIES_FLUSHED,
        LEAVES_MERGED,
        LEAVES_SPLIT,
        METADATA_BYTES_WRITTEN,
        *(f"{kind}-{count}" for kind in ("added", "removed", "total") for count in _COUNTS),
    }
)
"""Keys that a commit works out itself."""

SUMMARY_KEYS = (
    "content_type",
    "record_count",
    "file_size_in_bytes",
    "deletion_vector.cardinality",
    "deletion_vector.location",
)


@frozen
class Tally:
    """Files, rows and bytes of some entries."""

    data_files: int = 0
    records: int = 0
    bytes: int = 0
    equality_files: int = 0
    equality_records: int = 0
    vectors: int = 0
    vector_rows: int = 0
    column_files: int = 0
    column_bytes: int = 0

    @staticmethod
    def of(*batches: EntryBatch | None) -> Tally:
        """Count entries."""
        total = Tally()
        for batch in batches:
            if batch is not None and batch.num_rows:
                total = total.plus(_tally(batch))
        return total

    def plus(self, other: Tally) -> Tally:
        """The sum of two."""
        return summed(self, other)


def _tally(batch: EntryBatch) -> Tally:
    kind = batch.numpy("content_type")
    data, equality = kind == _DATA, kind == _EQUALITY_DELETES
    records = batch.numpy("record_count", missing=0)
    counted = Tally(
        data_files=int(data.sum()),
        records=int(records[data].sum()),
        bytes=int(batch.numpy("file_size_in_bytes", missing=0).sum()),
        equality_files=int(equality.sum()),
        equality_records=int(records[equality].sum()),
    )
    if batch.has(COLUMN_FILES):
        files = [file for entry_files in column_files_of(batch) for file in entry_files]
        size = sum(file.file_size_in_bytes for file in files)
        counted = replace(counted, column_files=len(files), column_bytes=size)
    if not batch.has("deletion_vector.cardinality"):
        return counted
    vectors = batch.column("deletion_vector.cardinality")
    return replace(
        counted,
        vectors=batch.num_rows - vectors.null_count,
        vector_rows=pc.sum(vectors).as_py() or 0,
    )


def check_keys(summary: Mapping[str, str]) -> None:
    """Refuse keys of a caller that would overwrite what the commit says of itself."""
    reserved = sorted(RESERVED.intersection(summary))
    if reserved:
        raise InvalidInput(
            f"summary keys {', '.join(reserved)} are set by the commit itself; use keys of your "
            "own, for instance with a prefix"
        )


def summarise(
    *,
    operation: str,
    added: Tally,
    removed: Tally,
    before: Tally,
    after: Tally,
    partitions: int,
    parent: Snapshot | None,
    extra: Mapping[str, str],
) -> dict[str, str]:
    """`added` and `removed` are files that came and went; `before` and `after` are the entries of
    files whose deletion vector changed."""
    counts = {
        "added-data-files": added.data_files,
        "deleted-data-files": removed.data_files,
        "added-records": added.records,
        "deleted-records": removed.records,
        "added-files-size": added.bytes,
        "removed-files-size": removed.bytes,
        "added-equality-delete-files": added.equality_files,
        "removed-equality-delete-files": removed.equality_files,
        "added-equality-deletes": added.equality_records,
        "removed-equality-deletes": removed.equality_records,
        "added-dvs": added.vectors + after.vectors,
        "removed-dvs": removed.vectors + before.vectors,
        "added-position-deletes": added.vector_rows + after.vector_rows,
        "removed-position-deletes": removed.vector_rows + before.vector_rows,
        "changed-partition-count": partitions,
    }
    counts["added-delete-files"] = counts["added-dvs"] + added.equality_files
    counts["removed-delete-files"] = counts["removed-dvs"] + removed.equality_files
    totals = {
        "total-data-files": added.data_files - removed.data_files,
        "total-delete-files": counts["added-delete-files"] - counts["removed-delete-files"],
        "total-records": added.records - removed.records,
        "total-files-size": added.bytes - removed.bytes,
        "total-position-deletes": counts["added-position-deletes"]
        - counts["removed-position-deletes"],
        "total-equality-deletes": added.equality_records - removed.equality_records,
    }
    column_files = added.column_files - removed.column_files
    column_files += after.column_files - before.column_files
    if column_files or (parent is not None and has_column_files(parent)):
        totals[COLUMN_FILES_TOTAL] = column_files
    summary = {_OPERATION: operation}
    summary.update({key: str(value) for key, value in counts.items() if value})
    for key, delta in totals.items():
        known = "0" if parent is None else _stated(parent, key)
        if key == COLUMN_FILES_TOTAL:
            known = known or "0"
        if known is not None and known.lstrip("-").isdigit():
            summary[key] = str(int(known) + delta)
    summary.update(extra)
    return summary


_COUNTED_OTHERWISE = frozenset({"total-delete-files", "total-position-deletes", "total-files-size"})


def _stated(parent: Snapshot, key: str) -> str | None:
    """A total that can be carried on. v2 and v3 count delete files that v4 has in entries."""
    is_old = parent.root_manifest is None
    if is_old and key in _COUNTED_OTHERWISE and parent.summary.get("total-delete-files") != "0":
        return None
    return parent.summary.get(key)


def changed_partitions(*batches: EntryBatch | None) -> int:
    """How many distinct partitions the entries lie in."""
    seen: set[frozenset[tuple[str, object]]] = set()
    for batch in batches:
        if batch is None or not batch.num_rows:
            continue
        keys = [key for key in batch.keys if key.startswith(PARTITION_PREFIX)]
        if not keys:
            seen.add(frozenset())
            continue
        parts = batch.select(keys)
        if parts.num_rows > _FEW_ENTRIES:
            parts = EntryBatch(parts.table.group_by(keys).aggregate([]))
        # Fields of other specs are null, or their columns are not there: both are left out.
        for values in set(zip(*(parts.pylist(key) for key in keys), strict=True)):
            named = zip(keys, values, strict=True)
            seen.add(frozenset((key, _alike(value)) for key, value in named if value is not None))
    return len(seen)


def _alike(value: object) -> object:
    """A value that equals those of the same partition: not-a-number equals nothing, itself
    included."""
    return value if value == value else "NaN"
