"""Changes to a table's metadata as values: each refuses another base than its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from frazil.errors import CommitConflict, Conflict, InvalidInput
from frazil.format.checks import check_text, check_texts
from frazil.format.metadata.metadata import SnapshotRef, TableMetadata
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.schema import Schema
from frazil.properties.registry import check_values
from frazil.value_classes import field, frozen, replace

if TYPE_CHECKING:
    from frazil.format.expressions import Declaration
    from frazil.iceberg.sorting import SortOrder


class MetadataUpdate(Protocol):
    """One change to the metadata."""

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        """The metadata after it; CommitConflict when the base is not the one it was built on."""


@frozen
class SetProperties:
    """Set and remove table properties."""

    updates: Mapping[str, str] = field(default_factory=dict)
    removals: tuple[str, ...] = ()

    @staticmethod
    def of(updates: object, remove: object = ()) -> SetProperties:
        """From what a user gives; refuses what is not text."""
        settings = {} if updates is None else updates
        check_texts(settings, "property")
        check_values(cast(Mapping[str, str], settings))
        if isinstance(remove, str | bytes) or not isinstance(remove, Iterable):
            raise InvalidInput(f"remove is {remove!r}; expected a list of property names")
        removals = tuple(check_text(key, "a property to remove") for key in remove)
        return SetProperties(updates=dict(cast(Mapping[str, str], settings)), removals=removals)

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        return metadata.with_properties(self.updates, removals=self.removals, now_ms=now_ms)


@frozen
class MovePosition:
    """Move a position that is kept in a property on, from where it is expected to be."""

    key: str
    expected: str | None
    to: str

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        _same(f"position {self.key}", self.expected, metadata.properties.get(self.key))
        return metadata.with_properties({self.key: self.to}, removals=(), now_ms=now_ms)


@frozen
class SetSchema:
    """Make a schema the current one."""

    schema: Schema
    based_on_schema_id: int
    based_on_last_column_id: int

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        _same("current schema", self.based_on_schema_id, metadata.current_schema_id)
        _same("last column id", self.based_on_last_column_id, metadata.last_column_id)
        return metadata.with_schema(self.schema, now_ms=now_ms)


@frozen
class SetSpec:
    """Make a partition spec the default for new files."""

    spec: PartitionSpec
    based_on_spec_id: int

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        _same("default partition spec", self.based_on_spec_id, metadata.default_spec_id)
        return metadata.with_spec(self.spec, now_ms=now_ms)


@frozen
class HaveUnpartitionedSpec:
    """Keep an unpartitioned spec of this id beside the default, for deletes of the whole table."""

    spec_id: int

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        same_id = [spec for spec in metadata.partition_specs if spec.spec_id == self.spec_id]
        if not same_id:
            specs = (*metadata.partition_specs, PartitionSpec(spec_id=self.spec_id))
            return replace(metadata, partition_specs=specs, last_updated_ms=now_ms)
        if same_id[0].fields:
            raise CommitConflict(
                f"partition spec {self.spec_id} was added by another commit; run it again",
                [Conflict(what="partition spec id was taken", where=str(self.spec_id))],
            )
        return metadata


@frozen
class SetExpressions:
    """Have statistics of exactly these expressions of columns."""

    declared: tuple[Declaration, ...]
    based_on_schema_id: int

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        _same("current schema", self.based_on_schema_id, metadata.current_schema_id)
        return metadata.with_expressions(self.declared, now_ms=now_ms)


@frozen
class SetSortOrder:
    """Make a sort order the default for new files."""

    order: SortOrder
    based_on_order_id: int

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        _same("default sort order", self.based_on_order_id, metadata.default_sort_order_id)
        return metadata.with_sort_order(self.order, now_ms=now_ms)


@frozen
class SetRef:
    """Create or move a branch or tag; `expected` is where it must point now (None: not there)."""

    name: str
    ref: SnapshotRef
    expected: int | None

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        now = metadata.refs.get(self.name)
        _same(f"ref {self.name}", self.expected, None if now is None else now.snapshot_id)
        return metadata.with_ref(self.name, self.ref, now_ms=now_ms)


@frozen
class RemoveRef:
    """Remove a branch or tag."""

    name: str

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        return metadata.without_ref(self.name, now_ms=now_ms)


@frozen
class RemoveSnapshots:
    """Forget snapshots; none of them may have a name."""

    snapshot_ids: tuple[int, ...]

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        names_by_target = {int(ref.snapshot_id): name for name, ref in metadata.refs.items()}
        held = [(id, names_by_target[id]) for id in self.snapshot_ids if id in names_by_target]
        if held:
            raise CommitConflict(
                "snapshots to expire got a name meanwhile; plan the expiry again",
                [Conflict(what="referenced by", where=f"{name} → {id}") for id, name in held],
            )
        gone = {str(id) for id in self.snapshot_ids}
        return replace(
            metadata,
            statistics=_without(metadata.statistics, gone),
            partition_statistics=_without(metadata.partition_statistics, gone),
            last_updated_ms=now_ms,
        )


@frozen
class SetStatistics:
    """Name the statistics file of a snapshot, in place of the one it had."""

    entry: Mapping[str, Any]

    def apply(self, metadata: TableMetadata, *, now_ms: int) -> TableMetadata:
        statistics = _without(metadata.statistics, {str(self.entry["snapshot-id"])})
        return replace(metadata, statistics=(*statistics, self.entry), last_updated_ms=now_ms)


def _without(
    statistics: tuple[Mapping[str, Any], ...], gone: set[str]
) -> tuple[Mapping[str, Any], ...]:
    return tuple(entry for entry in statistics if str(entry.get("snapshot-id")) not in gone)


def _same(what: str, expected: object, actual: object) -> None:
    if expected != actual:
        raise CommitConflict(
            f"{what} changed from {expected} to {actual} while this change was prepared; "
            "load the table again and repeat it",
            [Conflict(what=f"{what} changed", where=f"{expected} → {actual}")],
        )
