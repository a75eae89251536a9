"""What can become of each live file of a Paimon snapshot: taken, left out, merged, or refused.

An append-only file is plain rows. A primary-key file is plain rows only where no other file of its
bucket can hold a newer version of one of its rows; the rules are those by which Paimon itself
decides whether it may read a file without merging. Works on columns; opens no files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil import arrow_compute as pc
from frazil.paimon.read import as_iceberg, binary_row, directories
from frazil.paimon.read.paimon_table import PaimonState
from frazil.paimon.read.table_schema import MergeEngine, TableSchema
from frazil.value_classes import frozen, replace

Mask = npt.NDArray[np.bool_]

FORMATS: Final = ("parquet", "orc")
"""Formats of data files that Frazil reads."""

MERGED_HERE: Final = (MergeEngine.DEDUPLICATE, MergeEngine.FIRST_ROW)
"""Merge engines whose outcome an adoption can write."""

_MERGE_ON_READ: Final = "deletion-vectors.merge-on-read"


class Verdict(StrEnum):
    """What becomes of a file."""

    TAKEN = "adopted in place"
    LEFT_OUT = "left out, as Paimon does"
    MERGED = "needs a merge"
    REFUSED = "refused"


@frozen
class FileClass:
    """Files with the same fate for the same reason."""

    verdict: Verdict
    reason: str
    advice: str = ""


PLAIN: Final = FileClass(verdict=Verdict.TAKEN, reason="plain rows")
_LEVEL_0: Final = FileClass(
    verdict=Verdict.LEFT_OUT,
    reason="level 0: not compacted yet, invisible to batch reads of this table",
    advice="compact the table in Paimon first to include these rows",
)
_POSTPONED: Final = FileClass(
    verdict=Verdict.LEFT_OUT,
    reason="postponed bucket: invisible until compacted",
    advice="compact the table in Paimon first to include these rows",
)
_COMPACT: Final = (
    "run a full compaction in Paimon (CALL sys.compact with compact_strategy => 'full'), or give "
    "merge=frazil.spark.merge_paimon(session) to merge here"
)
_COMPACT_ONLY: Final = (
    "run a full compaction in Paimon (CALL sys.compact with compact_strategy => 'full')"
)


_MERGED_ON_READ: Final = FileClass(
    verdict=Verdict.REFUSED,
    reason=f"level 0, and {_MERGE_ON_READ} lets Paimon merge it with deletion vectors",
    advice=_COMPACT_ONLY,
)


@frozen(eq=False)
class Classified:
    """A class per live file: `classes[codes[i]]` is the fate of file i."""

    classes: tuple[FileClass, ...]
    codes: npt.NDArray[np.int64]

    def mask(self, verdict: Verdict) -> Mask:
        """Files with this verdict."""
        hits = [i for i, item in enumerate(self.classes) if item.verdict is verdict]
        return np.isin(self.codes, hits)

    def as_taken(self) -> Classified:
        """The same, where files that need a merge are the ones taken."""
        swapped = {Verdict.MERGED: Verdict.TAKEN, Verdict.TAKEN: Verdict.LEFT_OUT}
        classes = tuple(
            replace(item, verdict=swapped.get(item.verdict, item.verdict)) for item in self.classes
        )
        return Classified(classes=classes, codes=self.codes)

    def with_class(self, item: FileClass, mask: Mask) -> Classified:
        """The same, with the masked files in another class."""
        if not mask.any():
            return self
        classes = self.classes if item in self.classes else (*self.classes, item)
        codes = np.where(mask, classes.index(item), self.codes)
        return Classified(classes=classes, codes=codes)


def classify(
    state: PaimonState,
    *,
    exclude: Collection[str] = (),
    merging: bool = False,
    engines: Collection[MergeEngine] = MERGED_HERE,
) -> Classified:
    """The fate of every live file of a snapshot, in the order of `state.files`.

    `merging` says that files can be merged: then level 0 of a first-row table, which Paimon leaves
    out of batch reads until it is compacted, is merged in. Files of the merge `engines` can be
    merged; those of others are refused.
    """
    count = state.files.num_rows
    classified = Classified(classes=(PLAIN,), codes=np.zeros(count, np.int64))
    if count == 0:
        return classified
    if state.schema.has_primary_key:
        classified = _keyed(state, classified, merging, engines)
    classified = _by_format(state, classified)
    classified = _by_columns(state, classified)
    classified = _by_row_ids(state, classified)
    return _by_schema(state, classified, exclude)


def _keyed(
    state: PaimonState, classified: Classified, merging: bool, engines: Collection[MergeEngine]
) -> Classified:
    """Primary-key files: by bucket, level, deleted rows and key ranges."""
    files, schema = state.files, state.schema
    levels = files["level"].to_numpy()
    deletes = pc.fill_null(files["delete_row_count"], 0).to_numpy() > 0
    postponed = files["bucket"].to_numpy() == directories.POSTPONE_BUCKET
    buckets = _bucket_codes(files)
    first_row = schema.merge_engine is MergeEngine.FIRST_ROW and not merging
    lazily = schema.deletion_vectors_enabled or first_row
    if lazily:
        waiting = (levels == 0) & ~postponed
        if schema.is_enabled(_MERGE_ON_READ):
            classified = classified.with_class(_MERGED_ON_READ, waiting)
        else:
            classified = classified.with_class(_LEVEL_0, waiting)
        with_deletes = (levels > 0) & deletes
        item = needs_merge(schema, "holds delete rows", engines)
        classified = classified.with_class(item, with_deletes)
    else:
        merge = partial(needs_merge, schema, engines=engines)
        classified = _by_overlap(files, schema, buckets, levels, deletes, classified, merge)
    return classified.with_class(_POSTPONED, postponed)


def _by_overlap(
    files: pa.Table,
    schema: TableSchema,
    buckets: npt.NDArray[np.int64],
    levels: npt.NDArray[np.int64],
    deletes: Mask,
    classified: Classified,
    needs_merge: Callable[[str], FileClass],
) -> Classified:
    size = int(buckets.max()) + 1
    lowest, highest = np.full(size, np.iinfo(np.int64).max), np.full(size, -1)
    np.minimum.at(lowest, buckets, levels)
    np.maximum.at(highest, buckets, levels)
    has_deletes = np.zeros(size, bool)
    np.logical_or.at(has_deletes, buckets, deletes)
    is_plain = (lowest > 0) & (lowest == highest) & ~has_deletes
    open_rows = np.flatnonzero(~is_plain[buckets])
    if not len(open_rows):
        return classified
    part = files.take(pa.array(open_rows))
    alone = np.zeros(files.num_rows, bool)
    alone[open_rows] = _alone_in_key_range(part, schema, buckets[open_rows])
    contested = ~is_plain[buckets] & ~alone
    reason = "key range overlaps that of another file of its bucket"
    classified = classified.with_class(needs_merge(reason), contested)
    lone_deletes = ~is_plain[buckets] & alone & deletes
    return classified.with_class(needs_merge("holds delete rows"), lone_deletes)


def needs_merge(
    schema: TableSchema, reason: str, engines: Collection[MergeEngine] = MERGED_HERE
) -> FileClass:
    """The class of primary-key files that hold rows which others replace or delete."""
    engine = schema.merge_engine
    if engine in engines:
        return FileClass(verdict=Verdict.MERGED, reason=reason, advice=_COMPACT)
    return FileClass(
        verdict=Verdict.REFUSED,
        reason=f"{reason}, and only Paimon implements merge engine {engine.value}",
        advice=_COMPACT_ONLY,
    )


def _bucket_codes(files: pa.Table) -> npt.NDArray[np.int64]:
    partitions = files["partition"].combine_chunks().dictionary_encode().indices.to_numpy()
    pairs = np.stack([partitions.astype(np.int64), files["bucket"].to_numpy().astype(np.int64)])
    return np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)


def _alone_in_key_range(
    files: pa.Table, schema: TableSchema, buckets: npt.NDArray[np.int64]
) -> Mask:
    """Files whose key range overlaps that of no other file of their bucket."""
    types = [field.type for field in schema.select(schema.trimmed_primary_keys)]
    lowest = binary_row.decode(files["min_key"], types)
    highest = binary_row.decode(files["max_key"], types)
    low, high = _ranks(lowest, highest, files.num_rows)
    order = np.lexsort((low, buckets))
    # Ranks of one bucket are lifted above those of all buckets before it, so one running maximum
    # over the whole order never reaches across a bucket's border.
    lift = buckets[order] * (2 * len(order) + 1)
    reach = np.maximum.accumulate(high[order] + lift)
    starts = np.ones(len(order), bool)
    starts[1:] = (low[order] + lift)[1:] > reach[:-1]
    section = np.cumsum(starts) - 1
    sizes = np.bincount(section)
    alone = np.zeros(len(order), bool)
    alone[order] = sizes[section] == 1
    return alone


def _ranks(
    lowest: list[pa.Array], highest: list[pa.Array], count: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Dense ranks of lower and upper keys in one common order."""
    if not lowest:
        return np.zeros(count, np.int64), np.zeros(count, np.int64)
    names = [f"k{i}" for i in range(len(lowest))]
    columns = [pa.concat_arrays([low, high]) for low, high in zip(lowest, highest, strict=True)]
    keys = pa.table(columns, names=names)
    order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names])
    ordered = keys.take(order)
    changed = np.zeros(keys.num_rows, bool)
    for name in names:
        column = ordered[name].combine_chunks()
        same = pc.fill_null(pc.equal(column[1:], column[:-1]), False)
        changed[1:] |= ~same.to_numpy(zero_copy_only=False)
    ranks = np.zeros(keys.num_rows, np.int64)
    ranks[order.to_numpy()] = np.cumsum(changed)
    return ranks[:count], ranks[count:]


