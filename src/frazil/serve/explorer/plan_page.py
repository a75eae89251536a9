"""A filter planned on a snapshot: what fell away and why, what is left, what it cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import InvalidInput
from frazil.expr.filter_display import shown
from frazil.expr.prune import Filter, compile_filter
from frazil.format.fields import partition_key, stats_key
from frazil.rows.scan import Scan
from frazil.scan.plan import FILE_KEYS, Plan, prune_context
from frazil.scan.plan import plan as planned
from frazil.serve.exchange import Answer, Call
from frazil.serve.explorer import manifests, shown_values, typed_filters
from frazil.serve.explorer.subject import Subject, whole
from frazil.serve.explorer.tree import RootView, cell_counts, totals
from frazil.serve.service import Service

_MIXED = -2


def show(service: Service, call: Call) -> Answer:
    """GET plan."""
    subject = Subject.of(service, call)
    text = call.query.get("where", "").strip()
    scan = scan_of(subject, text)
    try:
        found = scan.condition
    except InvalidInput as error:
        return Answer(
            body={"ok": False, "error": typed_filters.complaint(text, error, subject.schema)}
        )
    ids = typed_filters.column_ids(found.filter)
    known = {each.id: each for each in subject.bounded}
    asked = subject.columns(call.query.get("columns")) if call.query.get("columns") else ()
    columns = {each.id: each for each in (*(known[id] for id in ids if id in known), *asked)}
    judge = compile_filter(found.filter, prune_context(subject.table.metadata, subject.schema))
    view = RootView(subject, tuple(columns.values()), extra=_keys(subject, judge))
    with subject.table._handle.storage.recording() as calls:
        root = view.root
        plan = planned(
            subject.reader,
            subject.snapshot,
            schema=subject.schema,
            where=found.filter,
            reasons=True,
        )
    report, why = plan.report, plan.reasons
    assert why is not None
    names = {id: subject.schema.find_column_name(id) or str(id) for id in subject.schema.field_ids}
    deletes = view.delete_leaves
    scales = {id: view.scale(columns[id]) for id in ids if id in columns}
    bands = {
        str(id): typed_filters.bands(found.filter, id, scale[0])
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
    return Answer(
        body={
            "ok": True,
            "snapshot": None if report.snapshot_id is None else str(report.snapshot_id),
            "where": shown(found.filter) if text else "",
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
                    "columns": [names[id] for id in each.field_ids],
                    "ids": list(each.field_ids),
                    "by": each.by,
                    "text": each.text,
                }
                for each in why.found
            ],
            "leaf_why": [*why.leaf_codes.tolist(), *([-1] * deletes)],
            "leaf_left": [
                *(None if left < 0 else left for left in why.left.tolist()),
                *([None] * deletes),
            ],
            **_inline(plan, view),
            "engine_only": None if found.sql is None else found.sql.text,
            "prunable": partitions or any(scales.get(id) is not None for id in ids),
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
    counts = {f"{name}.{each}" for name in stated for each in ("lower_bound", "upper_bound")}
    ids = {field.source_id for field in parts}
    return frozenset(
        {
            *FILE_KEYS,
            *judge.required_keys,
            *(partition_key(field.field_id) for field in parts),
            *(stats_key(id, each) for id in ids for each in ("lower_bound", "upper_bound")),
            *(each for each in counts if each.startswith("content_stats.")),
        }
    )


def _all(subject: Subject) -> dict[str, int | None]:
    found = totals(subject)
    return {"files": found["files"], "rows": found["rows"], "data_bytes": found["bytes"]}


def _inline(plan: Plan, view: RootView) -> dict[str, Any]:
    """Files of the root by cell: how many are left, and the reason where all share one."""
    assert plan.reasons is not None
    codes, stride = plan.reasons.inline_codes, view.stride
    left = cell_counts(codes < 0, stride)
    if stride == 1:
        return {"inline_why": codes.tolist(), "inline_left": left}
    starts = np.arange(0, len(codes), stride)
    least, most = np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts)
    why = np.where(least == most, least, _MIXED)
    return {"inline_why": why.tolist(), "inline_left": left}


def complete(service: Service, call: Call) -> Answer:
    """GET complete: what may come next in a filter. Values are those that bounds of the root name,
    so that no leaf is opened for them."""
    subject = Subject.of(service, call)
    text = call.query.get("where", "")
    at = whole(call, "at", default=len(text), most=len(text))
    found = typed_filters.completion(text, at, subject.schema)
    if found["kind"] == "value":
        found["names"] = _values(subject, found["column"], text[found["from"] : at])
    return Answer(body=found)


def _values(subject: Subject, name: str | None, typed: str) -> list[str]:
    column = next((each for each in subject.bounded if each.full_name == name), None)
    scaled = None if column is None else RootView(subject, (column,)).scale(column)
    if column is None or scaled is None:
        return []
    _, bounds = scaled
    both = pa.concat_arrays([bounds.lower, bounds.upper]).unique().drop_null()
    ordered = both.take(pc.sort_indices(both)) if not pa.types.is_binary(both.type) else both
    plain = pa.types.is_integer(both.type) or pa.types.is_floating(both.type)
    plain = plain or pa.types.is_decimal(both.type) or pa.types.is_boolean(both.type)
    texts = shown_values.texts(ordered, most=60)
    return typed_filters.offered_values(texts, typed, quoted=not plain)
