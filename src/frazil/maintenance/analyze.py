"""A table's health in numbers, and what to run about it. Reads metadata, changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from textwrap import wrap
from typing import Any, Final

import numpy as np

from frazil.commit.adapt import bulk_target
from frazil.commit.handle import TableHandle
from frazil.format.checks import CLIENT_FOLDER, client_location
from frazil.format.entries.batch import EntryBatch
from frazil.format.entries.fields import ContentType
from frazil.format.metadata.metadata import MAIN, TableMetadata
from frazil.format.metadata.summary_totals import number
from frazil.maintenance.compact import files_due
from frazil.maintenance.progress import Progress, silent
from frazil.maintenance.removal.reachable import root_address
from frazil.maintenance.retention import Retention, due
from frazil.properties.registry import SERVE_LOCATION, TARGET_FILE_SIZE
from frazil.rows.selection import Selection
from frazil.storage import Places
from frazil.text_format import card, counted, size
from frazil.tree.clusters import Overlap, overlap_of
from frazil.tree.policy import Thresholds
from frazil.tree.read import Tree
from frazil.value_classes import field, frozen, replace

_WIDTH: Final = 80
_KEYS = (
    "content_type",
    "record_count",
    "file_size_in_bytes",
    "deletion_vector.cardinality",
)
_MANY_SMALL = 20
_DEAD_SHARE = 0.2
_MUCH_OVERLAP = 2.0
_OLD_SNAPSHOTS = 10
_MANY_LEAVES = 1_000


@frozen
class Advice:
    """Something worth doing: what is wrong, and the call that helps."""

    problem: str
    run: str


@frozen
class Health:
    """What a snapshot and the history before it look like."""

    table: str
    snapshot_id: int | None
    snapshots: int
    expirable_snapshots: int
    refs: int
    data_files: int
    records: int
    data_bytes: int
    small_files: int
    files_to_compact: int
    average_file_bytes: int
    files_with_vectors: int
    deleted_rows: int
    files_mostly_deleted: int
    equality_delete_files: int
    position_delete_files: int
    root_entries: int
    root_bytes: int
    leaves: int
    small_leaves: int
    old_leaves: int
    leaf_bytes: int
    dead_entries: int
    overlap: Overlap = field(default_factory=Overlap)
    advice: tuple[Advice, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Health({self.table}: {counted(self.rows, 'row')} in "
            f"{counted(self.data_files, 'file')}, {counted(self.snapshots, 'snapshot')})"
        )

    def _repr_html_(self) -> str:
        facts = {
            "snapshots": f"{self.snapshots:,}",
            "rows": f"{self.rows:,}",
            "files": f"{self.data_files:,}",
            "small files": f"{self.small_files:,}",
            "size": size(self.data_bytes),
            "to do": "; ".join(f"{hint.problem}: {hint.run}" for hint in self.advice) or "nothing",
        }
        return card(f"health of {self.table}", facts)

    @property
    def rows(self) -> int:
        """Rows that are not deleted. Rows that delete files of v1 to v3 delete are not known."""
        return self.records - self.deleted_rows

    @property
    def delete_ratio(self) -> float:
        """The share of rows that deletion vectors delete."""
        return self.deleted_rows / self.records if self.records else 0.0

    @property
    def is_healthy(self) -> bool:
        """Whether there is nothing to do."""
        return not self.advice

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {**asdict(self), "rows": self.rows, "delete_ratio": self.delete_ratio}

    def __str__(self) -> str:
        """The report, in lines that fit a terminal; what there is none of is said in a word."""
        facts = {
            "snapshots": f"{self.snapshots:,} ({self.expirable_snapshots or 'none'} expirable), "
            f"{counted(self.refs, 'branch or tag', 'branches and tags')}",
            "data files": f"{self.data_files:,} ({self.small_files or 'none'} small, "
            f"{self.files_to_compact or 'none'} to compact), {counted(self.rows, 'row')}, "
            f"{size(self.data_bytes)}; {size(self.average_file_bytes)} on average",
            "deletes": self._deletes(),
            "root": f"{counted(self.root_entries, 'entry', 'entries')}, {size(self.root_bytes)}",
            "leaves": self._leaves(),
        }
        lines = [f"{self.table}: snapshot {self.snapshot_id}"]
        for name, text in facts.items():
            lines += _wrapped(f"  {name:<12}", text)
        for hint in self.advice:
            lines += _wrapped("  → ", f"{hint.problem}: {hint.run}")
        if not self.advice:
            lines.append("  nothing urgent" if self.files_to_compact else "  nothing to do")
        return "\n".join(lines)

    def _deletes(self) -> str:
        parts = []
        if self.deleted_rows:
            parts.append(
                f"{counted(self.deleted_rows, 'deleted row')} ({self.delete_ratio:.1%}) in "
                f"{counted(self.files_with_vectors, 'file')}"
            )
        if self.files_mostly_deleted:
            verb = "is" if self.files_mostly_deleted == 1 else "are"
            parts.append(f"{counted(self.files_mostly_deleted, 'file')} {verb} mostly deleted")
        for kind, files in (
            ("equality delete file", self.equality_delete_files),
            ("position delete file", self.position_delete_files),
        ):
            if files:
                parts.append(counted(files, kind))
        return "; ".join(parts) or "none"

    def _leaves(self) -> str:
        if not self.leaves:
            return "none"
        column = f" in {self.overlap.column}" if self.overlap.column else ""
        return (
            f"{self.leaves:,} ({self.small_leaves or 'none'} small, "
            f"{self.old_leaves or 'none'} of v1 to v3), {size(self.leaf_bytes)}, "
            f"{counted(self.dead_entries, 'dead entry', 'dead entries')}; average overlap{column}: "
            f"{self.overlap.average:.1f}"
        )


def _wrapped(head: str, text: str) -> list[str]:
    return wrap(
        text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
    )


def analyze(handle: TableHandle, *, branch: str = MAIN, progress: Progress = silent) -> Health:
    """Measure the current snapshot of a branch, and its history."""
    metadata = handle.refresh().metadata
    tip = handle.tip(branch)
    reader = handle.reader()
    tree = reader.tree(tip)
    rule = _selection(metadata.properties)
    files = _Files(rule)
    leaves = tree.leaves()
    for leaves_read, batch in enumerate(reader.all_live(tree, keys=_KEYS)):
        files.add(batch)
        progress(leaves_read, len(leaves), "leaves")
    history = list(handle.head.snapshots())
    rules = Retention.of(metadata.properties, now_ms=handle.context.now_ms())
    limits = Thresholds.of(metadata.properties)
    small = [
        leaf for leaf in leaves if leaf.record_count - leaf.dead < limits.leaf_target_entries // 2
    ]
    numbers: dict[str, Any] = {
        "snapshots": len(history),
        "expirable_snapshots": len(due(metadata, history, rules).snapshots),
        "refs": len(metadata.refs),
        "root_entries": tree.content().num_rows,
        "root_bytes": _root_bytes(handle, tree),
        "leaves": len(leaves),
        "small_leaves": len(small),
        "old_leaves": sum(leaf.format_version == 0 for leaf in leaves),
        "leaf_bytes": sum(leaf.file_size_in_bytes for leaf in leaves),
        "dead_entries": sum(leaf.dead for leaf in leaves),
        **files.numbers(),
    }
    health = Health(
        table=handle.name,
        snapshot_id=None if tip is None else int(tip.snapshot_id),
        files_to_compact=files_due(handle, branch=branch).files,
        overlap=overlap_of(tree, metadata),
        **numbers,
    )
    entries = sum(leaf.record_count for leaf in leaves)
    bulk = bulk_target(metadata, files=health.data_files)
    advised = _advice(health, limits, rule, entries=entries, bulk_entries=bulk)
    advice = (*advised, *_client_advice(metadata))
    return replace(health, advice=advice)


def _client_advice(metadata: TableMetadata) -> Iterator[Advice]:
    place = client_location(metadata.location, metadata.properties)
    if Places().folder(metadata.location).startswith(Places().folder(place)):
        yield Advice(
            problem="clients of a server see a location that holds the table's metadata; engines "
            "that remove orphans there delete it",
            run=f'table.set_properties({{"{SERVE_LOCATION.key}": "{CLIENT_FOLDER}"}})',
        )


def _selection(properties: Mapping[str, str]) -> Selection:
    """The rule by which `compact` chooses files."""
    target = TARGET_FILE_SIZE.lenient(properties, otherwise=TARGET_FILE_SIZE.default)
    return Selection(target_file_bytes=target)


def sure_problem(
    properties: Mapping[str, str], summary: Mapping[str, str], *, is_partitioned: bool
) -> str | None:
    """A problem that the summary of a snapshot alone proves; `analyze` would find it as well.

    Small files of a table with partitions prove nothing: each partition may have few. None says
    nothing: only `analyze` knows that a table is healthy.
    """
    files, stored, records, deleted, equality = (
        number(summary, key)
        for key in (
            "total-data-files",
            "total-files-size",
            "total-records",
            "total-position-deletes",
            "total-equality-deletes",
        )
    )
    if equality:
        return "Every read must apply equality deletes."
    rule = _selection(properties)
    if records and deleted and deleted >= records * rule.delete_ratio:
        return f"{deleted / records:.0%} of the rows are deleted."
    if files is not None and stored is not None and not is_partitioned:
        large = stored // max(1, rule.small_file_bytes)
        if files - large > max(_MANY_SMALL, files // 2):
            return f"At least {files - large:,} of {files:,} data files are small."
    return None


class _Files:
    """Counts over live entries, batch by batch."""

    def __init__(self, rule: Selection) -> None:
        self._rule = rule
        self._counts: dict[str, int] = dict.fromkeys(
            (
                "data_files",
                "records",
                "data_bytes",
                "small_files",
                "files_with_vectors",
                "deleted_rows",
                "files_mostly_deleted",
                "equality_delete_files",
                "position_delete_files",
            ),
            0,
        )

    def add(self, batch: EntryBatch) -> None:
        kind = batch.numpy("content_type")
        data = kind == ContentType.DATA
        records = batch.numpy("record_count", missing=0)[data]
        sizes = batch.numpy("file_size_in_bytes", missing=0)[data]
        dead = batch.numpy("deletion_vector.cardinality", missing=0)[data]
        many = np.maximum(records, 1) * self._rule.delete_ratio
        counts = {
            "data_files": data.sum(),
            "records": records.sum(),
            "data_bytes": sizes.sum(),
            "small_files": (sizes < self._rule.small_file_bytes).sum(),
            "files_with_vectors": (dead > 0).sum(),
            "deleted_rows": dead.sum(),
            "files_mostly_deleted": (dead >= many).sum(),
            "equality_delete_files": (kind == ContentType.EQUALITY_DELETES).sum(),
            "position_delete_files": (kind == ContentType.POSITION_DELETES).sum(),
        }
        for name, value in counts.items():
            self._counts[name] += int(value)

    def numbers(self) -> dict[str, int]:
        files = self._counts["data_files"]
        average = self._counts["data_bytes"] // files if files else 0
        return {**self._counts, "average_file_bytes": average}


def _root_bytes(handle: TableHandle, tree: Tree) -> int:
    if tree.snapshot is None:
        return 0
    address = root_address(handle.location, tree.snapshot)
    return 0 if address is None else handle.storage.size(address)


def _advice(
    health: Health, limits: Thresholds, rule: Selection, *, entries: int, bulk_entries: int
) -> Iterator[Advice]:
    """What is worth doing, the most useful first."""
    if health.old_leaves:
        yield Advice(
            problem=f"{counted(health.old_leaves, 'manifest')} of v1 to v3 must be read row by row",
            run="rewrite_manifests",
        )
    if health.dead_entries > entries * _DEAD_SHARE:
        yield Advice(
            problem=f"{health.dead_entries:,} of {entries:,} leaf entries are dead",
            run="compact_metadata",
        )
    elif health.small_leaves > 8 or health.root_bytes > 2 * limits.root_target_bytes:
        yield Advice(
            problem=f"{counted(health.small_leaves, 'small leaf', 'small leaves')} and a root of "
            f"{counted(health.root_bytes, 'byte')}",
            run="compact_metadata",
        )
    if health.leaves > max(_MANY_LEAVES, 2 * health.data_files // bulk_entries):
        yield Advice(
            problem=f"every root names {health.leaves:,} leaves; "
            f"{-(-health.data_files // bulk_entries):,} are enough for "
            f"{counted(health.data_files, 'data file')}",
            run="rewrite_manifests",
        )
    elif health.overlap.average > _MUCH_OVERLAP:
        yield Advice(
            problem=f"each leaf overlaps {health.overlap.average:.1f} others in "
            f"{health.overlap.column} on average, so filters prune little",
            run="rewrite_manifests",
        )
    if health.files_to_compact > max(_MANY_SMALL, health.data_files // 2):
        yield Advice(
            problem=f"{health.files_to_compact:,} of {health.data_files:,} data files are small "
            "or have many deleted rows",
            run="compact",
        )
    if health.files_mostly_deleted:
        yield Advice(
            problem=f"{rule.delete_ratio:.0%} of the rows or more are deleted in "
            f"{counted(health.files_mostly_deleted, 'file')}",
            run="compact",
        )
    if health.equality_delete_files or health.position_delete_files:
        yield Advice(
            problem="every read must apply "
            + counted(health.equality_delete_files + health.position_delete_files, "delete file"),
            run="compact" if health.equality_delete_files else "rewrite_manifests",
        )
    if health.expirable_snapshots > _OLD_SNAPSHOTS:
        yield Advice(
            problem=f"{counted(health.expirable_snapshots, 'snapshot')} can be expired",
            run="expire_snapshots",
        )
