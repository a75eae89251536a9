"""One leaf, or the data files of the root: its entries as cells, and a page of them in full."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.errors import InvalidInput
from frazil.filter.prune.prune import Filter
from frazil.format import paths
from frazil.format.entries import tracking
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, partition_key, stats_key
from frazil.format.entries.stats import TrackedField
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer import display_values
from frazil.serve.explorer.pages.plan_page import scan_of
from frazil.serve.explorer.scales import Bounds, Scale
from frazil.serve.explorer.subject import Subject, whole
from frazil.serve.explorer.tree import MAX_CELLS, RootView, cell_bounds, cell_counts, leaf_name
from frazil.serve.limits import MAX_PAGE_ENTRIES
from frazil.serve.rest_errors import RestError, bad_request
from frazil.serve.service import Service
from frazil.tree.read import POSITION, LeafRef
from frazil.tree.table_shape import shape_of
from frazil.value_classes import dataclass

ROOT = "root"
_KEYS = (
    "location",
    "record_count",
    "file_size_in_bytes",
    "spec_id",
    "deletion_vector.cardinality",
    "tracking.snapshot_id",
    "tracking.sequence_number",
)
_KINDS = {
    int(ContentType.DATA): "data",
    int(ContentType.POSITION_DELETES): "position-deletes",
    int(ContentType.EQUALITY_DELETES): "equality-deletes",
}
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LeafView:
    """The entries of a leaf, or those of the root that are files."""

    root: RootView
    leaf: LeafRef | None
    judge: Filter | None

    @cached_property
    def entries(self) -> EntryBatch:
        """All of them, dead ones included."""
        subject = self.root.subject
        columns = self.root.columns
        keys = {
            *_KEYS,
            *(
                stats_key(column.id, n)
                for column in columns
                for n in ("lower_bound", "upper_bound")
            ),
            *(
                partition_key(field.field_id)
                for spec in subject.table.metadata.partition_specs
                for field in spec.fields
            ),
            *(() if self.judge is None else self.judge.required_keys),
        }
        if self.leaf is not None:
            return subject.reader.entries(self.leaf, keys=keys)
        root = subject.reader.tree(subject.snapshot, keys=keys).root
        rows = np.flatnonzero(~tracking.leaf_mask(root) & tracking.live_mask(root))
        return root.take(rows).with_column(POSITION, pa.array(rows))

    @cached_property
    def live(self) -> Mask:
        """Which of them are part of the snapshot."""
        mask = tracking.live_mask(self.entries).copy()
        if self.leaf is not None and self.leaf.dv:
            mask[self.leaf.dead_positions()] = False
        return mask

    @cached_property
    def matching(self) -> Mask:
        """Which live ones may have rows that the filter asks for."""
        if self.judge is None:
            return self.live
        return self.live & self.judge.might_match(self.entries)


def show(service: Service, call: Request) -> Response:
    """GET leaf."""
    subject = Subject.of(service, call)
    columns = subject.columns(call.query.get("columns"))
    column_id = call.query.get("column")
    if column_id and not any(str(column.id) == column_id for column in columns):
        columns = (*subject.columns(column_id), *columns)
    root = RootView(subject, columns)
    view = LeafView(root, _leaf(root, call), _judge(subject, call))
    entries, live = view.entries, view.live
    chosen = next((column for column in columns if str(column.id) == column_id), None)
    if chosen is None:
        chosen = columns[0] if columns else None
    rows = np.flatnonzero(_only(view, call.query.get("only", "all")))
    start = whole(call, "offset", default=0, maximum=1 << 40)
    limit = whole(call, "limit", default=50, maximum=MAX_PAGE_ENTRIES)
    leaf = view.leaf
    return Response(
        body={
            "id": ROOT if leaf is None else leaf.location,
            "name": root.root_name if leaf is None else leaf_name(leaf.location),
            "entries": entries.num_rows,
            "dead": int((~live).sum()),
            "matching": int(view.matching.sum()),
            "bytes": root.root_bytes if leaf is None else leaf.file_size_in_bytes,
            "written_by": display_values.ids([None if leaf is None else leaf.snapshot_id])[0],
            "format_version": 4 if leaf is None else leaf.format_version,
            "columns": [column for column in (_column(view, c) for c in columns) if column],
            "cells": _cells(view, chosen),
            "total": len(rows),
            "page": _page(view, rows[start : start + limit], start),
        }
    )


def _leaf(root: RootView, call: Request) -> LeafRef | None:
    leaf_id = call.query.get("id", ROOT)
    if leaf_id == ROOT:
        return None
    for leaf in root.leaves:
        if leaf.location == leaf_id:
            return leaf
    raise RestError(404, "NotFoundException", f"{leaf_id}: the snapshot has no such leaf")


def _judge(subject: Subject, call: Request) -> Filter | None:
    where = call.query.get("where", "").strip()
    if not where:
        return None
    try:
        filter_ = scan_of(subject, where).condition.filter
    except InvalidInput as error:
        raise bad_request(str(error)) from error
    return shape_of(subject.table.metadata).filter_of(filter_, subject.schema)


def _only(view: LeafView, which: str) -> Mask:
    match which:
        case "match":
            return view.matching
        case "dead":
            return ~view.live
        case "all":
            return np.ones(view.entries.num_rows, dtype=np.bool_)
    raise bad_request(f"only is {which!r}; expected all, match or dead")


def _column(view: LeafView, column: TrackedField) -> dict[str, Any] | None:
    column_scale = view.root.scale(column)
    if column_scale is None:
        return None
    scale, bounds = column_scale
    about: dict[str, Any] = {
        "id": column.id,
        "name": column.full_name,
        "type": str(column.type),
        **scale.about(),
        "leaf": None,
        "lo_text": None,
        "hi_text": None,
        "nulls": None,
    }
    if view.leaf is not None:
        row = view.leaf.row
        lower, upper = bounds.lower.slice(row, 1), bounds.upper.slice(row, 1)
        low, high = scale.places(lower)[0], scale.places(upper)[0]
        about["leaf"] = None if low is None or high is None else [low, high]
        about["lo_text"], about["hi_text"] = (
            display_values.texts(lower)[0],
            display_values.texts(upper)[0],
        )
        nulls = stats_key(column.id, "null_value_count")
        if view.root.root.has(nulls):
            about["nulls"] = view.root.root.pylist(nulls, np.array([row]))[0]
    return about


def _cells(view: LeafView, column: TrackedField | None) -> dict[str, Any]:
    count = view.entries.num_rows
    stride = max(1, -(-count // MAX_CELLS))
    lower: list[float | None] = []
    upper: list[float | None] = []
    scale = None if column is None else _scale(view, column)
    bounds = None if column is None else Bounds.of(view.entries, column.id, column.type)
    if scale is not None and bounds is not None:
        lower, upper = cell_bounds(scale, bounds, np.arange(count), stride)
    return {
        "stride": stride,
        "column": None if column is None else column.id,
        "live": cell_counts(view.live, stride),
        "match": cell_counts(view.matching, stride),
        "dead": cell_counts(~view.live, stride),
        "lo": lower,
        "hi": upper,
    }


def _scale(view: LeafView, column: TrackedField) -> Scale | None:
    scale = view.root.scale(column)
    return None if scale is None else scale[0]


def _page(view: LeafView, rows: npt.NDArray[Any], start: int) -> dict[str, Any]:
    part = view.entries.take(rows)
    subject = view.root.subject
    location = subject.table.location
    names = part.pylist("location")
    vectors = part.pylist("deletion_vector.cardinality")
    return {
        "offset": start,
        "position": part.pylist(POSITION),
        "file": [paths.resolve(location, name) for name in names],
        "id": names,
        "rows": part.pylist("record_count"),
        "bytes": part.pylist("file_size_in_bytes"),
        "vector_rows": vectors,
        "state": ["live" if is_live else "dead" for is_live in view.live[rows]],
        "match": [
            None if view.judge is None else bool(is_match) for is_match in view.matching[rows]
        ],
        "kind": [_KINDS.get(kind, "other") for kind in part.pylist("content_type")],
        "added_by": display_values.ids(part.pylist("tracking.snapshot_id")),
        "sequence": part.pylist("tracking.sequence_number"),
        "bounds": _bounds(part, view.root.columns),
        "partition": partitions(subject, part),
    }


def _bounds(part: EntryBatch, columns: tuple[TrackedField, ...]) -> dict[str, Any]:
    by_id: dict[str, Any] = {}
    for column in columns:
        bounds = Bounds.of(part, column.id, column.type)
        if bounds is not None:
            by_id[str(column.id)] = {
                "lo": display_values.texts(bounds.lower, max_length=60),
                "hi": display_values.texts(bounds.upper, max_length=60),
            }
    return by_id


def partitions(subject: Subject, part: EntryBatch) -> list[str]:
    """The partition of each entry, as people write it."""
    metadata = subject.table.metadata
    specs = metadata.specs_by_id()
    texts: list[str] = []
    columns = {
        field.field_id: display_values.texts(
            part.column(partition_key(field.field_id)), max_length=60
        )
        for spec in metadata.partition_specs
        for field in spec.fields
        if part.has(partition_key(field.field_id))
    }
    only = next(iter(specs)) if len(specs) == 1 else None
    for at, spec_id in enumerate(part.pylist("spec_id")):
        chosen = only if spec_id is None else spec_id
        spec = None if chosen is None else specs.get(chosen)
        fields = () if spec is None else spec.fields
        texts.append(
            ", ".join(
                f"{field.name}={_or_null(columns[field.field_id][at])}"
                for field in fields
                if field.field_id in columns
            )
        )
    return texts


def _or_null(value: str | None) -> str:
    return "null" if value is None else value
