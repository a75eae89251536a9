"""Updates of clients as changes of table metadata, with the ids that clients chose.

Snapshots are not among them: those become changes of the tree. Requirements are checked here too,
against the metadata a commit starts from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatch
from typing import Any
from uuid import UUID

from frazil.errors import NotFound
from frazil.format.checks import client_location
from frazil.format.metadata.metadata import (
    FIRST_PARTITION_FIELD_ID,
    RefKind,
    SchemaId,
    SnapshotId,
    SnapshotRef,
    SortOrderId,
    SpecId,
    TableMetadata,
)
from frazil.iceberg.partitioning import PartitionField, PartitionSpec, as_known, load_spec
from frazil.iceberg.schema import Schema, load_schema
from frazil.iceberg.sorting import SortOrder, load_order
from frazil.iceberg.transforms import VoidTransform
from frazil.properties.registry import SERVE_FORMAT_VERSION, SERVE_LOCATION
from frazil.serve.rest_errors import RestError, bad_request, conflict
from frazil.serve.wire import wire
from frazil.value_classes import dataclass, field, frozen, replace

LAST_ADDED = -1


@dataclass(slots=True)
class Added:
    """Ids of what was added last in one request: -1 means them."""

    schema_id: int | None = None
    spec_id: int | None = None
    order_id: int | None = None


@frozen
class PostedUpdates:
    """Some updates of one request, in order, as one `MetadataUpdate`."""

    updates: Sequence[wire.AnyUpdate]
    added: Added = field(default_factory=Added)

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        """The metadata after them."""
        return applied(metadata, self.updates, replace(self.added), now_ms=now_ms)


def applied(
    metadata: TableMetadata, updates: Sequence[wire.AnyUpdate], added: Added, *, now_ms: int
) -> TableMetadata:
    """The metadata after updates; `added` is brought up to date."""
    for update in updates:
        try:
            metadata = _apply(update, metadata, added)
        except (ValueError, TypeError, NotFound) as error:
            raise bad_request(f"Invalid update: {error}") from error
    return replace(metadata.with_derived_columns(), last_updated_ms=now_ms)


def blank(location: str, properties: Mapping[str, str]) -> TableMetadata:
    """What the updates of a table that is being created start from."""
    return TableMetadata(
        table_uuid=UUID(int=0),
        location=location,
        last_updated_ms=0,
        last_column_id=0,
        schemas=(),
        current_schema_id=SchemaId(0),
        partition_specs=(),
        default_spec_id=SpecId(0),
        last_partition_id=FIRST_PARTITION_FIELD_ID - 1,
        sort_orders=(),
        default_sort_order_id=SortOrderId(0),
        properties=dict(properties),
    )


@singledispatch
def _apply(update: Any, metadata: TableMetadata, added: Added) -> TableMetadata:
    raise bad_request(f"{type(update).__name__} is not an update of a table")


@_apply.register
def _(update: wire.AssignUuid, metadata: TableMetadata, added: Added) -> TableMetadata:
    uuid = UUID(update.uuid)
    if metadata.schemas and metadata.table_uuid != uuid:
        raise bad_request(f"the uuid of a table cannot be changed: {metadata.table_uuid}")
    return replace(metadata, table_uuid=uuid)


@_apply.register
def _(update: wire.UpgradeFormat, metadata: TableMetadata, added: Added) -> TableMetadata:
    known = 1 if not metadata.schemas else SERVE_FORMAT_VERSION.default
    if SERVE_FORMAT_VERSION.key in metadata.properties:
        known = SERVE_FORMAT_VERSION.lenient(metadata.properties, otherwise=3)
    if update.format_version < known and metadata.schemas:
        raise bad_request(f"Cannot downgrade v{known} table to v{update.format_version}")
    if update.format_version > 4:
        raise bad_request(f"format version {update.format_version} is not known")
    version = str(min(3, max(known, update.format_version)))
    return replace(metadata, properties={**metadata.properties, SERVE_FORMAT_VERSION.key: version})


@_apply.register
def _(update: wire.AddSchema, metadata: TableMetadata, added: Added) -> TableMetadata:
    schema = load_schema(update.schema)
    for other in metadata.schemas:
        same_fields = other.as_struct() == schema.as_struct()
        if same_fields and other.identifier_field_ids == schema.identifier_field_ids:
            added.schema_id = other.schema_id
            return metadata
    derived = sorted(schema.field_ids & {int(column.expr_id) for column in metadata.expressions})
    if derived:
        raise bad_request(f"field ids {derived} are taken by partition transforms")
    number = max((other.schema_id for other in metadata.schemas), default=-1) + 1
    numbered = Schema(
        *schema.fields, schema_id=number, identifier_field_ids=schema.identifier_field_ids
    )
    added.schema_id = number
    last = max(metadata.last_column_id, update.last_column_id or 0, numbered.highest_field_id)
    return replace(metadata, schemas=(*metadata.schemas, numbered), last_column_id=last)


@_apply.register
def _(update: wire.SetCurrentSchema, metadata: TableMetadata, added: Added) -> TableMetadata:
    number = _chosen(update.schema_id, added.schema_id, "schema")
    metadata.schema_by_id(number)
    return replace(metadata, current_schema_id=SchemaId(number))


@_apply.register
def _(update: wire.AddSpec, metadata: TableMetadata, added: Added) -> TableMetadata:
    spec = as_known(load_spec(update.spec), metadata.partition_specs)
    spec = PartitionSpec(*_without_dropped(spec, metadata.partition_specs))
    for other in metadata.partition_specs:
        if other.fields == spec.fields:
            added.spec_id = other.spec_id
            return metadata
    number = max((other.spec_id for other in metadata.partition_specs), default=-1) + 1
    added.spec_id = number
    last = max([metadata.last_partition_id, *(part.field_id for part in spec.fields)])
    specs = (*metadata.partition_specs, PartitionSpec(*spec.fields, spec_id=number))
    return replace(metadata, partition_specs=specs, last_partition_id=last)


def _without_dropped(
    spec: PartitionSpec, specs: Sequence[PartitionSpec]
) -> Iterator[PartitionField]:
    """The fields of a spec but those that version 1 keeps as `void` when they are dropped: their
    ids are those of what they were."""
    stored = {part.field_id: part.transform for one in specs for part in one.fields}
    for part in spec.fields:
        was = stored.get(part.field_id, part.transform)
        if not isinstance(part.transform, VoidTransform) or isinstance(was, VoidTransform):
            yield part


@_apply.register
def _(update: wire.SetDefaultSpec, metadata: TableMetadata, added: Added) -> TableMetadata:
    number = _chosen(update.spec_id, added.spec_id, "partition spec")
    metadata.spec_by_id(number)
    return replace(metadata, default_spec_id=SpecId(number))


@_apply.register
def _(update: wire.AddSortOrder, metadata: TableMetadata, added: Added) -> TableMetadata:
    order = load_order(update.sort_order)
    for other in metadata.sort_orders:
        if list(other.fields) == list(order.fields):
            added.order_id = other.order_id
            return metadata
    highest = max((other.order_id for other in metadata.sort_orders), default=0)
    number = highest + 1 if order.fields else 0
    added.order_id = number
    orders = (*metadata.sort_orders, SortOrder(*order.fields, order_id=number))
    return replace(metadata, sort_orders=orders)


@_apply.register
def _(update: wire.SetDefaultSortOrder, metadata: TableMetadata, added: Added) -> TableMetadata:
    number = _chosen(update.sort_order_id, added.order_id, "sort order")
    if number and all(order.order_id != number for order in metadata.sort_orders):
        raise bad_request(f"sort order {number} does not exist")
    return replace(metadata, default_sort_order_id=SortOrderId(number))


@_apply.register
def _(update: wire.SetRef, metadata: TableMetadata, added: Added) -> TableMetadata:
    ref = SnapshotRef(
        snapshot_id=SnapshotId(update.snapshot_id),
        kind=RefKind(update.type.lower()),
        min_snapshots_to_keep=update.min_snapshots_to_keep,
        max_snapshot_age_ms=update.max_snapshot_age_ms,
        max_ref_age_ms=update.max_ref_age_ms,
    )
    return metadata.with_ref(update.ref_name, ref, now_ms=metadata.last_updated_ms)


@_apply.register
def _(update: wire.RemoveRef, metadata: TableMetadata, added: Added) -> TableMetadata:
    if update.ref_name not in metadata.refs:
        return metadata
    return metadata.without_ref(update.ref_name, now_ms=metadata.last_updated_ms)


@_apply.register
def _(update: wire.SetLocation, metadata: TableMetadata, added: Added) -> TableMetadata:
    place = update.location.rstrip("/")
    # Paths of the table are relative to where it is: only what clients write goes elsewhere.
    if place == client_location(metadata.location, metadata.properties):
        return metadata
    return replace(metadata, properties={**metadata.properties, SERVE_LOCATION.key: place})


@_apply.register
def _(update: wire.SetProperties, metadata: TableMetadata, added: Added) -> TableMetadata:
    updates = {key: text for key, text in update.updates.items() if key != "format-version"}
    version = update.updates.get("format-version")
    if version is not None:
        if version not in ("1", "2", "3", "4"):
            raise bad_request(f"format-version is {version!r}; expected 2 or 3")
        metadata = _apply(wire.UpgradeFormat(format_version=int(version)), metadata, added)
    return metadata.with_properties(updates, now_ms=metadata.last_updated_ms)


@_apply.register
def _(update: wire.RemoveProperties, metadata: TableMetadata, added: Added) -> TableMetadata:
    return metadata.with_properties({}, removals=update.removals, now_ms=metadata.last_updated_ms)


@_apply.register
def _(update: wire.SetStatistics, metadata: TableMetadata, added: Added) -> TableMetadata:
    statistics = _with_latest(metadata.statistics, update.statistics, "statistics")
    return replace(metadata, statistics=statistics)


@_apply.register
def _(update: wire.RemoveStatistics, metadata: TableMetadata, added: Added) -> TableMetadata:
    return replace(metadata, statistics=_without(metadata.statistics, update.snapshot_id))


@_apply.register
def _(update: wire.SetPartitionStatistics, metadata: TableMetadata, added: Added) -> TableMetadata:
    statistics = _with_latest(
        metadata.partition_statistics, update.partition_statistics, "partition statistics"
    )
    return replace(metadata, partition_statistics=statistics)


@_apply.register
def _(
    update: wire.RemovePartitionStatistics, metadata: TableMetadata, added: Added
) -> TableMetadata:
    statistics = _without(metadata.partition_statistics, update.snapshot_id)
    return replace(metadata, partition_statistics=statistics)


@_apply.register
def _(update: wire.RemoveSchemas, metadata: TableMetadata, added: Added) -> TableMetadata:
    if metadata.current_schema_id in update.schema_ids:
        raise bad_request("the current schema cannot be removed")
    removed = set(update.schema_ids)
    return replace(
        metadata, schemas=tuple(s for s in metadata.schemas if s.schema_id not in removed)
    )


@_apply.register
def _(update: wire.RemoveSpecs, metadata: TableMetadata, added: Added) -> TableMetadata:
    if metadata.default_spec_id in update.spec_ids:
        raise bad_request("the default partition spec cannot be removed")
    specs = {spec.spec_id: spec for spec in metadata.partition_specs}
    for spec_id in update.spec_ids:
        specs.pop(spec_id, None)
    return replace(metadata, partition_specs=tuple(specs.values()))


def _chosen(asked: int, last: int | None, what: str) -> int:
    if asked != LAST_ADDED:
        return asked
    if last is None:
        raise bad_request(f"-1 means the {what} added last, and none was added")
    return last


def _with_latest(
    statistics: tuple[Mapping[str, Any], ...], latest: Mapping[str, Any], what: str
) -> tuple[Mapping[str, Any], ...]:
    snapshot_id = latest.get("snapshot-id")
    if snapshot_id is None:
        raise bad_request(f"{what} name no snapshot-id")
    return (*_without(statistics, snapshot_id), latest)


def _without(
    statistics: tuple[Mapping[str, Any], ...], snapshot_id: int
) -> tuple[Mapping[str, Any], ...]:
    return tuple(entry for entry in statistics if entry.get("snapshot-id") != snapshot_id)


# --- requirements ------------------------------------------------------------------------------


def check(requirement: wire.AnyRequirement, metadata: TableMetadata) -> None:
    """409 when a requirement does not hold."""
    match requirement:
        case wire.AssertCreate():
            raise RestError(
                409, "AlreadyExistsException", "Requirement failed: table already exists"
            )
        case wire.AssertUuid(uuid=uuid):
            if str(metadata.table_uuid) != uuid.lower():
                raise conflict(
                    f"Requirement failed: UUID does not match: expected {metadata.table_uuid} "
                    f"!= {uuid}"
                )
        case wire.AssertRef(ref=name, snapshot_id=expected):
            _check_ref(name, expected, metadata)
        case wire.AssertLastField(last_assigned_field_id=expected):
            _same("last assigned field id", expected, metadata.last_column_id)
        case wire.AssertSchema(current_schema_id=expected):
            _same("current schema", expected, metadata.current_schema_id)
        case wire.AssertLastPartition(last_assigned_partition_id=expected):
            _same("last assigned partition id", expected, metadata.last_partition_id)
        case wire.AssertSpec(default_spec_id=expected):
            _same("default partition spec", expected, metadata.default_spec_id)
        case wire.AssertOrder(default_sort_order_id=expected):
            _same("default sort order", expected, metadata.default_sort_order_id)


def _check_ref(name: str, expected: int | None, metadata: TableMetadata) -> None:
    ref = metadata.refs.get(name)
    kind = "branch" if ref is None else str(ref.kind)
    if ref is None:
        if expected is not None:
            raise conflict(
                f"Requirement failed: branch or tag {name} is missing, expected {expected}"
            )
        return
    if expected is None:
        raise conflict(f"Requirement failed: {kind} {name} was created concurrently")
    if int(ref.snapshot_id) != expected:
        raise conflict(
            f"Requirement failed: {kind} {name} has changed: expected id {expected} "
            f"!= {ref.snapshot_id}"
        )


def _same(what: str, expected: int, actual: int) -> None:
    if expected != actual:
        raise conflict(f"Requirement failed: {what} changed: expected id {expected} != {actual}")


__all__ = ["Added", "PostedUpdates", "applied", "blank", "check"]
