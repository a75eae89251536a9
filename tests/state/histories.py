"""Random histories of a table beside a plain model of it.

A history is played from a seed: operations of all kinds, by a writer that knows the newest state
and by one that does not. The model is dictionaries and lists; it knows nothing of files, snapshots
or conflicts. What the table says must be what the model says, after every step.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import frazil
from frazil.errors import CommitConflict, FormatError, Unsupported
from frazil.format.metadata.metadata import MAIN
from tests.state.model import ID, compacted, replay

SMALL_TREE = {
    "write.root.max-data-entries": "4",
    "write.root.max-delete-entries": "2",
    "write.leaf.target-entries": "5",
}
KINDS = ("red", "green", "blue", None)
COLUMNS = {"uid": pa.int64(), "part": pa.int64(), "kind": pa.string(), "value": pa.int64()}

Rows = dict[int, dict[str, Any]]
"""Rows by their uid, with values by column. A column of the model is never renamed: `names` says
what the table calls it."""


@dataclass
class Model:
    """What the table must hold."""

    branches: dict[str, Rows] = field(default_factory=lambda: {MAIN: {}})
    tags: dict[str, tuple[Rows, dict[str, str]]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=lambda: {name: name for name in COLUMNS})

    def shown(self, rows: Rows, names: dict[str, str] | None = None) -> list[dict[str, Any]]:
        """Rows as a scan gives them, in the order of uids."""
        columns = self.names if names is None else names
        return [
            {name: row.get(column) for column, name in columns.items()}
            for _, row in sorted(rows.items())
        ]


MODES = ("rows", "columns", "auto")


def _uid(row: dict[str, Any]) -> int:
    return int(row["uid"])


def _keyed(rows: Rows, names: dict[str, str]) -> dict[int, dict[Any, Any]]:
    """Rows as the replay of a feed has them: the columns of `names`, the uid by its number."""
    return {
        uid: {ID if column == "uid" else column: row.get(column) for column in names}
        for uid, row in rows.items()
    }


def updated(target: Any, values: dict[str, Any], where: str, mode: str) -> None:
    """An update by column files where files can have them, else of rows."""
    try:
        target.update(values, where, mode=mode)
    except Unsupported:
        assert mode == "columns"
        target.update(values, where, mode="rows")


class History:
    """One table, played from a seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.catalog = frazil.connect(folder / "warehouse")
        partition_by = self.rng.choice([None, ["part"], ["bucket[3](uid)"]])
        self.by_part = partition_by == ["part"]
        schema = pa.schema(list(COLUMNS.items()))
        equality = {"write.equality-deletes.enabled": self.rng.choice(["true", "false"])}
        self.table = self.catalog.create_table(
            "shop.things", schema, partition_by=partition_by, properties=SMALL_TREE | equality
        )
        self.stale = self.catalog.load_table("shop.things")
        self.model = Model()
        self.row_ids: dict[int, int] = {}
        self.past: dict[int, tuple[Rows, dict[str, str]]] = {}
        self.next_uid = 0
        self.count = 0
        self.log: list[str] = []

    def play(self, steps: int) -> None:
        """Do random things and compare after each."""
        for _ in range(steps):
            before = self.table.current_snapshot()
            operation = self.rng.choice(_OPERATIONS)
            self.log.append(operation.__name__)
            operation(self)
            self.compare()
            self.compare_ways_to_read()
            self.compare_history(None if before is None else int(before.snapshot_id))
        self.finish()

    # What must hold

    def compare(self) -> None:
        self.table.refresh()
        main = self.model.branches[MAIN]
        assert self._read(self.table) == self.model.shown(main)
        ids = self.table.scan(columns=["uid", "_row_id"]).to_pylist()
        found = {row["uid"]: row["_row_id"] for row in ids}
        assert len(set(found.values())) == len(found) == len(ids), "rows share a row id"
        for uid, row_id in found.items():
            assert self.row_ids.setdefault(uid, row_id) == row_id, f"row {uid} has another row id"
        self.row_ids = {uid: id for uid, id in self.row_ids.items() if uid in self._alive()}

    def compare_ways_to_read(self) -> None:
        """A filter leaves the same rows in a scan, in SQL and for a projection of columns."""
        where, matches = self._range()
        expected = [row for _, row in sorted(self.model.branches[MAIN].items()) if matches(row)]
        found = self.table.scan(where).to_pylist()
        assert sorted(found, key=_uid) == self.model.shown({row["uid"]: row for row in expected})
        names = self.rng.sample(sorted(self.model.names), 2)
        chosen = {column: self.model.names[column] for column in {"uid", *names}}
        rows = [{name: row.get(column) for column, name in chosen.items()} for row in expected]
        scan = self.table.scan(where, columns=list(chosen.values()))
        assert sorted(scan.to_pylist(), key=_uid) == rows
        query = f"SELECT {', '.join(chosen.values())} FROM shop.things WHERE {where} ORDER BY uid"
        assert self.catalog.sql(query).to_arrow().to_pylist() == rows

    def compare_history(self, before: int | None) -> None:
        """Older snapshots have the rows they had, and the feed leads from one to the next."""
        tip = self.table.current_snapshot()
        if tip is None:
            return
        rows = copy.deepcopy(self.model.branches[MAIN])
        self.past.setdefault(int(tip.snapshot_id), (rows, dict(self.model.names)))
        kept = {int(snapshot.snapshot_id): snapshot for snapshot in self.table.snapshots()}
        self.past = {id: version for id, version in self.past.items() if id in kept}
        id = self.rng.choice(sorted(self.past))
        read = sorted(self.table.scan(as_of=kept[id]).to_pylist(), key=_uid)
        assert read == self.model.shown(*self.past[id])
        line = {int(snapshot.snapshot_id) for snapshot in self._lineage()}
        starts = [start for start in {before, self.rng.choice(sorted(self.past))} if start in line]
        for start in starts:
            if start is not None and start in self.past:
                self._follow(kept[start], self.past[start][0], tip)

    def _follow(self, start: Any, rows: Rows, tip: Any) -> None:
        """Replay the feed on the rows that a snapshot had."""
        until, names = self.past[int(tip.snapshot_id)]
        keys: dict[str, Any] = {
            name: ID if column == "uid" else column for column, name in names.items()
        }
        feed = self.table.changes(since=start, until=tip).to_arrow().to_pylist()
        assert replay(_keyed(rows, names), feed, keys) == _keyed(until, names)

    def finish(self) -> None:
        for name, rows in self.model.branches.items():
            if name != MAIN:
                branch = self.table.branch(name, create=False)
                assert self._read(branch) == self.model.shown(rows)
        for name, (rows, names) in self.model.tags.items():
            found = sorted(self.table.scan(as_of=name).to_pylist(), key=_uid)
            assert found == self.model.shown(rows, names)
        report = self.table.check(deep=True)
        assert not report.problems, str(report)
        self.catalog.close()

    def _alive(self) -> set[int]:
        return {uid for rows in self.model.branches.values() for uid in rows}

    @staticmethod
    def _read(table: frazil.Table) -> list[dict[str, Any]]:
        return sorted(table.scan().to_pylist(), key=_uid)

    # Rows for both sides

    def _fresh(self, count: int) -> list[dict[str, Any]]:
        made = [self._row(self.next_uid + step) for step in range(count)]
        self.next_uid += count
        return made

    def _row(self, uid: int) -> dict[str, Any]:
        return {
            "uid": uid,
            "part": self.rng.randrange(3),
            "kind": self.rng.choice(KINDS),
            "value": self.rng.randrange(100),
        }

    def _arrow(self, rows: list[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=pa.schema(list(COLUMNS.items())))

    def _range(self) -> tuple[str, Callable[[dict[str, Any]], bool]]:
        """A filter, as text and as Python."""
        low = self.rng.randrange(max(1, self.next_uid))
        high = low + self.rng.randint(0, 10)
        match self.rng.randrange(3):
            case 0:
                return f"uid >= {low} and uid <= {high}", lambda row: low <= row["uid"] <= high
            case 1:
                kind = self.rng.choice(KINDS[:3])
                return (
                    f"kind = '{kind}' and uid > {low}",
                    lambda row: row["kind"] == kind and row["uid"] > low,
                )
            case _:
                return (
                    f"part = 1 and value >= {high}",
                    lambda row: row["part"] == 1 and row["value"] >= high,
                )

    # Operations on rows; `target` is a table or a transaction, `rows` what it holds

    def _append(self, target: Any, rows: Rows) -> None:
        made = self._fresh(self.rng.randint(1, 5))
        target.append(self._arrow(made))
        rows.update({row["uid"]: row for row in made})

    def _delete(self, target: Any, rows: Rows) -> None:
        where, matches = self._range()
        target.delete(where)
        for uid in [uid for uid, row in rows.items() if matches(row)]:
            del rows[uid]

    def _update(self, target: Any, rows: Rows) -> None:
        where, matches = self._range()
        updated(target, {"value": frazil.expr("value + 7")}, where, self.rng.choice(MODES))
        for row in rows.values():
            if matches(row):
                row["value"] += 7

    def _upsert(self, target: Any, rows: Rows) -> None:
        known = self.rng.sample(sorted(rows), min(len(rows), 2))
        made = [self._row(uid) for uid in known] + self._fresh(self.rng.randint(0, 2))
        if not made:
            return
        target.upsert(self._arrow(made), on=["uid"])
        for row in made:  # columns that the new row lacks keep their values
            rows[row["uid"]] = {**rows.get(row["uid"], {}), **row}

    def _overwrite(self, target: Any, rows: Rows) -> None:
        where, matches = self._range()
        made = self._fresh(2)
        target.overwrite(self._arrow(made), where)
        for uid in [uid for uid, row in rows.items() if matches(row)]:
            del rows[uid]
        rows.update({row["uid"]: row for row in made})

    def _one(self, target: Any, rows: Rows) -> None:
        work = self.rng.choice(
            [self._append, self._append, self._delete, self._update, self._upsert, self._overwrite]
        )
        self.log.append(work.__name__)
        work(target, rows)

    # Steps

    def change(self) -> None:
        self._one(self.table, self.model.branches[MAIN])

    def transaction(self) -> None:
        rows = copy.deepcopy(self.model.branches[MAIN])
        with self.table.transaction() as tx:
            for _ in range(self.rng.randint(2, 4)):
                self._one(tx, rows)
        self.model.branches[MAIN] = rows

    def aborted_transaction(self) -> None:
        tx = self.table.transaction()
        self._one(tx, copy.deepcopy(self.model.branches[MAIN]))
        tx.abort()

    def change_by_a_stale_writer(self) -> None:
        """It lands on what is there now, is refused as a whole, or finds nothing to do in what it
        saw."""
        rows = copy.deepcopy(self.model.branches[MAIN])
        before = self.table.current_snapshot()
        work = self.rng.choice([self._append, self._delete, self._update])
        try:
            work(self.stale, rows)
        except CommitConflict:
            self.stale.refresh()
        else:
            if self.table.refresh().current_snapshot() != before:
                self.model.branches[MAIN] = rows

    def partitions_replaced(self) -> None:
        if not self.by_part:
            return
        made = self._fresh(2)
        self.table.overwrite_partitions(self._arrow(made))
        touched = {row["part"] for row in made}
        rows = self.model.branches[MAIN]
        for uid in [uid for uid, row in rows.items() if row["part"] in touched]:
            del rows[uid]
        rows.update({row["uid"]: row for row in made})

    def equality_delete(self) -> None:
        kind = self.rng.choice(KINDS)
        deletes = pa.table({"kind": pa.array([kind], pa.string())})
        self.table.row_delta().add_equality_deletes(deletes, on=["kind"]).commit()
        rows = self.model.branches[MAIN]
        for uid in [uid for uid, row in rows.items() if row["kind"] == kind]:
            del rows[uid]

    def files_added(self) -> None:
        """Files without field ids; a name that another column had is refused."""
        made = self._fresh(2)
        part = self.rng.randrange(3)
        for row in made:
            row["part"] = part
        columns = [name for name in self.model.names if name not in COLUMNS]
        schema = dict(COLUMNS) | {self.model.names[name]: pa.string() for name in columns}
        for row in made:
            row.update(dict.fromkeys(columns, f"added {row['uid']}"))
        path = self.folder / f"added-{self.next_uid}.parquet"
        named = [{self.model.names[name]: value for name, value in row.items()} for row in made]
        pq.write_table(pa.Table.from_pylist(named, schema=pa.schema(list(schema.items()))), path)
        try:
            self.table.add_files([str(path)])
        except FormatError as error:  # a name is taken, or rows are of several partitions
            if error.field is None:
                raise
        else:
            self.model.branches[MAIN].update({row["uid"]: row for row in made})

    def branch(self) -> None:
        """Work on a branch; sometimes bring it back."""
        rows = self.model.branches.get("work")
        main = self.model.branches[MAIN]
        if self.table.current_snapshot() is None:
            return
        if rows is None:
            self.table.branch("work", create=True)
            self.model.branches["work"] = copy.deepcopy(main)
        else:
            self._one(self.table.branch("work", create=False), rows)

    def branch_published(self) -> None:
        """Main goes to a branch that was made at it and has moved on since."""
        if self.table.current_snapshot() is None:
            return
        name = f"audit-{self.count}"
        self.count += 1
        rows = copy.deepcopy(self.model.branches[MAIN])
        self._one(self.table.branch(name, create=True), rows)
        self.table.fast_forward(to=name)
        self.table.drop_ref(name)
        self.model.branches[MAIN] = rows

    def pick(self) -> None:
        """An append to a branch is picked onto main."""
        if self.table.current_snapshot() is None:
            return
        name = f"pick-{self.count}"
        self.count += 1
        made = self._fresh(2)
        picked = self.table.branch(name, create=True).append(self._arrow(made)).snapshot
        assert picked is not None
        self._append(self.table.refresh(), self.model.branches[MAIN])
        self.table.cherry_pick(picked.snapshot_id)
        self.table.drop_ref(name)
        self.model.branches[MAIN].update({row["uid"]: row for row in made})

    def tag(self) -> None:
        if self.table.current_snapshot() is not None and len(self.model.tags) < 4:
            name = f"tag-{len(self.model.tags)}"
            self.table.tag(name)
            schema = self.table.metadata.schema_of(self.table.snapshot(name))
            known = {column.name for column in schema.fields}
            # A snapshot shows the columns of its own time.
            if known == set(self.model.names.values()):
                rows = copy.deepcopy(self.model.branches[MAIN])
                self.model.tags[name] = (rows, dict(self.model.names))
            else:
                self.table.drop_ref(name)

    def rollback(self) -> None:
        """Back to a tag that main descends from, unless columns changed in between."""
        for name, (rows, names) in self.model.tags.items():
            lineage = {int(each.snapshot_id) for each in self._lineage()}
            if names == self.model.names and int(self.table.snapshot(name).snapshot_id) in lineage:
                self.table.rollback(name)
                self.model.branches[MAIN] = copy.deepcopy(rows)
                return

    def _lineage(self) -> list[Any]:
        known = {int(each.snapshot_id): each for each in self.table.snapshots()}
        found, at = [], self.table.current_snapshot()
        while at is not None:
            found.append(at)
            at = known.get(int(at.parent_snapshot_id or 0))
        return found

    def expire(self) -> None:
        soon = datetime.now(UTC) + timedelta(days=1)
        self.table.expire_snapshots(older_than=soon, keep_last=self.rng.randint(1, 4))
        self.catalog._cache.clear()

    def orphans(self) -> None:
        self.table.remove_orphan_files(older_than=datetime.now(UTC) + timedelta(minutes=5))

    def compact(self) -> None:
        compacted(self.table)

    def columns_put_together(self) -> None:
        self.table.compact(merge_columns=True)

    def metadata_compacted(self) -> None:
        self.rng.choice([self.table.compact_metadata, self.table.rewrite_manifests])()

    def columns(self) -> None:
        """Add, rename or drop a column that is not one of the first."""
        extra = [column for column in self.model.names if column not in COLUMNS]
        evolve = self.table.evolve_schema()
        match self.rng.choice(["add", "rename", "drop"]):
            case "add" if len(extra) < 3:
                free = [n for n in ("x", "y", "z") if n not in self.model.names.values()]
                evolve.add_column(free[0], "string").commit()
                self.model.names[f"column {self.count}"] = free[0]
                self.count += 1
            case "rename" if extra:
                column = self.rng.choice(extra)
                name = f"renamed_{self.count}"
                self.count += 1
                evolve.rename_column(self.model.names[column], name).commit()
                self.model.names[column] = name
            case "drop" if extra:
                evolve.drop_column(self.model.names.pop(self.rng.choice(extra))).commit()

    def columns_computed(self) -> None:
        """Add a column with a value for every row of main; rows of other branches have none."""
        free = [name for name in ("x", "y", "z") if name not in self.model.names.values()]
        if not free:
            return
        try:
            self.table.add_columns({free[0]: "'value ' || uid"})
        except Unsupported:  # files without field ids, or below equality deletes
            return
        column = f"column {self.count}"
        self.count += 1
        self.model.names[column] = free[0]
        for row in self.model.branches[MAIN].values():
            row[column] = f"value {row['uid']}"

    def columns_merged(self) -> None:
        """Values by key for some rows; the others keep theirs."""
        rows = self.model.branches[MAIN]
        chosen = self.rng.sample(sorted(rows), min(3, len(rows)))
        keys = pa.table({"uid": pa.array(chosen, pa.int64()), "value": range(len(chosen))})
        try:
            self.table.merge_columns(keys, on="uid")
        except Unsupported:
            return
        for value, uid in enumerate(chosen):
            rows[uid]["value"] = value

    def reopen(self) -> None:
        self.catalog.close()
        self.catalog = frazil.connect(self.folder / "warehouse")
        self.table = self.catalog.load_table("shop.things")
        self.stale = self.catalog.load_table("shop.things")


_OPERATIONS: list[Callable[[History], None]] = [
    *[History.change] * 5,
    *[History.transaction] * 3,
    *[History.change_by_a_stale_writer] * 2,
    History.aborted_transaction,
    History.partitions_replaced,
    History.equality_delete,
    History.files_added,
    History.branch,
    History.branch_published,
    History.pick,
    History.tag,
    History.rollback,
    History.expire,
    History.orphans,
    History.compact,
    History.columns_put_together,
    History.metadata_compacted,
    *[History.columns] * 2,
    *[History.columns_computed] * 2,
    History.columns_merged,
    History.reopen,
]
