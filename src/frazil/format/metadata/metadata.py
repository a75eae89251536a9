"""Table metadata as values: what a table is, and every legal way to change it.

Knows schemas, partition specs, derived columns, sort orders, properties, refs and snapshots, and
the rules by which one `TableMetadata` follows another. Knows nothing of JSON (`metadata_json`), of
files, or where the current metadata is kept (`catalog`). Time and identifiers come in from outside.

`TableMetadata` does not hold the snapshots: a table has few schemas and may have very many
snapshots, so `History` keeps them apart and a commit never carries them along.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NewType
from uuid import UUID

from frazil.errors import InvalidInput, NotFound, Unsupported
from frazil.format.checks import (
    check_count,
    check_fits,
    check_partition_names,
    check_path_properties,
    check_properties,
    check_ref_name,
    check_schema,
    check_spec,
)
from frazil.text_format import did_you_mean
from frazil.value_classes import field, frozen, replace

if TYPE_CHECKING:
    from frazil.format.expressions import Declaration
    from frazil.format.metadata.derived import DerivedColumn
    from frazil.iceberg.partitioning import PartitionField, PartitionSpec
    from frazil.iceberg.schema import Schema
    from frazil.iceberg.sorting import SortOrder

SnapshotId = NewType("SnapshotId", int)
SchemaId = NewType("SchemaId", int)
SpecId = NewType("SpecId", int)
SortOrderId = NewType("SortOrderId", int)

FORMAT_VERSION = 4
MAIN = "main"
FIRST_PARTITION_FIELD_ID = 1000

_CLOCK_SKEW_MS = 60_000
CLOCK_DRIFT_MS = 3_600_000
"""Clocks of writers may differ by so much; a time that lies further ahead is not followed."""


class RefKind(StrEnum):
    """A branch moves with commits, a tag stays."""

    BRANCH = "branch"
    TAG = "tag"


@frozen
class SnapshotRef:
    """A name for a snapshot, with its retention."""

    snapshot_id: SnapshotId
    kind: RefKind = RefKind.BRANCH
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Snapshot:
    """One state of the table: where its tree starts, and what made it.

    Exactly one of `root_manifest` (v4), `manifest_list` (v1-v3) and `manifests` (old v1) is set.
    """

    snapshot_id: SnapshotId
    parent_snapshot_id: SnapshotId | None = None
    sequence_number: int
    timestamp_ms: int
    schema_id: SchemaId | None = None
    root_manifest: str | None = None
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    first_row_id: int | None = None
    added_rows: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        trees = (self.root_manifest, self.manifest_list, self.manifests)
        if sum(tree is not None for tree in trees) != 1:
            raise InvalidInput(
                f"snapshot {self.snapshot_id} must have exactly one of root-manifest, "
                "manifest-list and (v1) manifests"
            )

    @property
    def operation(self) -> str | None:
        """What kind of change made it: append, overwrite, delete, replace."""
        return self.summary.get("operation")


@frozen
class SnapshotLogEntry:
    """From this time on, this snapshot was the current one."""

    snapshot_id: SnapshotId
    timestamp_ms: int


@frozen
class MetadataLogEntry:
    """A metadata file written earlier."""

    metadata_file: str
    timestamp_ms: int


@frozen
class History:
    """What grows with every commit: the snapshots and the two logs, oldest first."""

    snapshots: tuple[Snapshot, ...] = ()
    snapshot_log: tuple[SnapshotLogEntry, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()

    def snapshot(self, snapshot_id: int) -> Snapshot | None:
        """The snapshot of that id, if it is still there."""
        return next((s for s in self.snapshots if s.snapshot_id == snapshot_id), None)

    def snapshot_id_as_of(self, timestamp_ms: int) -> SnapshotId | None:
        """The snapshot that was current at a time, by the log."""
        passed = (
            e.snapshot_id for e in reversed(self.snapshot_log) if e.timestamp_ms <= timestamp_ms
        )
        return next(passed, None)

    def advanced(
        self,
        before: TableMetadata,
        after: TableMetadata,
        *,
        added: Iterable[Snapshot] = (),
        removed: Collection[int] = (),
    ) -> History:
        """The history after a change from one metadata to the next."""
        snapshots = tuple(s for s in self.snapshots if s.snapshot_id not in removed)
        log = self.snapshot_log
        if removed:
            # A log with a gap would be wrong, so everything before the gap is dropped, too.
            holes = [i for i, entry in enumerate(log) if entry.snapshot_id in removed]
            log = log[holes[-1] + 1 :] if holes else log
        added = tuple(added)
        entry = log_entry(before, after, added)
        if entry is not None:
            log = (*log, entry)
        elif after.current_snapshot_id is None:
            log = ()
        return replace(self, snapshots=(*snapshots, *added), snapshot_log=log)


@frozen
class TableMetadata:
    """Everything about a table but its history. Every `with_` method returns the next metadata."""

    format_version: int = FORMAT_VERSION
    table_uuid: UUID
    location: str
    last_sequence_number: int = 0
    last_updated_ms: int
    last_column_id: int
    schemas: Sequence[Schema]
    current_schema_id: SchemaId
    partition_specs: Sequence[PartitionSpec]
    default_spec_id: SpecId
    last_partition_id: int
    sort_orders: Sequence[SortOrder]
    default_sort_order_id: SortOrderId
    # Properties and unknown fields of older tables may hold secrets: they stay out of the repr.
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    refs: Mapping[str, SnapshotRef] = field(default_factory=dict)
    next_row_id: int = 0
    expressions: Sequence[DerivedColumn] = ()
    statistics: tuple[Mapping[str, Any], ...] = ()
    partition_statistics: tuple[Mapping[str, Any], ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    # Lookups

    @property
    def shape(self) -> tuple[object, ...]:
        """Columns, partitioning and order, to see whether they changed: most commits leave them."""
        return (
            *(self.schemas, self.current_schema_id),
            *(self.partition_specs, self.default_spec_id),
            *(self.sort_orders, self.default_sort_order_id),
        )

    def schema(self) -> Schema:
        """The current schema."""
        return self.schema_by_id(self.current_schema_id)

    def schema_by_id(self, schema_id: int) -> Schema:
        """The schema of that id, current or not."""
        for schema in self.schemas:
            if schema.schema_id == schema_id:
                return schema
        raise NotFound(f"{self.location}: no schema with id {schema_id}")

    def schema_of(self, snapshot: Snapshot) -> Schema:
        """The schema a snapshot was written with; the current one when it does not say."""
        schema_id = snapshot.schema_id
        schemas = {schema.schema_id: schema for schema in self.schemas}
        return self.schema() if schema_id is None else schemas.get(schema_id) or self.schema()

    def spec(self) -> PartitionSpec:
        """The partition spec new files are written with."""
        return self.spec_by_id(self.default_spec_id)

    def spec_by_id(self, spec_id: int) -> PartitionSpec:
        """The partition spec of that id."""
        for spec in self.partition_specs:
            if spec.spec_id == spec_id:
                return spec
        raise NotFound(f"{self.location}: no partition spec with id {spec_id}")

    def specs_by_id(self) -> dict[int, PartitionSpec]:
        """Every partition spec by its id."""
        return {spec.spec_id: spec for spec in self.partition_specs}

    def sort_order(self) -> SortOrder:
        """The sort order new files are written with."""
        for order in self.sort_orders:
            if order.order_id == self.default_sort_order_id:
                return order
        from frazil.iceberg.sorting import UNSORTED

        if self.default_sort_order_id == UNSORTED.order_id:
            return UNSORTED
        raise NotFound(f"{self.location}: no sort order with id {self.default_sort_order_id}")

    def row_order(self) -> SortOrder | None:
        """The sort order, None for an unsorted table."""
        return self.sort_order() if self.default_sort_order_id else None

    def ref(self, name: str) -> SnapshotRef:
        """The branch or tag with this name."""
        ref = self.refs.get(name)
        if ref is None:
            names = f"there are: {', '.join(sorted(self.refs))}" if self.refs else "there are none"
            hint = did_you_mean(name, self.refs)
            raise NotFound(f"{self.location}: no branch or tag named {name!r}; {names}{hint}")
        return ref

    @property
    def current_snapshot_id(self) -> SnapshotId | None:
        """The snapshot `main` points to, or None for a table never written to."""
        main = self.refs.get(MAIN)
        return None if main is None else main.snapshot_id

    # Transitions

    def with_schema(self, schema: Schema, *, now_ms: int) -> TableMetadata:
        """Make a schema the current one; its new fields must have unused ids."""
        from frazil.iceberg.schema import Schema

        check_schema(schema)
        used = {field_id for old_schema in self.schemas for field_id in old_schema.field_ids}
        derived = {int(column.expr_id) for column in self.expressions}
        stale = sorted(
            i for i in schema.field_ids - used if i <= self.last_column_id or i in derived
        )
        if stale:
            raise InvalidInput(
                f"field ids {stale} are not free: new fields start at {self.last_column_id + 1}"
            )
        check_fits(self.spec(), self.sort_order(), schema)
        if self.has_sql_expressions:
            from frazil.format.expressions import check_kept

            check_kept(self.expressions, self.schema(), schema)
        for old_schema in self.schemas:
            if old_schema == schema:
                schema_id = SchemaId(old_schema.schema_id)
                return replace(self, current_schema_id=schema_id, last_updated_ms=now_ms)
        added = Schema(
            *schema.fields,
            schema_id=max(old_schema.schema_id for old_schema in self.schemas) + 1,
            identifier_field_ids=schema.identifier_field_ids,
        )
        return replace(
            self,
            schemas=(*self.schemas, added),
            current_schema_id=SchemaId(added.schema_id),
            last_column_id=max(self.last_column_id, schema.highest_field_id),
            last_updated_ms=now_ms,
        )

    def with_spec(self, spec: PartitionSpec, *, now_ms: int) -> TableMetadata:
        """Make a partition spec the default; its field ids are assigned here.

        A field that an earlier spec had, with the same source, transform and name, keeps its id; so
        does a field of the current spec that only has another name. Every field that is not
        identity gets a derived column.
        """
        from frazil.iceberg.partitioning import PartitionSpec
        from frazil.iceberg.sorting import UNSORTED

        check_spec(spec)
        check_partition_names(spec, self.schema())
        check_fits(spec, UNSORTED, self.schema())
        ids = {_identity(f): f.field_id for s in self.partition_specs for f in s.fields}
        renamed = {(f.field_id, *_identity(f)[:2]) for f in self.spec().fields}
        last = self.last_partition_id
        fields: list[PartitionField] = []
        for part in spec.fields:
            field_id = ids.get(_identity(part))
            if field_id is None and (part.field_id, *_identity(part)[:2]) in renamed:
                field_id = part.field_id
            if field_id is None:
                last += 1
                field_id = last
            fields.append(replace(part, field_id=field_id))
        moved = replace(self, last_partition_id=last, last_updated_ms=now_ms)
        for same in self.partition_specs:
            if same.fields == tuple(fields):
                return replace(moved, default_spec_id=SpecId(same.spec_id))
        spec_id = max(s.spec_id for s in self.partition_specs) + 1
        added = PartitionSpec(*fields, spec_id=spec_id)
        specs = (*self.partition_specs, added)
        return replace(
            moved, partition_specs=specs, default_spec_id=SpecId(spec_id)
        ).with_derived_columns()

    def with_sort_order(self, order: SortOrder, *, now_ms: int) -> TableMetadata:
        """Make a sort order the default; its id is assigned here."""
        from frazil.iceberg.partitioning import UNPARTITIONED
        from frazil.iceberg.sorting import UNSORTED, SortOrder

        check_fits(UNPARTITIONED, order, self.schema())
        for old_order in (*self.sort_orders, UNSORTED):
            if list(old_order.fields) == list(order.fields):
                added = old_order
                break
        else:
            highest = max((old_order.order_id for old_order in self.sort_orders), default=0)
            added = SortOrder(*order.fields, order_id=highest + 1)
        orders = self.sort_orders if added in self.sort_orders else (*self.sort_orders, added)
        return replace(
            self,
            sort_orders=orders,
            default_sort_order_id=SortOrderId(added.order_id),
            last_updated_ms=now_ms,
        )

    def with_properties(
        self, updates: Mapping[str, str], *, removals: Iterable[str] = (), now_ms: int
    ) -> TableMetadata:
        """Set and remove properties; credentials are refused, because metadata is stored."""
        check_properties(updates)
        check_path_properties(self.location, updates)
        removed = set(removals)
        both = sorted(removed & updates.keys())
        if both:
            raise InvalidInput(f"properties both set and removed: {', '.join(both)}")
        properties = {key: value for key, value in self.properties.items() if key not in removed}
        return replace(self, properties={**properties, **updates}, last_updated_ms=now_ms)

    def with_ref(self, name: str, ref: SnapshotRef, *, now_ms: int) -> TableMetadata:
        """Create a branch or tag, or point it elsewhere. `main` is always a branch."""
        check_ref_name(name)
        for key in ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"):
            value = getattr(ref, key)
            if value is not None:
                check_count(value, f"{key} of {name!r}")
        if name == MAIN and ref.kind is not RefKind.BRANCH:
            raise InvalidInput("main is a branch and cannot become a tag")
        if ref.kind is RefKind.TAG and (ref.min_snapshots_to_keep or ref.max_snapshot_age_ms):
            raise InvalidInput(f"tag {name!r} keeps one snapshot: only max_ref_age_ms applies")
        return replace(self, refs={**self.refs, name: ref}, last_updated_ms=now_ms)

    def without_ref(self, name: str, *, now_ms: int) -> TableMetadata:
        """Remove a branch or tag; its snapshot stays until it is expired. Without `main` the table
        is empty."""
        self.ref(name)
        refs = {key: ref for key, ref in self.refs.items() if key != name}
        return replace(self, refs=refs, last_updated_ms=now_ms)

    def with_snapshot(self, snapshot: Snapshot, *, branch: str | None = MAIN) -> TableMetadata:
        """Add a snapshot and move a branch to it; `branch=None` stages it without a name."""
        if self.format_version < FORMAT_VERSION:
            raise Unsupported(
                f"{self.location}: format-version {self.format_version} is not written; "
                "upgrade the table first",
                feature=f"writing format-version {self.format_version}",
            )
        if snapshot.sequence_number <= self.last_sequence_number:
            raise InvalidInput(
                f"snapshot {snapshot.snapshot_id} has sequence number {snapshot.sequence_number}; "
                f"expected more than {self.last_sequence_number}"
            )
        if _CLOCK_SKEW_MS < self.last_updated_ms - snapshot.timestamp_ms <= CLOCK_DRIFT_MS:
            raise InvalidInput(
                f"snapshot {snapshot.snapshot_id} is from {snapshot.timestamp_ms}, more than a "
                f"minute before the table's last change at {self.last_updated_ms}"
            )
        first_row_id = self.next_row_id if snapshot.first_row_id is None else snapshot.first_row_id
        if first_row_id < self.next_row_id:
            raise InvalidInput(
                f"snapshot {snapshot.snapshot_id} starts at row id {first_row_id}; "
                f"expected {self.next_row_id} or more"
            )
        refs = self.refs
        if branch is not None:
            old = refs.get(branch)
            if old is None:
                check_ref_name(branch)
            if old is not None and old.kind is RefKind.TAG:
                raise InvalidInput(f"{branch!r} is a tag and cannot be committed to")
            moved = (
                SnapshotRef(snapshot_id=snapshot.snapshot_id)
                if old is None
                else replace(old, snapshot_id=snapshot.snapshot_id)
            )
            refs = {**refs, branch: moved}
        return replace(
            self,
            refs=refs,
            last_sequence_number=snapshot.sequence_number,
            last_updated_ms=time_of_change(snapshot.timestamp_ms, self.last_updated_ms),
            next_row_id=first_row_id + (snapshot.added_rows or 0),
        )

    def relocated(self, location: str) -> TableMetadata:
        """The same table at another place; relative paths follow."""
        return replace(self, location=location.rstrip("/"))

    def upgraded(self, *, now_ms: int) -> TableMetadata:
        """The same table as format-version 4; old snapshots keep their manifest lists."""
        if self.format_version >= FORMAT_VERSION:
            return self.with_derived_columns()
        upgraded = replace(self, format_version=FORMAT_VERSION, last_updated_ms=now_ms)
        return upgraded.with_derived_columns()

    @property
    def has_sql_expressions(self) -> bool:
        """Whether files may have statistics of expressions such as `lower(name)`."""
        if not self.expressions:
            return False
        from frazil.format.metadata import derived

        return derived.has_sql(self.expressions)

    def with_expressions(self, declared: Sequence[Declaration], *, now_ms: int) -> TableMetadata:
        """Have statistics of exactly these expressions."""
        from frazil.format.metadata import derived

        columns, last = derived.with_declared(self.expressions, declared, self._last_derived_id())
        extra = {**self.extra, derived.LAST_ID: last}
        return replace(self, expressions=columns, extra=extra, last_updated_ms=now_ms)

    def with_derived_columns(self) -> TableMetadata:
        if self.format_version < FORMAT_VERSION:
            return self
        from frazil.format.metadata import derived

        last = self._last_derived_id()
        added = derived.of_partitions(self.partition_specs, self.expressions, last)
        return replace(self, expressions=(*self.expressions, *added)) if added else self

    def _last_derived_id(self) -> int:
        from frazil.format.metadata import derived

        recorded = self.extra.get(derived.LAST_ID)
        return derived.last_id(
            self.expressions, self.last_column_id, recorded if isinstance(recorded, int) else 0
        )


def new_table(
    *,
    schema: Schema,
    location: str,
    table_uuid: UUID,
    now_ms: int,
    spec: PartitionSpec | None = None,
    sort_order: SortOrder | None = None,
    properties: Mapping[str, str] | None = None,
) -> TableMetadata:
    """The metadata of a table just created: field ids fresh from 1, schema and spec ids from 0."""
    from frazil.iceberg.partitioning import UNPARTITIONED, fresh_spec
    from frazil.iceberg.schema import freshly_numbered
    from frazil.iceberg.sorting import UNSORTED, fresh_order

    spec = UNPARTITIONED if spec is None else spec
    sort_order = UNSORTED if sort_order is None else sort_order
    check_properties(properties or {})
    check_path_properties(location, properties or {})
    check_schema(schema)
    check_spec(spec)
    try:
        schema.check_format_version_compatibility(3)
        fresh = freshly_numbered(schema)
        new_spec = fresh_spec(spec, schema, fresh)
        new_order = fresh_order(sort_order, schema, fresh)
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    check_partition_names(new_spec, fresh)
    check_fits(new_spec, new_order, fresh)
    return TableMetadata(
        table_uuid=table_uuid,
        location=location.rstrip("/"),
        last_updated_ms=now_ms,
        last_column_id=fresh.highest_field_id,
        schemas=(fresh,),
        current_schema_id=SchemaId(fresh.schema_id),
        partition_specs=(new_spec,),
        default_spec_id=SpecId(new_spec.spec_id),
        last_partition_id=max(
            (part.field_id for part in new_spec.fields), default=FIRST_PARTITION_FIELD_ID - 1
        ),
        sort_orders=(new_order,),
        default_sort_order_id=SortOrderId(new_order.order_id),
        properties=dict(properties or {}),
    ).with_derived_columns()


def time_of_change(now_ms: int, last_updated_ms: int) -> int:
    """When a change happens: by the clock, and not before the last change.

    A last change more than `CLOCK_DRIFT_MS` ahead was stamped by a wrong clock. Following it would
    stamp every later change with that time, so the clock is believed instead.
    """
    if last_updated_ms - now_ms > CLOCK_DRIFT_MS:
        return now_ms
    return max(now_ms, last_updated_ms)


def log_entry(
    before: TableMetadata, after: TableMetadata, added: Sequence[Snapshot]
) -> SnapshotLogEntry | None:
    """The snapshot-log entry a change makes: one when `main` points elsewhere than before.

    A snapshot that the change adds became current at its own time, as readers expect who travel
    to that time.
    """
    current = after.current_snapshot_id
    if current is None or current == before.current_snapshot_id:
        return None
    times = [snapshot.timestamp_ms for snapshot in added if snapshot.snapshot_id == current]
    return SnapshotLogEntry(snapshot_id=current, timestamp_ms=min([*times, after.last_updated_ms]))


def _identity(part: PartitionField) -> tuple[tuple[int, ...], str, str]:

    return part.source_ids, str(part.transform), part.name
