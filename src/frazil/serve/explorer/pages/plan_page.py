"""A filter planned on a snapshot: what fell away and why, what is left, what it cost, and how many
manifests a reader of Iceberg v2 or v3 would open for it.

Such a table would have a manifest for every leaf, and one for every commit whose files are still
in the root. Its manifest list knows the ranges of partition fields alone, so a filter on any other
column opens everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import InvalidInput
from frazil.filter.prune.prune import Filter
from frazil.filter.text.filter_display import filter_text
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import partition_key, stats_key
from frazil.format.metadata.metadata import TableMetadata
from frazil.iceberg.partitioning import PartitionSpec
from frazil.iceberg.transforms import IdentityTransform
from frazil.rows.scan import Scan
from frazil.scan.plan import FILE_KEYS, Plan
from frazil.scan.plan import plan as planned
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer import display_values, typed_filters
from frazil.serve.explorer.subject import Subject, whole
from frazil.serve.explorer.tree import RootView, cell_counts, totals
from frazil.serve.service import Service
from frazil.tree.table_shape import shape_of

ASSUMPTION = (
    "Counted as one manifest for each leaf and one for each commit whose files are still in the "
    "root, pruned by the ranges of partition fields, which is all that a manifest list of v2 or v3 "
    "knows. No merging of manifests is assumed beyond what this table did."
)
_COUNTS = ("value_count", "null_value_count", "nan_value_count")
_BOUNDS = ("lower_bound", "upper_bound")


def opened(
    judge: Filter, metadata: TableMetadata, root: EntryBatch, leaves: Any, inline: Any
) -> tuple[int, int]:
    """Manifests that would be opened, and all of them."""
    count = 0
    total = 0
    for batch in _manifests(metadata, root, np.asarray(leaves), np.asarray(inline)):
        count += int(judge.might_match(batch).sum())
        total += batch.num_rows
    return count, total


def _manifests(
    metadata: TableMetadata, root: EntryBatch, leaves: Any, inline: Any
) -> Iterator[EntryBatch]:
    """What would be manifests, by spec, with what a list would know of them; a leaf of several
    specs has none."""
    specs = metadata.specs_by_id()
    only = next(iter(specs.values())) if len(specs) == 1 else None
    spec_ids = root.numpy("spec_id")
    for rows, grouped in ((leaves, False), (inline, True)):
        for spec_id in np.unique(spec_ids[rows]) if len(rows) else ():
            chosen = rows[spec_ids[rows] == spec_id]
            spec = specs.get(int(spec_id)) or only
            batch = _of_partitions(root, spec, metadata).take(chosen)
            yield _by_commit(batch) if grouped else batch


def _by_commit(batch: EntryBatch) -> EntryBatch:
    """Files of one commit as the manifest that would hold them."""
    key = "tracking.snapshot_id"
    columns: dict[str, pa.Array] = {key: batch.column(key)}
    how: list[tuple[str, str]] = []
    unknown: list[tuple[str, str]] = []
    for name in batch.keys:
        if not name.startswith("content_stats."):
            continue
        kind = name.rpartition(".")[2]
        if kind in _BOUNDS or kind in _COUNTS:
            columns[name] = batch.column(name)
            how.append((name, "sum" if kind in _COUNTS else "min" if "lower" in kind else "max"))
            unknown.append((name, "count"))
    grouped = (
        pa.table(columns)
        .group_by(key, use_threads=False)
        .aggregate([*how, *unknown, ([], "count_all")])
    )
    size = grouped.column("count_all").to_numpy()
    by_name: dict[str, Any] = {}
    for name, column in how:
        values = grouped.column(f"{name}_{column}")
        complete = grouped.column(f"{name}_count").to_numpy() == size
        by_name[name] = pa.array(
            [
                value if is_complete else None
                for value, is_complete in zip(values, complete, strict=True)
            ],
            values.type,
        )
    return EntryBatch(pa.table({key: grouped.column(key), **by_name}))


def _of_partitions(
    batch: EntryBatch, spec: PartitionSpec | None, metadata: TableMetadata
) -> EntryBatch:
    """The batch with the statistics of partition fields alone."""
    paths: set[str] = set()
    for field in () if spec is None else spec.fields:
        ids: list[int] = [
            expression.expr_id
            for expression in metadata.expressions
            if expression.partition_field_id == field.field_id
        ]
        if isinstance(field.transform, IdentityTransform):
            ids = [*ids, field.source_id]
        paths |= {stats_key(id, name) for id in ids for name in (*_BOUNDS, *_COUNTS)}
    return batch.select(
        [key for key in batch.keys if key in paths or key == "tracking.snapshot_id"]
    )


def prunes_by_partition(metadata: TableMetadata, column_ids: list[int]) -> bool:
    """Whether a filter on these columns says anything about partitions."""
    fields = (field for spec in metadata.partition_specs for field in spec.fields)
    return any(set(field.source_ids) <= set(column_ids) for field in fields)


_MIXED = -2


def show(service: Service, call: Request) -> Response:
    """GET plan."""
    subject = Subject.of(service, call)
    text = call.query.get("where", "").strip()
    scan = scan_of(subject, text)
    try:
        condition = scan.condition
    except InvalidInput as error:
        return Response(
            body={"ok": False, "error": typed_filters.complaint(text, error, subject.schema)}
        )
    ids = typed_filters.column_ids(condition.filter)
    columns_by_id = {column.id: column for column in subject.bounded}
    chosen_columns = subject.columns(call.query.get("columns")) if call.query.get("columns") else ()
    columns = {
        column.id: column
        for column in (*(columns_by_id[id] for id in ids if id in columns_by_id), *chosen_columns)
    }
    judge = shape_of(subject.table.metadata).filter_of(condition.filter, subject.schema)
    view = RootView(subject, tuple(columns.values()), extra=_keys(subject, judge))
    with subject.table._handle.storage.recording() as calls:
        root = view.root
        plan = planned(
            subject.reader,
            subject.snapshot,
            schema=subject.schema,
            where=condition.filter,
            reasons=True,
        )
    report, why = plan.report, plan.reasons
    assert why is not None
    names = {id: subject.schema.find_column_name(id) or str(id) for id in subject.schema.field_ids}
    deletes = view.delete_leaves
    scales = {id: view.scale(columns[id]) for id in ids if id in columns}
    bands = {
        str(id): typed_filters.bands(condition.filter, id, scale[0])
        for id, scale in scales.items()
        if scale is not None
    }
    partitions = prunes_by_partition(subject.table.metadata, ids)
    would_open, would_have = opened(
        judge,
        subject.table.metadata,
        root,
        why.leaf_rows,
        why.inline_rows,
    )
    return Response(
        body={
            "ok": True,
            "snapshot": None if report.snapshot_id is None else str(report.snapshot_id),
            "where": filter_text(condition.filter) if text else "",
            "ms": round(report.ms, 3),
            "opened": report.leaves.manifests_read,
            "of": len(why.leaf_rows),
            "bytes": view.root_bytes + sum(leaf.file_size_in_bytes for leaf in why.opened),
            "bytes_read": sum(call.bytes for call in calls),
            "files": report.files,
            "rows": report.records,
            "data_bytes": report.bytes,
            "all": _all(subject),
            "reasons": [
                {
                    "columns": [names.get(id, reason.text) for id in reason.field_ids],
                    "ids": list(reason.field_ids),
                    "by": reason.by,
                    "text": reason.text,
                }
                for reason in why.reasons
            ],
            "leaf_why": [*why.leaf_codes.tolist(), *([-1] * deletes)],
            "leaf_left": [
                *(None if left < 0 else left for left in why.left.tolist()),
                *([None] * deletes),
            ],
            **_inline(plan, view),
            "engine_only": None if condition.sql is None else condition.sql.text,
            "prunable": partitions
            or any(scales.get(id) is not None for id in ids)
            or typed_filters.has_files_alone(condition.filter),
            "bands": bands,
            "columns": ids,
            "iceberg": {
                "manifests": would_open,
                "all": would_have,
                "pruned_by": "partition" if partitions else None,
                "assumption": ASSUMPTION,
            },
        }
    )


def scan_of(subject: Subject, where: str) -> Scan:
    """The scan that a filter means on a snapshot."""
    table = subject.table
    return Scan(
        _handle=table._handle,
        snapshot=subject.snapshot,
        matching=where or None,
        schema_override=subject.schema,
    )


def _keys(subject: Subject, judge: Filter) -> frozenset[str]:
    """What a plan and the comparison read of a root, so that it is opened once."""
    metadata = subject.table.metadata
    parts = [field for spec in metadata.partition_specs for field in spec.fields]
    judged = {key.rpartition(".")[0] for key in judge.required_keys if "." in key}
    counts = {f"{name}.{bound}" for name in judged for bound in ("lower_bound", "upper_bound")}
    ids = {source for field in parts for source in field.source_ids}
    return frozenset(
        {
            *FILE_KEYS,
            *judge.required_keys,
            *(partition_key(field.field_id) for field in parts),
            *(stats_key(id, bound) for id in ids for bound in ("lower_bound", "upper_bound")),
            *(key for key in counts if key.startswith("content_stats.")),
        }
    )


def _all(subject: Subject) -> dict[str, int | None]:
    counts = totals(subject)
    return {"files": counts["files"], "rows": counts["rows"], "data_bytes": counts["bytes"]}


def _inline(plan: Plan, view: RootView) -> dict[str, Any]:
    """Files of the root by cell: how many are left, and the reason where all share one."""
    assert plan.reasons is not None
    codes, stride = plan.reasons.inline_codes, view.stride
    left = cell_counts(codes < 0, stride)
    if stride == 1:
        return {"inline_why": codes.tolist(), "inline_left": left}
    starts = np.arange(0, len(codes), stride)
    lowest, highest = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
    why = np.where(lowest == highest, lowest, _MIXED)
    return {"inline_why": why.tolist(), "inline_left": left}


def complete(service: Service, call: Request) -> Response:
    """GET complete: what may come next in a filter. Values are those that bounds of the root name,
    so that no leaf is opened for them."""
    subject = Subject.of(service, call)
    text = call.query.get("where", "")
    at = whole(call, "at", default=len(text), maximum=len(text))
    completion = typed_filters.completion(text, at, subject.schema)
    if completion["kind"] == "value":
        completion["names"] = _values(subject, completion["column"], text[completion["from"] : at])
    return Response(body=completion)


def _values(subject: Subject, name: str | None, typed: str) -> list[str]:
    column = next((column for column in subject.bounded if column.full_name == name), None)
    scaled = None if column is None else RootView(subject, (column,)).scale(column)
    if column is None or scaled is None:
        return []
    _, bounds = scaled
    both = pa.concat_arrays([bounds.lower, bounds.upper]).unique().drop_null()
    ordered = both.take(pc.sort_indices(both)) if not pa.types.is_binary(both.type) else both
    is_number = pa.types.is_integer(both.type) or pa.types.is_floating(both.type)
    is_number = is_number or pa.types.is_decimal(both.type) or pa.types.is_boolean(both.type)
    texts = display_values.texts(ordered, max_length=60)
    return typed_filters.offered_values(texts, typed, quoted=not is_number)
