"""Rules of one leaf against its entry in a root: statuses, counts, aggregates. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from frazil import arrow_compute as pc
from frazil.format.entries import aggregate
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType, stats_key
from frazil.format.entries.tracking import Status
from frazil.format.values.types import scalar_value
from frazil.maintenance.check.check_root import check_required, check_vectors
from frazil.maintenance.check.problems import Place
from frazil.tree.table_shape import TableShape
from frazil.tree.write import leaf_counts

_COUNTS = ("value_count", "null_value_count", "nan_value_count")


def check_leaf_entries(batch: EntryBatch, content: ContentType, place: Place) -> None:
    """The entries of a leaf by themselves, as written: what inherits is still null."""
    names = batch.pylist("location")

    def need(bad: Any, field: str, what: str) -> None:
        place.need_none(bad, names, field, what)

    check_required(batch, need)
    status = batch.numpy("tracking.status")
    need((status < 0) | (status > max(Status)), "tracking.status", "is not 0 to 4")
    kind = batch.numpy("content_type")
    allowed = (
        (ContentType.DATA,)
        if content is ContentType.DATA_MANIFEST
        else (ContentType.EQUALITY_DELETES,)
    )
    need(~np.isin(kind, allowed), "content_type", f"does not belong in a {content.name} leaf")
    inherits = status == Status.ADDED
    for name in ("sequence_number", "file_sequence_number"):
        lacking = np.asarray(pc.is_null(batch.column(f"tracking.{name}")))
        need(lacking & ~inherits, f"tracking.{name}", "is null and not ADDED")
    ids = pc.is_null(batch.column("tracking.snapshot_id"))
    need(np.asarray(ids) & ~inherits, "tracking.snapshot_id", "is null and not ADDED")
    check_vectors(batch, need)
    repeated = batch.table.group_by("location").aggregate([([], "count_all")])
    if pc.max(repeated.column("count_all")).as_py() not in (None, 1):
        place.add("location", "a file is listed more than once")


def check_counts(batch: EntryBatch, entry: dict[str, Any], place: Place) -> None:
    """The counts that a root states of a leaf."""
    stated_rows = entry.get("record_count")
    place.need(
        batch.num_rows == stated_rows,
        "record_count",
        f"the leaf has {batch.num_rows} entries; its root says {stated_rows}",
    )
    for key, value in _without_modified(leaf_counts(batch)).items():
        recorded = _without_modified(entry).get(key)
        if key.endswith("min_sequence_number"):
            if value is not None and recorded is not None:
                place.need(
                    recorded <= value, key, f"its root says {recorded}; an entry has {value}"
                )
        else:
            place.need(recorded == value, key, f"is {value}; its root says {recorded}")


def _without_modified(counts: Mapping[str, Any]) -> dict[str, Any]:
    """Counts with modified entries among the existing ones, as revision 1.12 has them. A root of a
    later revision that took a leaf over from it repeats them."""
    summed = dict(counts)
    for what in ("files", "rows"):
        existing, modified = (
            f"manifest_info.{kind}_{what}_count" for kind in ("existing", "modified")
        )
        if summed.get(existing) is not None:
            summed[existing] += summed.pop(modified, None) or 0
    return summed


def check_aggregates(
    live: EntryBatch, entry: dict[str, Any], shape: TableShape, place: Place
) -> None:
    """Aggregates of a root entry enclose what is live in its leaf."""
    if not live.num_rows:
        return
    live = shape.conformed(live)
    has_vector = bool(entry.get("manifest_info.dv"))
    truth = aggregate.aggregate(live, shape.fields, has_manifest_dv=has_vector)
    for field in shape.fields:
        for name in ("lower_bound", "upper_bound"):
            key = stats_key(field.id, name)
            recorded = entry.get(key)
            if recorded is None:
                continue
            actual = truth.get(key)
            if actual is None:
                if _has_values(live, field.id):
                    place.add(key, "the root bounds it; a live entry has no such bound")
                continue
            encloses = (
                _not_above(recorded, actual)
                if name == "lower_bound"
                else _not_above(actual, recorded)
            )
            place.need(encloses, key, f"is {recorded!r} in the root; a live entry has {actual!r}")
        tight = entry.get(stats_key(field.id, "tight_bounds"))
        place.need(
            not (tight and has_vector),
            stats_key(field.id, "tight_bounds"),
            "is true while positions of the leaf are dead",
        )
        for name in _COUNTS:
            key = stats_key(field.id, name)
            recorded, actual = entry.get(key), truth.get(key)
            if recorded is not None and actual is not None:
                place.need(
                    recorded >= actual, key, f"is {recorded} in the root; entries have {actual}"
                )


def plain_entry(root: EntryBatch, row: int) -> dict[str, Any]:
    """One entry of a root with bounds as plain values, as aggregation gives them."""
    values: dict[str, Any] = {}
    for key in root.keys:
        value = root.column(key)[row]
        if value.is_valid:
            is_bound = key.startswith("content_stats.") and key.endswith("_bound")
            values[key] = scalar_value(value) if is_bound else value.as_py()
    return values


def _has_values(live: EntryBatch, field_id: int) -> bool:
    """Whether an entry may have values that bounds tell: neither null nor NaN."""
    values = live.column(stats_key(field_id, "value_count"))
    nulls = live.column(stats_key(field_id, "null_value_count"))
    if values.null_count or nulls.null_count:
        return True
    key = stats_key(field_id, "nan_value_count")
    if live.has(key):
        nulls = pc.add(nulls, pc.fill_null(live.column(key), 0))
    return bool(pc.any(pc.greater(values, nulls)).as_py())


def _not_above(left: Any, right: Any) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.encode() <= right.encode()
    return bool(left <= right)


__all__ = ["check_aggregates", "check_counts", "check_leaf_entries", "plain_entry"]