def _by_format(state: PaimonState, classified: Classified) -> Classified:
    names = state.files["file_name"]
    for format in pc.unique(pc.replace_substring_regex(names, r"^.*\.", "")).to_pylist():
        if format in FORMATS:
            continue
        mask = pc.ends_with(names, f".{format}").to_numpy(zero_copy_only=False)
        problem = FileClass(
            verdict=Verdict.REFUSED,
            reason=f"data file format {format!r} is not read",
            advice="set file.format=parquet in Paimon and compact the table",
        )
        classified = classified.with_class(problem, mask & ~classified.mask(Verdict.LEFT_OUT))
    return classified


def _by_columns(state: PaimonState, classified: Classified) -> Classified:
    """Files that hold only some columns of their rows (data evolution)."""
    written = state.files["write_cols"]
    if written.null_count == len(written):
        return classified
    needed = {schema_id: _names(schema) for schema_id, schema in state.schemas.items()}
    is_partial = np.array(
        [
            names is not None and not needed[schema_id] <= set(names)
            for names, schema_id in zip(
                written.to_pylist(), state.files["schema_id"].to_pylist(), strict=True
            )
        ]
    )
    problem = FileClass(
        verdict=Verdict.REFUSED,
        reason="holds some columns of its rows only (data evolution)",
        advice="compact the table in Paimon, so that each file holds whole rows",
    )
    return classified.with_class(problem, is_partial)


