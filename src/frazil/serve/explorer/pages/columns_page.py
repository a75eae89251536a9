"""What the values of columns look like: bounds, nulls, and a small picture of how they spread.

Of a small table the rows are read, so numbers are exact. Of any other, the root alone tells: where
the bounds of its entries lie, weighted by their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.filter.text.quotes import quoted
from frazil.format.entries.fields import ContentType, stats_key
from frazil.format.entries.stats import TrackedField
from frazil.format.metadata.summary_totals import live_rows, number
from frazil.iceberg.types import (
    BinaryType,
    BooleanType,
    FixedType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)
from frazil.serve.exchange import Request, Response
from frazil.serve.explorer import display_values
from frazil.serve.explorer.pages.sql_page import sandboxed
from frazil.serve.explorer.scales import Bounds, Scale
from frazil.serve.explorer.subject import Subject
from frazil.serve.explorer.tree import RootView
from frazil.serve.limits import MAX_PAGE_COLUMNS, MIB
from frazil.serve.service import Service
from frazil.value_classes import frozen, replace

EXACT_ROWS = 20_000
EXACT_BYTES = 4 * MIB
EXACT_FILES = 100
BINS = 24
_VALUES = 6
_TEXT = 60
_MIXED = 0.5
"""Where entries span this share of all values on average, their bounds say nothing of a spread."""

Floats = npt.NDArray[np.float64]


@frozen
class ColumnPicture:
    """One column: what is not known is None. `bins` are rows from the lowest value to the highest,
    `values` the most frequent ones with their rows, `others` the rows with any other value."""

    column: TrackedField
    nulls: int | None = None
    distinct: int | None = None
    low: str | None = None
    high: str | None = None
    bins: list[int] | None = None
    values: list[tuple[str, int]] | None = None
    others: int = 0

    def to_dict(self) -> dict[str, Any]:
        """For the page."""
        return {
            "id": self.column.id,
            "nulls": self.nulls,
            "distinct": self.distinct,
            "low": self.low,
            "high": self.high,
            "bins": self.bins,
            "values": self.values,
            "others": self.others,
        }


def show(service: Service, call: Request) -> Response:
    """GET columns: of the state of main."""
    subject = Subject.of(service, call)
    paths = dict(_paths(subject.schema.fields))
    columns = tuple(c for c in subject.bounded if c.id in paths)[:MAX_PAGE_COLUMNS]
    is_exact = _is_small(subject)
    if is_exact:
        pictures = _from_rows(service, call, columns, paths)
    else:
        view = RootView(subject, columns)
        pictures = [_from_bounds(view, column) for column in columns]
    return Response(
        body={"exact": is_exact, "columns": [picture.to_dict() for picture in pictures]}
    )


def _is_small(subject: Subject) -> bool:
    """Whether every row may be read for a page."""
    rows = live_rows(subject.snapshot)
    if subject.snapshot is None or rows is None:
        return False
    summary = subject.snapshot.summary
    size, files = number(summary, "total-files-size"), number(summary, "total-data-files")
    limits = ((rows, EXACT_ROWS), (size, EXACT_BYTES), (files, EXACT_FILES))
    return all(value is not None and value <= limit for value, limit in limits)


def _paths(
    fields: Sequence[NestedField], above: tuple[str, ...] = ()
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The names that lead to each column by its id; items of lists and maps have none."""
    for field in fields:
        path = (*above, field.name)
        if isinstance(field.field_type, StructType):
            yield from _paths(field.field_type.fields, path)
        else:
            yield field.field_id, path


# --- from rows -----------------------------------------------------------------------------------


def _from_rows(
    service: Service,
    call: Request,
    columns: tuple[TrackedField, ...],
    paths: Mapping[int, tuple[str, ...]],
) -> list[ColumnPicture]:
    if not columns:
        return []
    identifier = call.identifier()
    table = ".".join(quoted(part) for part in (*identifier.namespace, identifier.name))
    # Texts are cut by the engine, so that few rows cannot become many bytes.
    expressions = ", ".join(
        f"{_selected(column, paths[column.id])} AS c{at}" for at, column in enumerate(columns)
    )
    text = f"SELECT {expressions} FROM {table} LIMIT {EXACT_ROWS}"
    with sandboxed(service.settings, service.catalog, stopped_by=call.cancellation) as session:
        rows = session.sql(text).head(EXACT_ROWS)
    return [_of_values(column, rows.column(at)) for at, column in enumerate(columns)]


def _selected(column: TrackedField, names: tuple[str, ...]) -> str:
    path = ".".join(quoted(name) for name in names)
    match column.type:
        case StringType():
            return f"left({path}, {_TEXT})"
        case UUIDType():
            return f"{path}::VARCHAR"
        case BinaryType() | FixedType():
            return f"CASE WHEN {path} IS NULL THEN NULL ELSE 'bytes' END"
    return path


