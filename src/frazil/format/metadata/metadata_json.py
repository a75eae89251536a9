"""Table metadata as JSON: bytes in, `(TableMetadata, History)` out, and back.

Reads format-versions 1 to 4 into the same values and writes 1 to 4; refuses newer ones. Schemas,
partition specs and sort orders are read by `frazil.iceberg`, everything else is checked here, so
that a bad field is named. What this version does not know is kept in `extra`, at the level where
it was found, and written back. Written bytes depend on the values alone: the same metadata gives
the same bytes.

A catalog stores the parts of a table that rarely change (the *definition*) apart from those every
commit changes; `definition_text`, `refs_text` and `snapshot_text` are those parts.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from frazil.errors import FormatError, Unsupported
from frazil.format.metadata.json_fields import Fields, kind_of
from frazil.format.metadata.metadata import (
    FIRST_PARTITION_FIELD_ID,
    FORMAT_VERSION,
    MAIN,
    History,
    MetadataLogEntry,
    RefKind,
    SchemaId,
    Snapshot,
    SnapshotId,
    SnapshotLogEntry,
    SnapshotRef,
    SortOrderId,
    SpecId,
    TableMetadata,
)
from frazil.format.metadata.metadata_models import column_ids, derived_columns, models
from frazil.limits import DEFAULT, Limits, decompress
from frazil.value_classes import replace

if TYPE_CHECKING:
    from frazil.format.metadata.derived import DerivedColumn

KNOWN_FEATURES: frozenset[str] = frozenset()
"""Names that `required-features` may hold: what a reader must understand to read the table."""

_UNSORTED_ID = 0
_VOLATILE = (
    "last-sequence-number",
    "last-updated-ms",
    "current-snapshot-id",
    "refs",
    "next-row-id",
)


def loads(
    data: bytes,
    *,
    path: str,
    location: str | None = None,
    limits: Limits = DEFAULT,
    rejected: list[FormatError] | None = None,
) -> tuple[TableMetadata, History]:
    """Read a metadata file; `path` names it in errors, `location` overrides the one it states.

    With a list for `rejected`, values that a table can do without are left out and noted there.
    """
    raw = Fields.parsed(_unzipped(data, path, limits), path=path, rejected=rejected)
    return _table(raw, location=location)


def dumps(metadata: TableMetadata, history: History) -> bytes:
    """Write a metadata file: one line of ASCII JSON."""
    return _compact(document(metadata, history)).encode("ascii")


def document(metadata: TableMetadata, history: History) -> dict[str, Any]:
    """What a metadata file holds, as plain values."""
    table = _table_json(metadata)
    table["snapshots"] = [_snapshot_json(s, metadata.format_version) for s in history.snapshots]
    last_ms = metadata.last_updated_ms
    table["snapshot-log"] = [
        {"timestamp-ms": at, "snapshot-id": entry.snapshot_id}
        for at, entry in _in_order(history.snapshot_log, last_ms)
    ]
    table["metadata-log"] = [
        {"timestamp-ms": at, "metadata-file": entry.metadata_file}
        for at, entry in _in_order(history.metadata_log, last_ms)
    ]
    table.update(metadata.extra)
    return table


_Logged = TypeVar("_Logged", SnapshotLogEntry, MetadataLogEntry)


def _in_order(log: Sequence[_Logged], last_ms: int) -> Iterator[tuple[int, _Logged]]:
    """Entries with times that do not go back, which Iceberg refuses to read.

    An entry of a clock that was ahead gets the time of the one that follows it.
    """
    times = [entry.timestamp_ms for entry in log]
    for at in range(len(times) - 1, -1, -1):
        times[at] = last_ms = min(times[at], last_ms)
    return zip(times, log, strict=True)


def definition_text(metadata: TableMetadata) -> str:
    """The part of the metadata that ordinary commits leave alone."""
    table = _table_json(metadata)
    for key in _VOLATILE:
        table.pop(key, None)
    table.update(metadata.extra)
    return _compact(table)


def load_definition(
    text: str, *, path: str, rejected: list[FormatError] | None = None
) -> TableMetadata:
    """The metadata of a stored definition; what every commit changes is still at its start.

    This and the two below read what a catalog keeps. A bad value in it never hides the table: it is
    left out, and noted in `rejected`. Schemas, specs and sort orders are made when they are first
    used, unless the caller asks what is rejected.
    """
    raw = _stored(text, path, rejected)
    for key in _VOLATILE:
        raw.values.pop(key, None)
    raw.values.update({"last-updated-ms": 0, "last-sequence-number": 0})
    return _table(raw, location=None, later=rejected is None)[0]


def refs_text(refs: Mapping[str, SnapshotRef]) -> str:
    """The branches and tags as a JSON object."""
    return _compact(_refs_json(refs))


def load_refs(
    text: str, *, path: str, rejected: list[FormatError] | None = None
) -> dict[str, SnapshotRef]:
    """Branches and tags from a JSON object."""
    return _refs(_stored(text, path, rejected))


def snapshot_text(snapshot: Snapshot) -> str:
    """One snapshot as a JSON object, as it stands in a metadata file."""
    return _compact(_snapshot_json(snapshot, FORMAT_VERSION))


def load_snapshot(
    text: str | bytes, *, path: str, rejected: list[FormatError] | None = None
) -> Snapshot:
    """One snapshot from a JSON object."""
    return _snapshot(_stored(text, path, rejected), FORMAT_VERSION)


def _stored(text: str | bytes, path: str, rejected: list[FormatError] | None) -> Fields:
    data = text.encode("utf-8") if isinstance(text, str) else text
    return Fields.parsed(data, path=path, rejected=[] if rejected is None else rejected)


# Reading


def _unzipped(data: bytes, path: str, limits: Limits) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    return decompress(data, "gzip", limits=limits, path=path)


def _table(
    raw: Fields, *, location: str | None, later: bool = False
) -> tuple[TableMetadata, History]:
    version = raw.need("format-version", int)
    if version > FORMAT_VERSION:
        raise Unsupported(
            f"{raw.path}: format-version is {version}; this version of Frazil reads up to "
            f"{FORMAT_VERSION}. The table was written by something newer.",
            feature=f"format-version {version}",
        )
    if version < 1:
        raise raw.bad("format-version", f"is {version}; expected 1 to {FORMAT_VERSION}")
    _check_features(raw)
    if version == 1:
        _normalise_v1(raw, str(location or raw.values.get("location") or raw.path))
    stated_location = raw.take("location", str)
    ids: dict[str, list[int]] = {}
    columns = column_ids(raw.values.get("schemas"))
    metadata = TableMetadata(
        format_version=version,
        table_uuid=_uuid(raw),
        location=_location(raw, location or stated_location),
        last_sequence_number=raw.need("last-sequence-number", int),
        last_updated_ms=raw.need("last-updated-ms", int),
        last_column_id=raw.need("last-column-id", int),
        schemas=models(raw, "schemas", ids, later=later),
        current_schema_id=SchemaId(raw.need("current-schema-id", int)),
        partition_specs=models(raw, "partition-specs", ids, later=later),
        default_spec_id=SpecId(raw.need("default-spec-id", int)),
        last_partition_id=raw.need("last-partition-id", int),
        sort_orders=models(raw, "sort-orders", ids, later=later),
        default_sort_order_id=SortOrderId(raw.need("default-sort-order-id", int)),
        properties=raw.texts("properties"),
        next_row_id=raw.take("next-row-id", int) or 0,
        expressions=derived_columns(raw, ids, later=later),
        statistics=tuple(file.values for file in raw.objects("statistics")),
        partition_statistics=tuple(file.values for file in raw.objects("partition-statistics")),
    )
    current = raw.take("current-snapshot-id", int)
    refs = _refs(raw.inner("refs"))
    history = _history(raw, version)
    metadata = replace(metadata, refs=_with_main(raw, refs, current), extra=raw.values)
    _check(metadata, history, raw, ids)
    both = sorted(columns.intersection(ids["expressions"]))
    if both:
        raise raw.bad("expressions", f"expr-id {both[0]} is a column's id")
    return metadata, history


def _check_features(raw: Fields) -> None:
    features = raw.values.get("required-features") or []
    if not isinstance(features, list):
        raise raw.bad("required-features", f"is {kind_of(features)}; expected a list")
    for feature in features:
        if not isinstance(feature, str) or feature not in KNOWN_FEATURES:
            raise Unsupported(
                f"{raw.path}: the table requires {feature!r}, which this version does not know",
                feature=str(feature),
            )


def _normalise_v1(raw: Fields, place: str) -> None:
    """Give version 1 metadata the fields that version 2 made mandatory."""
    values = raw.values
    schema = values.pop("schema", None)
    if not values.get("schemas"):
        single = Fields(schema, path=raw.path, at="schema").values
        single.setdefault("schema-id", 0)
        values["schemas"] = [single]
        values["current-schema-id"] = single["schema-id"]
    fields = raw.take("partition-spec", list)
    if not values.get("partition-specs"):
        values["partition-specs"] = [{"spec-id": 0, "fields": fields or []}]
        values["default-spec-id"] = 0
    last = _number_partition_fields(raw)
    values.setdefault("last-partition-id", last)
    if not values.get("sort-orders"):
        values["sort-orders"] = [{"order-id": 0, "fields": []}]
        values["default-sort-order-id"] = 0
    values.setdefault("last-sequence-number", 0)
    # The same table must have the same identity each time it is opened.
    values.setdefault("table-uuid", str(uuid.uuid5(uuid.NAMESPACE_URL, place)))


def _number_partition_fields(raw: Fields) -> int:
    last = FIRST_PARTITION_FIELD_ID - 1
    specs = []
    for spec in raw.objects("partition-specs"):
        fields = []
        for i, part in enumerate(spec.objects("fields")):
            field_id = part.values.setdefault("field-id", FIRST_PARTITION_FIELD_ID + i)
            last = max(last, field_id) if isinstance(field_id, int) else last
            fields.append(part.values)
        specs.append({**spec.values, "fields": fields})
    raw.values["partition-specs"] = specs
    return last


def _uuid(raw: Fields) -> uuid.UUID:
    text = raw.need("table-uuid", str)
    try:
        return uuid.UUID(text)
    except ValueError as error:
        raise raw.bad("table-uuid", f"is {text!r}; expected a UUID") from error


def _location(raw: Fields, stated: str | None) -> str:
    if not stated:
        folder, _, _ = raw.path.rpartition("/")
        stated, _, last = folder.rpartition("/")
        if last != "metadata" or not stated:
            raise raw.bad("location", "is missing, and cannot be derived from the file's path")
    return stated.rstrip("/")


def _refs(raw: Fields) -> dict[str, SnapshotRef]:
    refs: dict[str, SnapshotRef] = {}
    for name in list(raw.values):
        try:
            refs[name] = _ref(raw.inner(name))
        except FormatError as error:
            if name == MAIN:
                raise
            raw.spoil(error)
    return refs


def _ref(raw: Fields) -> SnapshotRef:
    kind = raw.need("type", str)
    if kind not in set(RefKind):
        raise raw.bad("type", f"is {kind!r}; expected branch or tag")
    return SnapshotRef(
        snapshot_id=SnapshotId(raw.need("snapshot-id", int)),
        kind=RefKind(kind),
        min_snapshots_to_keep=raw.take("min-snapshots-to-keep", int),
        max_snapshot_age_ms=raw.take("max-snapshot-age-ms", int),
        max_ref_age_ms=raw.take("max-ref-age-ms", int),
        extra=raw.values,
    )


def _with_main(
    raw: Fields, refs: dict[str, SnapshotRef], current: int | None
) -> dict[str, SnapshotRef]:
    if current is None or current == -1:
        return refs
    main = refs.get(MAIN)
    if main is None:
        return {MAIN: SnapshotRef(snapshot_id=SnapshotId(current)), **refs}
    if main.snapshot_id != current:
        raise raw.bad(
            "current-snapshot-id",
            f"is {current}, but the main branch points to {main.snapshot_id}",
        )
    return refs


def _history(raw: Fields, version: int) -> History:
    return History(
        snapshots=tuple(_snapshot(snapshot, version) for snapshot in raw.objects("snapshots")),
        snapshot_log=tuple(
            SnapshotLogEntry(
                snapshot_id=SnapshotId(entry.need("snapshot-id", int)),
                timestamp_ms=entry.need("timestamp-ms", int),
            )
            for entry in raw.objects("snapshot-log")
        ),
        metadata_log=tuple(
            MetadataLogEntry(
                metadata_file=entry.need("metadata-file", str),
                timestamp_ms=entry.need("timestamp-ms", int),
            )
            for entry in raw.objects("metadata-log")
        ),
    )


def _snapshot(raw: Fields, version: int) -> Snapshot:
    parent = raw.take("parent-snapshot-id", int)
    schema_id = raw.take("schema-id", int)
    root, listed = raw.take("root-manifest", str), raw.take("manifest-list", str)
    direct = raw.take("manifests", list) if root is None and listed is None else None
    if sum(tree is not None for tree in (root, listed, direct)) != 1:
        raise FormatError(
            "must have exactly one of root-manifest and manifest-list",
            path=raw.path,
            field=raw.at or "snapshot",
        )
    sequence = raw.take("sequence-number", int)
    if sequence is None:
        # Snapshots from before sequence numbers stay without one when their table is upgraded.
        sequence = 0 if version == 1 or root is None else raw.need("sequence-number", int)
    if direct is not None and not all(isinstance(item, str) for item in direct):
        raise raw.bad("manifests", "must list paths")
    return Snapshot(
        snapshot_id=SnapshotId(raw.need("snapshot-id", int)),
        parent_snapshot_id=None if parent is None else SnapshotId(parent),
        sequence_number=sequence,
        timestamp_ms=raw.need("timestamp-ms", int),
        schema_id=None if schema_id is None else SchemaId(schema_id),
        root_manifest=root,
        manifest_list=listed,
        manifests=None if direct is None else tuple(direct),
        first_row_id=raw.take("first-row-id", int),
        added_rows=raw.take("added-rows", int),
        summary=raw.texts("summary"),
        extra=raw.values,
    )


def _check(
    metadata: TableMetadata, history: History, raw: Fields, ids: Mapping[str, list[int]]
) -> None:
    """Refuse metadata that points at what it does not have."""
    snapshot_ids: list[int] = [snap.snapshot_id for snap in history.snapshots]
    for key, used, known_ids in (
        ("schemas", metadata.current_schema_id, ids["schemas"]),
        ("partition-specs", metadata.default_spec_id, ids["partition-specs"]),
        ("sort-orders", metadata.default_sort_order_id, [*ids["sort-orders"], _UNSORTED_ID]),
    ):
        if used not in known_ids:
            raise raw.bad(key, f"has ids {known_ids}, but the table uses {used}")
    for key, numbers in (*ids.items(), ("snapshots", snapshot_ids)):
        twice = [i for i, count in Counter(numbers).items() if count > 1]
        if twice:
            raise raw.bad(key, f"has the same id twice: {twice[:10]}")
    existing_ids = set(snapshot_ids)
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in existing_ids:
            problem = f"points to snapshot {ref.snapshot_id}, which is not there"
            raise raw.bad(f"refs.{name}", problem)


# Writing


def _table_json(metadata: TableMetadata) -> dict[str, Any]:
    from frazil.iceberg.partitioning import field_documents, published_spec, spec_document
    from frazil.iceberg.schema import schema_document
    from frazil.iceberg.sorting import order_document

    specs = metadata.partition_specs
    if metadata.format_version < FORMAT_VERSION:
        specs = [published_spec(spec) for spec in specs]
    table: dict[str, Any] = {
        "format-version": metadata.format_version,
        "table-uuid": str(metadata.table_uuid),
        "location": metadata.location,
        "last-sequence-number": metadata.last_sequence_number,
        "last-updated-ms": metadata.last_updated_ms,
        "last-column-id": metadata.last_column_id,
        "current-schema-id": metadata.current_schema_id,
        "schemas": [schema_document(schema) for schema in metadata.schemas],
        "default-spec-id": metadata.default_spec_id,
        "partition-specs": [spec_document(spec) for spec in specs],
        "last-partition-id": metadata.last_partition_id,
        "default-sort-order-id": metadata.default_sort_order_id,
        "sort-orders": [order_document(order) for order in metadata.sort_orders],
        "properties": dict(metadata.properties),
    }
    if metadata.format_version == 1:
        del table["last-sequence-number"]
        table["schema"] = schema_document(metadata.schema())
        table["partition-spec"] = field_documents(published_spec(metadata.spec()))
    if metadata.format_version >= 3:
        table["next-row-id"] = metadata.next_row_id
    if metadata.current_snapshot_id is not None:
        table["current-snapshot-id"] = metadata.current_snapshot_id
    table["refs"] = _refs_json(metadata.refs)
    if metadata.format_version >= FORMAT_VERSION:
        table["expressions"] = [_derived_json(column) for column in metadata.expressions]
    table["statistics"] = [dict(file) for file in metadata.statistics]
    table["partition-statistics"] = [dict(file) for file in metadata.partition_statistics]
    return table


def _refs_json(refs: Mapping[str, SnapshotRef]) -> dict[str, Any]:
    return {
        name: {
            "snapshot-id": ref.snapshot_id,
            "type": str(ref.kind),
            **_present("min-snapshots-to-keep", ref.min_snapshots_to_keep),
            **_present("max-snapshot-age-ms", ref.max_snapshot_age_ms),
            **_present("max-ref-age-ms", ref.max_ref_age_ms),
            **ref.extra,
        }
        for name, ref in refs.items()
    }


def _derived_json(column: DerivedColumn) -> dict[str, Any]:
    from frazil.format.expressions import SqlTransform, transform_fields

    extra = dict(column.extra)
    field_id = column.partition_field_id
    transform = column.transform
    sql_fields = transform_fields(transform) if isinstance(transform, SqlTransform) else {}
    return {
        "expr-id": column.expr_id,
        "expr": {
            "source-ids": list(column.source_ids),
            "transform": str(column.transform),
            "name": column.name,
            **sql_fields,
            **extra.pop("expr", {}),
        },
        **({} if field_id is None else {"partition-field-id": field_id}),
        **extra,
    }


def _snapshot_json(snapshot: Snapshot, version: int) -> dict[str, Any]:
    result: dict[str, Any] = {"snapshot-id": snapshot.snapshot_id}
    if snapshot.parent_snapshot_id is not None:
        result["parent-snapshot-id"] = snapshot.parent_snapshot_id
    if version > 1:
        result["sequence-number"] = snapshot.sequence_number
    result["timestamp-ms"] = snapshot.timestamp_ms
    for key, value in (
        ("schema-id", snapshot.schema_id),
        ("root-manifest", snapshot.root_manifest),
        ("manifest-list", snapshot.manifest_list),
        ("manifests", None if snapshot.manifests is None else list(snapshot.manifests)),
        ("first-row-id", snapshot.first_row_id),
        ("added-rows", snapshot.added_rows),
    ):
        if value is not None:
            result[key] = value
    if snapshot.summary:
        result["summary"] = dict(snapshot.summary)
    result.update(snapshot.extra)
    return result


def _present(key: str, value: int | None) -> dict[str, int]:
    return {} if value is None else {key: value}


_compact = json.JSONEncoder(separators=(",", ":")).encode
