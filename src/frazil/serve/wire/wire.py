"""Shapes of requests and answers, from the OpenAPI text of the Iceberg REST catalog.

Schemas, partition specs, sort orders and statistics stay plain values here and are checked where
they are used. Unknown keys are ignored, unknown updates and requirements are not.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

Json = dict[str, Any]
Long: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""What tables and catalogs store as a number: 64 bits."""


class Shape(msgspec.Struct, rename="kebab", omit_defaults=True):
    """Base of all shapes."""


# --- namespaces and names ----------------------------------------------------------------------


class CreateNamespace(Shape):
    """POST namespaces."""

    namespace: list[str]
    properties: dict[str, str] = {}


class UpdateProperties(Shape):
    """POST namespaces/{namespace}/properties."""

    removals: list[str] | None = None
    updates: dict[str, str] | None = None


class TableName(Shape):
    """A table or view by name."""

    namespace: list[str]
    name: str


class Rename(Shape):
    """POST tables/rename and views/rename."""

    source: TableName
    destination: TableName


# --- tables ------------------------------------------------------------------------------------


class CreateTable(Shape):
    """POST tables."""

    name: str
    schema: Json
    location: str | None = None
    partition_spec: Json | None = None
    write_order: Json | None = None
    stage_create: bool | None = False
    properties: dict[str, str] | None = None


class RegisterTable(Shape):
    """POST register."""

    name: str
    metadata_location: str
    overwrite: bool = False


class PostedSnapshot(Shape, kw_only=True):
    """A snapshot as a client commits it."""

    snapshot_id: Long
    manifest_list: str | None = None
    parent_snapshot_id: Long | None = None
    sequence_number: Long | None = None
    timestamp_ms: Long
    schema_id: Long | None = None
    first_row_id: Long | None = None
    added_rows: Long | None = None
    summary: dict[str, str] = {}


class Requirement(Shape, tag_field="type"):
    """What must hold for a commit."""


class AssertCreate(Requirement, tag="assert-create"):
    """The table must not exist."""


class AssertUuid(Requirement, tag="assert-table-uuid"):
    """The table must be this one."""

    uuid: str


class AssertRef(Requirement, tag="assert-ref-snapshot-id"):
    """A branch or tag must point here; None: it must not exist."""

    ref: str
    snapshot_id: Long | None = None


class AssertLastField(Requirement, tag="assert-last-assigned-field-id"):
    """No column may have been added."""

    last_assigned_field_id: Long


class AssertSchema(Requirement, tag="assert-current-schema-id"):
    """The current schema."""

    current_schema_id: Long


class AssertLastPartition(Requirement, tag="assert-last-assigned-partition-id"):
    """No partition field may have been added."""

    last_assigned_partition_id: Long


class AssertSpec(Requirement, tag="assert-default-spec-id"):
    """The default partition spec."""

    default_spec_id: Long


class AssertOrder(Requirement, tag="assert-default-sort-order-id"):
    """The default sort order."""

    default_sort_order_id: Long


AnyRequirement = (
    AssertCreate
    | AssertUuid
    | AssertRef
    | AssertLastField
    | AssertSchema
    | AssertLastPartition
    | AssertSpec
    | AssertOrder
)


class Update(Shape, tag_field="action"):
    """One change of a table."""


class AssignUuid(Update, tag="assign-uuid"):
    """Give a new table its uuid."""

    uuid: str


class UpgradeFormat(Update, tag="upgrade-format-version"):
    """Show the table as a later format version."""

    format_version: Long


class AddSchema(Update, tag="add-schema"):
    schema: Json
    last_column_id: Long | None = None


class SetCurrentSchema(Update, tag="set-current-schema"):
    """-1 is the schema added last."""

    schema_id: Long


class AddSpec(Update, tag="add-spec"):
    spec: Json


class SetDefaultSpec(Update, tag="set-default-spec"):
    """-1 is the spec added last."""

    spec_id: Long


class AddSortOrder(Update, tag="add-sort-order"):
    sort_order: Json


class SetDefaultSortOrder(Update, tag="set-default-sort-order"):
    """-1 is the order added last."""

    sort_order_id: Long


class AddSnapshot(Update, tag="add-snapshot"):
    snapshot: PostedSnapshot


class SetRef(Update, tag="set-snapshot-ref"):
    """Create or move a branch or tag."""

    ref_name: str
    type: str
    snapshot_id: Long
    max_ref_age_ms: Long | None = None
    max_snapshot_age_ms: Long | None = None
    min_snapshots_to_keep: Long | None = None


class RemoveSnapshots(Update, tag="remove-snapshots"):
    """Forget snapshots."""

    snapshot_ids: list[Long]


class RemoveRef(Update, tag="remove-snapshot-ref"):
    ref_name: str


class SetLocation(Update, tag="set-location"):
    """Where new files go."""

    location: str


class SetProperties(Update, tag="set-properties"):
    updates: dict[str, str]


class RemoveProperties(Update, tag="remove-properties"):
    removals: list[str]


class SetStatistics(Update, tag="set-statistics"):
    """Name a statistics file."""

    statistics: Json
    snapshot_id: Long | None = None


class RemoveStatistics(Update, tag="remove-statistics"):
    """Forget the statistics of a snapshot."""

    snapshot_id: Long


class SetPartitionStatistics(Update, tag="set-partition-statistics"):
    """Name a partition statistics file."""

    partition_statistics: Json


class RemovePartitionStatistics(Update, tag="remove-partition-statistics"):
    """Forget the partition statistics of a snapshot."""

    snapshot_id: Long


class RemoveSchemas(Update, tag="remove-schemas"):
    """Forget schemas."""

    schema_ids: list[Long]


class RemoveSpecs(Update, tag="remove-partition-specs"):
    """Forget partition specs."""

    spec_ids: list[Long]


AnyUpdate = (
    AssignUuid
    | UpgradeFormat
    | AddSchema
    | SetCurrentSchema
    | AddSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetRef
    | RemoveSnapshots
    | RemoveRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | SetStatistics
    | RemoveStatistics
    | SetPartitionStatistics
    | RemovePartitionStatistics
    | RemoveSchemas
    | RemoveSpecs
)


class CommitTable(Shape):
    """POST tables/{table}."""

    requirements: list[AnyRequirement] = []
    updates: list[AnyUpdate] = []
    identifier: TableName | None = None


class CommitTransaction(Shape):
    """POST transactions/commit."""

    table_changes: list[CommitTable]


# --- views -------------------------------------------------------------------------------------


class Representation(Shape):
    """The text of a view in one dialect."""

    type: str
    sql: str
    dialect: str


class ViewVersion(Shape):
    """What a version of a view must have; it is kept as it was sent."""

    version_id: Long
    schema_id: Long
    timestamp_ms: Long
    representations: list[Representation]
    default_namespace: list[str] = []
    summary: dict[str, str] = {}


class CreateView(Shape):
    """POST views."""

    name: str
    schema: Json
    view_version: Json
    properties: dict[str, str] = {}
    location: str | None = None


class AssertViewUuid(Shape, tag_field="type", tag="assert-view-uuid"):
    """The view must be this one."""

    uuid: str


class AddViewVersion(Update, tag="add-view-version"):
    view_version: Json


class SetCurrentViewVersion(Update, tag="set-current-view-version"):
    """-1 is the version added last."""

    view_version_id: Long


AnyViewUpdate = (
    AssignUuid
    | UpgradeFormat
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)


class CommitView(Shape):
    """POST views/{view}."""

    updates: list[AnyViewUpdate]
    requirements: list[AssertViewUuid] = []
    identifier: TableName | None = None
