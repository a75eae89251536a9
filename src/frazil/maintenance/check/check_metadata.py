"""Rules of table metadata and history: ids, sequence numbers, refs, logs, the JSON rendering."""

from __future__ import annotations

from collections import Counter

from frazil.format.metadata import metadata_json
from frazil.format.metadata.derived import FIRST_DERIVED_ID
from frazil.format.metadata.metadata import (
    CLOCK_DRIFT_MS,
    FORMAT_VERSION,
    MAIN,
    History,
    RefKind,
    Snapshot,
    TableMetadata,
)
from frazil.maintenance.check.problems import Place, Problems

_CLOCK_SKEW_MS = 60_000


def check_metadata(metadata: TableMetadata, history: History, problems: Problems) -> None:
    """Note every broken rule of the metadata itself."""
    place = problems.at("table metadata")
    with place.guarded():
        _check_ids(metadata, place)
        _check_partitions(metadata, place)
    with place.guarded():
        _check_refs(metadata, history, place)
        _check_snapshots(metadata, history, place)
        _check_log(history, place)
    if metadata.format_version >= FORMAT_VERSION:
        rendering = problems.at("metadata JSON")
        with rendering.guarded():
            _check_json(metadata, history, rendering)


def _check_ids(metadata: TableMetadata, place: Place) -> None:
    for name, ids in (
        ("schemas", [schema.schema_id for schema in metadata.schemas]),
        ("partition-specs", [spec.spec_id for spec in metadata.partition_specs]),
        ("sort-orders", [order.order_id for order in metadata.sort_orders]),
        ("expressions", [int(column.expr_id) for column in metadata.expressions]),
    ):
        twice = sorted(id for id, count in Counter(ids).items() if count > 1)
        place.need(not twice, name, f"id {twice} is used more than once")
    for name, current, known_ids in (
        ("current-schema-id", metadata.current_schema_id, {s.schema_id for s in metadata.schemas}),
        ("default-spec-id", metadata.default_spec_id, set(metadata.specs_by_id())),
        (
            "default-sort-order-id",
            metadata.default_sort_order_id,
            {0, *(order.order_id for order in metadata.sort_orders)},
        ),
    ):
        place.need(int(current) in known_ids, name, f"is {current}, which does not exist")
    columns = {id for schema in metadata.schemas for id in schema.field_ids}
    derived = {int(column.expr_id) for column in metadata.expressions}
    highest = max((*columns, *(id for id in derived if id < FIRST_DERIVED_ID)), default=0)
    place.need(
        highest <= metadata.last_column_id,
        "last-column-id",
        f"is {metadata.last_column_id}; field id {highest} is in use",
    )
    for column in metadata.expressions:
        place.need(
            column.expr_id not in columns,
            "expressions",
            f"expr-id {column.expr_id} is the id of a column too",
        )


def _check_partitions(metadata: TableMetadata, place: Place) -> None:
    parts = [part for spec in metadata.partition_specs for part in spec.fields]
    columns = {id for schema in metadata.schemas for id in schema.field_ids}
    highest = max((part.field_id for part in parts), default=0)
    place.need(
        highest <= max(metadata.last_partition_id, 999),
        "last-partition-id",
        f"is {metadata.last_partition_id}; partition field id {highest} is in use",
    )
    for part in parts:
        for source in part.source_ids:
            place.need(
                source in columns,
                "partition-specs",
                f"field {part.name!r} has source id {source}, which no schema has",
            )
    field_ids = {part.field_id for part in parts}
    for column in metadata.expressions:
        place.need(
            column.partition_field_id is None or column.partition_field_id in field_ids,
            "expressions",
            f"{column.name!r} is for partition field {column.partition_field_id}, "
            "which no spec has",
        )


def _check_refs(metadata: TableMetadata, history: History, place: Place) -> None:
    snapshot_ids = {int(snapshot.snapshot_id) for snapshot in history.snapshots}
    for name, ref in metadata.refs.items():
        place.need(
            int(ref.snapshot_id) in snapshot_ids,
            f"refs.{name}",
            f"points at snapshot {ref.snapshot_id}, which the table does not have",
        )
    main = metadata.refs.get(MAIN)
    if main is not None:
        is_branch = main.kind is RefKind.BRANCH
        place.need(is_branch, f"refs.{MAIN}", "is a tag; it must be a branch")


def _check_snapshots(metadata: TableMetadata, history: History, place: Place) -> None:
    by_id = {int(snapshot.snapshot_id): snapshot for snapshot in history.snapshots}
    if len(by_id) < len(history.snapshots):
        place.add("snapshots", "a snapshot id is there more than once")
    schemas = {schema.schema_id for schema in metadata.schemas}
    for id, snapshot in by_id.items():
        of_snapshot = place.problems.at(f"snapshot {id}")
        of_snapshot.need(
            snapshot.sequence_number <= metadata.last_sequence_number,
            "sequence-number",
            f"is {snapshot.sequence_number}; the table's last is {metadata.last_sequence_number}",
        )
        if snapshot.schema_id is not None:
            of_snapshot.need(
                snapshot.schema_id in schemas,
                "schema-id",
                f"is {snapshot.schema_id}, which does not exist",
            )
        if snapshot.first_row_id is not None:
            end = snapshot.first_row_id + (snapshot.added_rows or 0)
            of_snapshot.need(
                end <= metadata.next_row_id,
                "added-rows",
                f"row ids reach {end}; the table's next is {metadata.next_row_id}",
            )
        parent = by_id.get(int(snapshot.parent_snapshot_id or 0))
        if parent is not None:
            _check_child(snapshot, parent, of_snapshot)
    numbers = Counter(s.sequence_number for s in by_id.values() if s.root_manifest is not None)
    twice = sorted(number for number, count in numbers.items() if count > 1)
    place.need(not twice, "snapshots", f"sequence numbers {twice} are used twice")


def _check_child(snapshot: Snapshot, parent: Snapshot, place: Place) -> None:
    is_later = snapshot.sequence_number > parent.sequence_number
    is_v1 = snapshot.sequence_number == parent.sequence_number == 0
    place.need(
        is_later or is_v1,
        "sequence-number",
        f"is {snapshot.sequence_number}; its parent's is {parent.sequence_number}",
    )
    place.need(
        _follows(snapshot.timestamp_ms, parent.timestamp_ms),
        "timestamp-ms",
        f"is {snapshot.timestamp_ms}, before its parent's {parent.timestamp_ms}",
    )


def _follows(after_ms: int, before_ms: int) -> bool:
    """Whether one time may come after another: clocks differ a little, or one was far ahead."""
    return not _CLOCK_SKEW_MS < before_ms - after_ms <= CLOCK_DRIFT_MS


def _check_log(history: History, place: Place) -> None:
    snapshot_ids = {int(snapshot.snapshot_id) for snapshot in history.snapshots}
    before = None
    for entry in history.snapshot_log:
        place.need(
            int(entry.snapshot_id) in snapshot_ids,
            "snapshot-log",
            f"names snapshot {entry.snapshot_id}, which the table does not have",
        )
        if before is not None:
            place.need(
                _follows(entry.timestamp_ms, before),
                "snapshot-log",
                f"goes back in time at snapshot {entry.snapshot_id}",
            )
        before = entry.timestamp_ms


def _check_json(metadata: TableMetadata, history: History, place: Place) -> None:
    first = metadata_json.dumps(metadata, history)
    read, read_history = metadata_json.loads(first, path="metadata JSON")
    again = metadata_json.dumps(read, read_history)
    place.need(again == first, "", "is not the same after reading it back")