def _of_values(column: TrackedField, chunks: pa.ChunkedArray) -> ColumnPicture:
    values = chunks.drop_null().combine_chunks()
    values = values if isinstance(values, pa.Array) else pa.concat_arrays(values.chunks)
    nulls = chunks.null_count
    if isinstance(column.type, BinaryType | FixedType):
        return ColumnPicture(column=column, nulls=nulls)
    counts = pc.value_counts(values)
    distinct = len(counts)
    if not distinct:
        return ColumnPicture(column=column, nulls=nulls, distinct=0)
    lowest = pc.min_max(values)
    bounds = ColumnPicture(
        column=column,
        nulls=nulls,
        distinct=distinct,
        low=display_values.text(lowest["min"].as_py(), max_length=_TEXT),
        high=display_values.text(lowest["max"].as_py(), max_length=_TEXT),
    )
    places = _places(column, values)
    if places is None:
        frequent = sorted(
            zip(counts.field("values"), counts.field("counts").to_pylist(), strict=True),
            key=lambda pair: (-pair[1], str(pair[0])),
        )
        return _with_values(bounds, [(value.as_py(), count) for value, count in frequent])
    return _with_bins(bounds, places, places, np.ones(len(places)))


def _places(column: TrackedField, values: pa.Array) -> Floats | None:
    """Where values lie between the lowest and the highest, for columns that have distances."""
    if isinstance(column.type, StringType | UUIDType | BooleanType):
        return None
    scale = Scale.over(Bounds(lower=values, upper=values))
    if scale.kind == "rank":
        return None
    return np.array(scale.places(values), dtype=np.float64)


# --- from bounds ---------------------------------------------------------------------------------


def _from_bounds(view: RootView, column: TrackedField) -> ColumnPicture:
    """One column as the entries of the root tell: those of files, and those of leaves in sum."""
    leaves = [leaf.row for leaf in view.leaves if leaf.content_type is ContentType.DATA_MANIFEST]
    entries = np.concatenate([view.inline, np.array(leaves, dtype=np.int64)]).astype(np.int64)
    scaled = view.scale(column)
    if scaled is None or not len(entries):
        return ColumnPicture(column=column)
    scale, bounds = scaled
    nulls = stats_key(column.id, "null_value_count")
    null_counts = view.root.pylist(nulls, np.sort(entries)) if view.root.has(nulls) else [None]
    picture = ColumnPicture(
        column=column,
        nulls=None if None in null_counts else sum(null_counts),
        low=display_values.text(scale.text_at(0.0), max_length=_TEXT),
        high=display_values.text(scale.text_at(1.0), max_length=_TEXT),
    )
    rows = _rows(view, entries)
    lower, upper = bounds.lower.take(entries), bounds.upper.take(entries)
    if scale.kind == "rank" or isinstance(column.type, BooleanType):
        return _one_value_per_entry(picture, lower, upper, rows)
    low, high = (np.array(scale.places(side), dtype=np.float64) for side in (lower, upper))
    return _with_bins(picture, low, high, rows)


def _rows(view: RootView, entries: npt.NDArray[np.int64]) -> Floats:
    """Rows of each entry, those of deleted files aside where the root knows."""
    counts = view.root.numpy("record_count", missing=0)[entries].astype(np.float64)
    files = len(view.inline)
    within = np.zeros(len(entries) - files)
    for verb in ("added", "existing"):
        key = f"manifest_info.{verb}_rows_count"
        if view.root.has(key):
            within += view.root.numpy(key, missing=0)[entries[files:]]
    counts[files:] = within
    if view.root.has("deletion_vector.cardinality"):
        deleted = view.root.numpy("deletion_vector.cardinality", missing=0)[entries[:files]]
        counts[:files] -= deleted
    return counts


def _one_value_per_entry(
    picture: ColumnPicture, lower: pa.Array, upper: pa.Array, rows: Floats
) -> ColumnPicture:
    """The rows of each value, if no entry holds two: of a column that tables are partitioned by."""
    counts: dict[Any, int] = {}
    for low, high, count in zip(lower.to_pylist(), upper.to_pylist(), rows, strict=True):
        if low is None or low != high:
            return picture
        counts[low] = counts.get(low, 0) + int(count)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return _with_values(picture, ordered)


# --- pictures ------------------------------------------------------------------------------------


def _with_values(picture: ColumnPicture, counts: list[tuple[Any, int]]) -> ColumnPicture:
    first = [
        (display_values.text(value, max_length=_TEXT) or "", int(count))
        for value, count in counts[:_VALUES]
    ]
    others = sum(int(count) for _, count in counts[_VALUES:])
    return replace(picture, distinct=len(counts), values=first, others=others)


def _with_bins(picture: ColumnPicture, low: Floats, high: Floats, rows: Floats) -> ColumnPicture:
    return replace(picture, bins=spread(low, high, rows))


def spread(low: Floats, high: Floats, rows: Floats) -> list[int] | None:
    """Rows in each of `BINS` parts of 0 to 1, where every entry's rows are spread evenly from its
    lower to its upper place. None if the entries are too wide to say."""
    has_bounds = ~(np.isnan(low) | np.isnan(high))
    low, high, rows = low[has_bounds], high[has_bounds], rows[has_bounds]
    total = float(rows.sum())
    if not total or float(((high - low) * rows).sum()) / total > _MIXED:
        return None
    edges = np.linspace(0, 1, BINS + 1)
    width = high - low
    is_point = width < 1e-9
    counts = np.bincount(
        np.minimum((low[is_point] * BINS).astype(int), BINS - 1),
        weights=rows[is_point],
        minlength=BINS,
    )
    wide_low, wide_high = low[~is_point, None], high[~is_point, None]
    overlap = np.minimum(wide_high, edges[1:]) - np.maximum(wide_low, edges[:-1])
    share = np.clip(overlap, 0, None) / (wide_high - wide_low)
    counts = counts + (share * rows[~is_point, None]).sum(axis=0)
    return [round(count) for count in counts]