def _by_row_ids(state: PaimonState, classified: Classified) -> Classified:
    """Files whose row ids another file has too: one id must mean one row."""
    first = state.files["first_row_id"]
    rows = state.files["row_count"].to_numpy()
    chosen = pc.is_valid(first).to_numpy(zero_copy_only=False) & ~classified.mask(Verdict.LEFT_OUT)
    where = np.flatnonzero(chosen & (rows > 0))
    if len(where) < 2:
        return classified
    starts = pc.fill_null(first, 0).to_numpy()[where]
    ends = starts + rows[where]
    order = np.argsort(starts, kind="stable")
    reach = np.maximum.accumulate(ends[order])
    apart = np.ones(len(where), bool)
    apart[1:] = starts[order][1:] >= reach[:-1]
    section = np.cumsum(apart) - 1
    mask = np.zeros(len(chosen), bool)
    mask[where[order]] = np.bincount(section)[section] > 1
    problem = FileClass(
        verdict=Verdict.REFUSED,
        reason="row ids (_FIRST_ROW_ID) overlap those of another file",
        advice="compact the table in Paimon, so that each row has an id of its own",
    )
    return classified.with_class(problem, mask & ~classified.mask(Verdict.REFUSED))


def _names(schema: TableSchema) -> set[str]:
    return {field.name for field in schema.fields}


def _by_schema(state: PaimonState, classified: Classified, exclude: Collection[str]) -> Classified:
    ids = state.files["schema_id"].to_numpy()
    for schema_id, schema in state.schemas.items():
        problems = as_iceberg.misfits(schema, state.schema, exclude)
        if problems:
            problem = FileClass(
                verdict=Verdict.REFUSED,
                reason=f"written in schema {schema_id}: {', '.join(problems)}",
                advice="compact the table in Paimon to rewrite them, or leave the column out",
            )
            mask = (ids == schema_id) & ~classified.mask(Verdict.LEFT_OUT)
            classified = classified.with_class(problem, mask)
    return classified


def summary(state: PaimonState, classified: Classified) -> pa.Table:
    """One row per class: verdict, reason, what to do, files, rows and bytes."""
    rows, sizes = state.files["row_count"].to_numpy(), state.files["file_size"].to_numpy()
    lines: list[Mapping[str, object]] = []
    for code, item in enumerate(classified.classes):
        mask = classified.codes == code
        if mask.any():
            lines.append(
                {
                    "verdict": item.verdict.value,
                    "reason": item.reason,
                    "advice": item.advice,
                    "files": int(mask.sum()),
                    "rows": int(rows[mask].sum()),
                    "bytes": int(sizes[mask].sum()),
                    "example": state.files["file_name"][int(np.argmax(mask))].as_py(),
                }
            )
    return pa.Table.from_pylist(lines, SUMMARY_SCHEMA)


SUMMARY_SCHEMA: Final = pa.schema(
    [
        *(("verdict", pa.string()), ("reason", pa.string()), ("advice", pa.string())),
        *(("files", pa.int64()), ("rows", pa.int64()), ("bytes", pa.int64())),
        ("example", pa.string()),
    ]
)
