"""Random histories of tables that share files, beside a model of rows by row id.

The model knows nothing of files: it has, for each branch of each table, the rows by their ids.
What an operation adds is new to the model, so its ids are taken from the table, once, and must
never have been seen before. Files are listed twice, removed and added again; tables are cloned;
equality deletes, rewrites and races come in between. After every step: the rows and their ids;
between random snapshots: the feed step by step, and the collapsed one.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.errors import CommitConflict, FormatError, InvalidInput
from frazil.format.metadata.metadata import MAIN, Snapshot
from tests.state.histories import MODES, updated

SMALL_TREE = {
    "write.root.max-data-entries": "3",
    "write.root.max-delete-entries": "2",
    "write.leaf.target-entries": "4",
}
KINDS = ("red", "green", None)
SCHEMA = pa.schema(
    [("uid", pa.int64()), ("part", pa.int64()), ("kind", pa.string()), ("value", pa.int64())]
)

Row = tuple[int, int, str | None, int]
Rows = dict[int, Row]
"""Rows by row id."""
ChangedRows = Any
"""A table, a branch of one, or a transaction."""


@dataclass
class Expected:
    """What a branch must hold: rows whose ids are known, and new ones whose ids are not yet."""

    rows: Rows = field(default_factory=dict)
    fresh: list[Row] = field(default_factory=list)

    def every(self) -> list[Row]:
        return [*self.rows.values(), *self.fresh]

    def add(self, rows: list[Row]) -> None:
        self.fresh += rows

    def drop(self, matches: Callable[[Row], bool]) -> None:
        self.rows = {id: row for id, row in self.rows.items() if not matches(row)}
        self.fresh = [row for row in self.fresh if not matches(row)]

    def change(self, matches: Callable[[Row], bool], new: Callable[[Row], Row]) -> None:
        self.rows = {id: new(row) if matches(row) else row for id, row in self.rows.items()}
        self.fresh = [new(row) if matches(row) else row for row in self.fresh]


@dataclass(frozen=True)
class Work:
    """A change of rows: what a table or transaction does, and what the model does."""

    name: str
    act: Callable[[ChangedRows], object]
    model: Callable[[Expected], object]


@dataclass
class Side:
    """A table and what the model knows of it."""

    name: str
    table: frazil.Table
    branches: dict[str, Rows] = field(default_factory=lambda: {MAIN: {}})
    states: dict[int, Rows] = field(default_factory=dict)
    seen_ids: set[int] = field(default_factory=set)
    """Row ids that some row had."""
    clones: list[str] = field(default_factory=list)


class EntryHistory:
    """Some tables, played from a seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.catalog = frazil.connect(folder / "warehouse")
        self.partition_by = self.rng.choice([None, None, ["part"], ["bucket[2](uid)"]])
        equality = {"write.equality-deletes.enabled": self.rng.choice(["true", "true", "false"])}
        made = self.catalog.create_table(
            "shop.first", SCHEMA, partition_by=self.partition_by, properties=SMALL_TREE | equality
        )
        self.sides = {"shop.first": Side("shop.first", made)}
        self.files: list[tuple[str, list[Row]]] = []
        self.next_uid = 0
        self.count = 0
        self.log: list[str] = []

    def play(self, steps: int) -> None:
        """Do random things and compare after each."""
        for _ in range(steps):
            operation = self.rng.choice(_OPERATIONS)
            self.log.append(operation.__name__)
            side = self.rng.choice([*self.sides.values()])
            operation(self, side)
            for each in self.sides.values():
                self._compare_rows(each)
            if side.name in self.sides:
                self._compare_feeds(side)
        self._finish()

    # What must hold

    def _compare_rows(self, side: Side) -> None:
        side.table.refresh()
        for branch, rows in side.branches.items():
            assert self._read(self._on(side, branch)) == rows, f"{side.name} {branch}"

    def _finish(self) -> None:
        for side in self.sides.values():
            problems = side.table.check(deep=True).problems
            told = [text for text in map(str, problems) if "more than once" not in text]
            assert not told, told
        self.catalog.close()

    def _compare_feeds(self, side: Side) -> None:
        """Between two snapshots that main descends from: the feed, and the collapsed feed."""
        lineage = [id for id in self._lineage(side) if id in side.states]
        if len(lineage) < 2:
            return
        until, since = sorted(self.rng.sample(range(len(lineage)), 2))
        since_id, until_id = lineage[since], lineage[until]
        start, end = side.states[since_id], side.states[until_id]
        changes = side.table.changes(since=since_id, until=until_id)
        assert _replayed(start, changes.to_arrow().to_pylist()) == end
        net = side.table.changes(since=since_id, until=until_id, collapse=True).to_arrow()
        assert _replayed(start, net.to_pylist()) == end
        kinds: dict[str, set[int]] = {}
        for row in net.to_pylist():
            kinds.setdefault(row["_change_type"], set()).add(row["_row_id"])
        assert kinds.get("delete", set()) == start.keys() - end.keys()
        assert kinds.get("insert", set()) == end.keys() - start.keys()
        updated = {id for id in start.keys() & end.keys() if start[id] != end[id]}
        assert updated <= kinds.get("update_postimage", set())
        assert kinds.get("update_postimage") == kinds.get("update_preimage")

    def _lineage(self, side: Side) -> list[int]:
        """Ids of the snapshots that main descends from, newest first."""
        known = {int(each.snapshot_id): each for each in side.table.snapshots()}
        found: list[int] = []
        at: Snapshot | None = side.table.current_snapshot()
        while at is not None:
            found.append(int(at.snapshot_id))
            at = known.get(int(at.parent_snapshot_id or 0))
        return found

    @staticmethod
    def _read(table: frazil.Table) -> Rows:
        columns = ["_row_id", *SCHEMA.names]
        found: Rows = {}
        for row in table.scan(columns=columns).to_pylist():
            assert row["_row_id"] not in found, f"row id {row['_row_id']} is there twice"
            found[row["_row_id"]] = tuple(row[name] for name in SCHEMA.names)
        return found

    @staticmethod
    def _on(side: Side, branch: str) -> frazil.Table:
        return side.table if branch == MAIN else side.table.branch(branch, create=False)

    def _settle(self, side: Side, expected: Expected, branch: str = MAIN) -> None:
        """Learn the ids of new rows; everything else must be as the model says."""
        side.table.refresh()
        table = self._on(side, branch)
        found = self._read(table)
        known = {id: row for id, row in found.items() if id in expected.rows}
        assert known == expected.rows
        new = {id: row for id, row in found.items() if id not in expected.rows}
        assert Counter(new.values()) == Counter(expected.fresh)
        assert not side.seen_ids & new.keys(), "an id is given out twice"
        side.seen_ids |= new.keys()
        side.branches[branch] = found
        tip = table.current_snapshot()
        if tip is not None:
            side.states[int(tip.snapshot_id)] = found

    # Rows and conditions for both sides

    def _made(self, count: int, part: int | None = None) -> list[Row]:
        made: list[Row] = []
        for _ in range(count):
            where = self.rng.randrange(2) if part is None else part
            kind = self.rng.choice(KINDS)
            made.append((self.next_uid, where, kind, self.rng.randrange(50)))
            self.next_uid += 1
        return made

    def _arrow(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(
            [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA
        )

    def _condition(self) -> tuple[str, Callable[[Row], bool]]:
        low = self.rng.randrange(max(1, self.next_uid))
        high = low + self.rng.randint(0, 6)
        kind = self.rng.choice(KINDS[:2])
        return self.rng.choice(
            [
                (f"uid between {low} and {high}", lambda row: low <= row[0] <= high),
                (f"kind = '{kind}'", lambda row: row[2] == kind),
                ("kind is null", lambda row: row[2] is None),
                (f"part = 1 and value < {high}", lambda row: row[1] == 1 and row[3] < high),
                ("true", lambda row: True),
            ]
        )

    # Changes: what is done to a table or transaction, and what to the model

    def _append(self, rows: list[Row]) -> Work:
        made = self._made(self.rng.randint(1, 4))
        return Work(
            "append",
            lambda target: target.append(self._arrow(made)),
            lambda expected: expected.add(made),
        )

    def _delete(self, rows: list[Row]) -> Work:
        where, matches = self._condition()
        return Work(
            f"delete({where})",
            lambda target: target.delete(where),
            lambda expected: expected.drop(matches),
        )

    def _update(self, rows: list[Row]) -> Work:
        where, matches = self._condition()
        mode = self.rng.choice(MODES)
        return Work(
            f"update({where}, {mode})",
            lambda target: updated(target, {"value": frazil.expr("value + 3")}, where, mode),
            lambda expected: expected.change(matches, lambda row: (*row[:3], row[3] + 3)),
        )

    def _upsert(self, rows: list[Row]) -> Work:
        counts = Counter(row[0] for row in rows)
        single = sorted(uid for uid, count in counts.items() if count == 1)
        known = self.rng.sample(single, min(2, len(single)))
        made = [(uid, 0, "red", self.rng.randrange(50)) for uid in known] + self._made(1)
        by_uid = {row[0]: row for row in made}

        def model(expected: Expected) -> None:
            there = {row[0] for row in expected.every()}
            expected.change(lambda row: row[0] in by_uid, lambda row: by_uid[row[0]])
            expected.add([row for row in made if row[0] not in there])

        uids = [row[0] for row in made]
        return Work(
            f"upsert({uids})", lambda target: target.upsert(self._arrow(made), on=["uid"]), model
        )

    def _overwrite(self, rows: list[Row]) -> Work:
        where, matches = self._condition()
        made = self._made(2)

        def model(expected: Expected) -> None:
            expected.drop(matches)
            expected.add(made)

        return Work(
            f"overwrite({where})",
            lambda target: target.overwrite(self._arrow(made), where),
            model,
        )

    def _any(self, rows: list[Row]) -> Work:
        plan = self.rng.choice(
            [self._append, self._delete, self._update, self._upsert, self._overwrite]
        )
        return plan(rows)

    def _delete_equal(self, rows: list[Row]) -> Work:
        column, place = self.rng.choice([("uid", 0), ("kind", 2)])
        if column == "uid":
            chosen = self.rng.sample(rows, min(2, len(rows)))
            values: set[Any] = {row[0] for row in chosen} or {0}
        else:
            values = {self.rng.choice(KINDS)}
        keys = pa.table({column: pa.array([*values], SCHEMA.field(column).type)})
        return Work(
            f"delete_equal({column} {values})",
            lambda target: target.row_delta().add_equality_deletes(keys, on=[column]).commit(),
            lambda expected: expected.drop(lambda row: row[place] in values),
        )

    def _done(self, work: Work, target: ChangedRows, expected: Expected) -> None:
        self.log.append(work.name)
        work.act(target)
        work.model(expected)

    # Steps

    def change(self, side: Side) -> None:
        expected = Expected(dict(side.branches[MAIN]))
        self._done(self._any(expected.every()), side.table, expected)
        self._settle(side, expected)

    def transaction(self, side: Side) -> None:
        expected = Expected(dict(side.branches[MAIN]))
        with side.table.transaction() as tx:
            for _ in range(self.rng.randint(2, 3)):
                self._done(self._any(expected.every()), tx, expected)
        self._settle(side, expected)

    def equality_delete(self, side: Side) -> None:
        expected = Expected(dict(side.branches[MAIN]))
        self._done(self._delete_equal(expected.every()), side.table, expected)
        self._settle(side, expected)

    def race(self, side: Side) -> None:
        """A change is planned, another one lands; then it lands as if it had come second, or it
        conflicts, or it found nothing to do in what it saw."""
        rows = [*side.branches[MAIN].values()]
        mine = self._any(rows)
        self.log.append(mine.name)
        tx = side.table.transaction()
        mine.act(tx)
        other = self.catalog.load_table(side.name)
        expected = Expected(dict(side.branches[MAIN]))
        match self.rng.choice(["equality delete", "equality delete", "change", "compact"]):
            case "equality delete":
                self._done(self._delete_equal(rows), other, expected)
            case "change":
                self._done(self._any(rows), other, expected)
            case _:
                self.log.append("compact")
                other.compact(min_input_files=1, sort_by=["uid"])
        self._settle(side, expected)
        try:
            landed = tx.commit().snapshot
        except CommitConflict:
            self.log.append("conflict")
            return
        if landed is not None:
            expected = Expected(dict(side.branches[MAIN]))
            mine.model(expected)
            self._settle(side, expected)

    def files_added(self, side: Side) -> None:
        """A file of one partition, without field ids."""
        made = self._made(self.rng.randint(1, 3), part=1)
        path = self.folder / f"file-{self.count}.parquet"
        self.count += 1
        pq.write_table(self._arrow(made), path)
        self._add_file(side, str(path), made)

    def file_added_again(self, side: Side) -> None:
        """A file that the table lists, or listed, or that another table was given too."""
        if self.files:
            self._add_file(side, *self.rng.choice(self.files))

    def _add_file(self, side: Side, path: str, made: list[Row]) -> None:
        expected = Expected(dict(side.branches[MAIN]))
        try:
            side.table.add_files([path], check_duplicates=False)
        except FormatError:  # rows of several partitions
            return
        if (path, made) not in self.files:
            self.files.append((path, made))
        expected.fresh += made
        self._settle(side, expected)

    def file_of_another_table(self, side: Side) -> None:
        """It is refused, whoever the other table is."""
        for other in self.sides.values():
            names = other.table.scan().plan().files.pylist("location")
            own = [name for name in names if name.startswith("data/")]
            if other is side or not own:
                continue
            with pytest.raises(InvalidInput, match="file of table"):
                side.table.add_files([f"{other.table.location}/{own[0]}"], check_duplicates=False)

    def clone(self, side: Side) -> None:
        if len(self.sides) >= 3 or side.table.current_snapshot() is None:
            return
        name = f"shop.clone_{self.count}"
        self.count += 1
        made = side.table.clone(self.catalog, name)
        rows = dict(side.branches[MAIN])
        copied = Side(name, made, branches={MAIN: rows}, seen_ids=set(side.seen_ids))
        tip = made.current_snapshot()
        if tip is not None:
            copied.states[int(tip.snapshot_id)] = rows
        self.sides[name] = copied
        side.clones.append(name)

    def clone_dropped(self, side: Side) -> None:
        """A clone goes, with its files; what it read stays with its source."""
        if side.name == "shop.first" or side.clones:
            return
        self.catalog.drop_table(side.name, purge=True)
        del self.sides[side.name]
        for other in self.sides.values():
            if side.name in other.clones:
                other.clones.remove(side.name)
                other.table.refresh().drop_ref(f"clone/{side.name}")

    def branch(self, side: Side) -> None:
        if side.table.current_snapshot() is None:
            return
        if "work" not in side.branches:
            side.table.branch("work", create=True)
            side.branches["work"] = copy.deepcopy(side.branches[MAIN])
            return
        expected = Expected(dict(side.branches["work"]))
        self._done(self._any(expected.every()), self._on(side, "work"), expected)
        self._settle(side, expected, "work")

    def pick(self, side: Side) -> None:
        """What a branch deleted or appended is brought to main, or conflicts with it."""
        if side.table.current_snapshot() is None:
            return
        name = f"pick-{self.count}"
        self.count += 1
        branch = side.table.branch(name, create=True)
        where, matches = self._condition()
        picked = branch.delete(where).snapshot
        expected = Expected(dict(side.branches[MAIN]))
        self._done(self._append([]), side.table.refresh(), expected)
        self._settle(side, expected)
        if picked is not None:
            gone = {id for id, row in side.branches[MAIN].items() if matches(row)}
            new = {id for id, row in side.branches[MAIN].items() if row in expected.fresh}
            side.table.cherry_pick(picked.snapshot_id)
            kept = {id: r for id, r in side.branches[MAIN].items() if id in new or id not in gone}
            self._settle(side, Expected(kept))
        side.table.drop_ref(name)

    def rewrite(self, side: Side) -> None:
        expected = Expected(dict(side.branches[MAIN]))
        table = side.table
        work: Callable[[], object] = self.rng.choice(
            [
                lambda: table.compact(min_input_files=1, sort_by=["uid"]),
                lambda: table.compact(min_input_files=2),
                table.compact_metadata,
                table.rewrite_manifests,
            ]
        )
        work()
        self._settle(side, expected)

    def expire(self, side: Side) -> None:
        soon = datetime.now(UTC) + timedelta(days=1)
        side.table.expire_snapshots(older_than=soon, keep_last=self.rng.randint(1, 4))
        kept = {int(each.snapshot_id) for each in side.table.snapshots()}
        side.states = {id: rows for id, rows in side.states.items() if id in kept}
        self.catalog._cache.clear()

    def orphans(self, side: Side) -> None:
        side.table.remove_orphan_files(older_than=datetime.now(UTC) + timedelta(minutes=5))


def _replayed(start: Rows, changes: list[dict[str, Any]]) -> Rows:
    """A feed applied to rows, ordinal by ordinal; what it removes must be there."""
    rows = dict(start)
    for ordinal in sorted({change["_change_ordinal"] for change in changes}):
        step = [change for change in changes if change["_change_ordinal"] == ordinal]
        for change in step:
            if change["_change_type"] in ("delete", "update_preimage"):
                assert rows.pop(change["_row_id"]) == tuple(change[n] for n in SCHEMA.names)
        for change in step:
            if change["_change_type"] in ("insert", "update_postimage"):
                assert change["_row_id"] not in rows
                rows[change["_row_id"]] = tuple(change[n] for n in SCHEMA.names)
    return rows


_OPERATIONS: list[Callable[[EntryHistory, Side], None]] = [
    *[EntryHistory.change] * 4,
    *[EntryHistory.transaction] * 2,
    *[EntryHistory.race] * 3,
    *[EntryHistory.equality_delete] * 2,
    *[EntryHistory.files_added] * 2,
    *[EntryHistory.file_added_again] * 3,
    EntryHistory.file_of_another_table,
    EntryHistory.clone,
    EntryHistory.clone_dropped,
    EntryHistory.branch,
    EntryHistory.pick,
    *[EntryHistory.rewrite] * 2,
    EntryHistory.expire,
    EntryHistory.orphans,
]
