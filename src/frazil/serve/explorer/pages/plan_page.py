"""A filter planned on a snapshot: what fell away and why, what is left, what it cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.errors import InvalidInput
from frazil.filter.prune.prune import Filter, compile_filter
from frazil.filter.text.filter_display import filter_text
from frazil.format.entries.fields import partition_key, stats_key
from frazil.format.partition_fields import source_ids
from frazil.rows.scan import Scan
from frazil.scan.plan import FILE_KEYS, Plan
from frazil.scan.plan import plan as planned
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer import manifests, shown_values, typed_filters
from frazil.serve.explorer.subject import Subject, whole
from frazil.serve.explorer.tree import RootView, cell_counts, totals
from frazil.serve.service import Service
from frazil.tree.table_shape import shape_of

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
    known = {column.id: column for column in subject.bounded}
    asked = subject.columns(call.query.get("columns")) if call.query.get("columns") else ()
    columns = {column.id: column for column in (*(known[id] for id in ids if id in known), *asked)}
    judge = compile_filter(
        condition.filter, shape_of(subject.table.metadata).prune_context(subject.schema)
    )
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
    partitions = manifests.prunes_by_partition(subject.table.metadata, ids)
    would_open, would_have = manifests.opened(
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
                "assumption": manifests.ASSUMPTION,
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
    stated = {key.rpartition(".")[0] for key in judge.required_keys if "." in key}
    counts = {f"{name}.{bound}" for name in stated for bound in ("lower_bound", "upper_bound")}
    ids = {source for field in parts for source in source_ids(field)}
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
    texts = shown_values.texts(ordered, max_length=60)
    return typed_filters.offered_values(texts, typed, quoted=not is_number)
