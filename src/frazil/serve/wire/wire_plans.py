"""Shapes of scan planning, from the OpenAPI text of the Iceberg REST catalog."""

from __future__ import annotations

from typing import Any

import msgspec

from frazil.serve.wire.wire import Long, Shape


class PlanScan(Shape):
    """POST plan."""

    snapshot_id: Long | None = None
    select: list[str] | None = None
    filter: Any = None
    min_rows_requested: Long | None = None
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    start_snapshot_id: Long | None = None
    end_snapshot_id: Long | None = None
    stats_fields: list[str] | None = None


class FetchTasks(Shape):
    """POST tasks."""

    plan_task: str


class IdMap(Shape, gc=False):
    """Values by field id."""

    keys: list[int]
    values: list[Any]


class ContentFile(Shape, gc=False):
    """A data or delete file."""

    spec_id: int
    content: str
    file_path: str
    file_format: str
    partition: list[Any]
    file_size_in_bytes: int
    record_count: int
    first_row_id: int | None = None
    split_offsets: list[int] | None = None
    sort_order_id: int | None = None
    value_counts: IdMap | None = None
    null_value_counts: IdMap | None = None
    nan_value_counts: IdMap | None = None
    lower_bounds: IdMap | None = None
    upper_bounds: IdMap | None = None
    equality_ids: list[int] | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None


class ScanTask(msgspec.Struct, rename="kebab", gc=False):
    """One data file to read and the deletes that apply; the residual filter is always stated."""

    data_file: ContentFile
    residual_filter: msgspec.Raw
    delete_file_references: list[int] | msgspec.UnsetType = msgspec.UNSET


class Tasks(Shape):
    """Some tasks of a plan, and where the others are."""

    file_scan_tasks: list[ScanTask] = []
    delete_files: list[ContentFile] = []
    plan_tasks: list[str] = []


class Planned(msgspec.Struct, rename="kebab"):
    """A finished plan."""

    status: str
    plan_id: str
    plan_tasks: list[str]
    file_scan_tasks: list[ScanTask]
    delete_files: list[ContentFile] | msgspec.UnsetType = msgspec.UNSET


class PlanState(msgspec.Struct, array_like=True):
    """All there is to know of a plan, and of one part of it: servers keep nothing.

    `leaf` is the ordinal of the first leaf to read, -1 the root; `skip` how many of its files came
    before; `end` the leaf to stop at.
    """

    plan: str
    snapshot_id: int
    filter: Any = None
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    start_snapshot_id: int | None = None
    stats_fields: list[str] = []
    leaf: int = -1
    skip: int = 0
    end: int | None = None
