"""Random sequences of operations on a table, held against a dictionary of rows per snapshot.

After every step: current rows, the rows of every live snapshot, row ids of unchanged rows, the
change feed between two snapshots, and every rule that `check` knows.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType, NestedField, StringType

import frazil
from frazil.format.metadata.metadata import MAIN, Snapshot
from frazil.rows.engine import Engine
from tests.state.model import ID, Row, Version, compacted, projected, replay, rows_of

SMALL_TREE = {
    "write.root.max-data-entries": "3",
    "write.root.max-delete-entries": "2",
    "write.leaf.target-entries": "6",
}
COLOURS = ("red", "green", "blue", None)
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "colour", StringType(), required=False),
    NestedField(3, "weight", LongType(), required=False),
)


class TableMachine(RuleBasedStateMachine):
    """One table, its model, and the operations on both."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="frazil-state-"))
        self.catalog = frazil.connect(self.folder)
        self.versions: dict[int, Version] = {}
        self.branches: dict[str, int | None] = {}
        self.next_id = 0
        self.columns_added = 0
        self.tags = 0
        self.is_upgraded = True

    @property
    def engine(self) -> Engine | None:
        """What carries out changes; None for the embedded engine."""
        return None

    def _said(self, where: str) -> str:
        """A condition on ids, in words that the engine has to evaluate if it is not embedded."""
        return where

    def teardown(self) -> None:
        self.catalog.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # Starting points

    @initialize(partitioned=st.booleans(), old=st.booleans())
    def start(self, partitioned: bool, old: bool) -> None:
        if old:
            self._start_as_v2(partitioned)
        else:
            self.table = self.catalog.create_table(
                "shop.things",
                SCHEMA,
                partition_by=["bucket[2](id)"] if partitioned else None,
                properties=SMALL_TREE,
            )

    def _start_as_v2(self, partitioned: bool) -> None:
        """A table that PyIceberg wrote, upgraded in place."""
        peer = SqlCatalog(
            "default",
            uri=f"sqlite:///{self.folder}/catalog.db",
            warehouse=f"file://{self.folder}",
        )
        peer.create_namespace_if_not_exists("shop")
        spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(2), "id_bucket"))
        made = peer.create_table(
            "shop.things",
            SCHEMA,
            partition_spec=spec if partitioned else PartitionSpec(),
            properties={"format-version": "2"},
        )
        for _ in range(2):
            made.append(self._new_rows(3))
        self.table = self.catalog.load_table("shop.things")
        for snapshot in self.table.snapshots():
            count = 3 * (1 + len(self.versions))
            rows = {id: self._row(id) for id in range(count)}
            self.versions[int(snapshot.snapshot_id)] = Version(rows, {})
        self.table.upgrade()
        self.table.set_properties(SMALL_TREE)
        peer.close()

    # The model

    def _row(self, id: int) -> Row:
        return {1: id, 2: COLOURS[id % 4], 3: id * 10}

    def _new_rows(self, count: int) -> pa.Table:
        ids = range(self.next_id, self.next_id + count)
        self.next_id += count
        rows = [self._row(id) for id in ids]
        return pa.table(
            {
                "id": pa.array([row[1] for row in rows], pa.int64()),
                "colour": pa.array([row[2] for row in rows], pa.string()),
                "weight": pa.array([row[3] for row in rows], pa.int64()),
            }
        )

    def _tip(self, branch: str = MAIN) -> Snapshot | None:
        return self.table._handle.state.tip(branch)

    def _version(self, snapshot: Snapshot | None) -> Version:
        return Version() if snapshot is None else self.versions[int(snapshot.snapshot_id)].copy()

    def _committed(self, version: Version, branch: str = MAIN) -> None:
        """Remember what the new snapshot must hold; row ids are taken over once, then fixed."""
        tip = self._tip(branch)
        if tip is None or int(tip.snapshot_id) in self.versions:
            return
        found = self._row_ids(tip)
        assert set(found) == set(version.rows)
        for key, row_id in version.row_ids.items():
            if key in found:
                assert found[key] == row_id, f"row id of {key} changed"
        assert len(set(found.values())) == len(found), "two rows share a row id"
        version.row_ids = found
        self.versions[int(tip.snapshot_id)] = version

    def _row_ids(self, snapshot: Snapshot) -> dict[int, int]:
        rows = self.table.scan(as_of=snapshot, columns=["id", "_row_id"]).to_pylist()
        return {row["id"]: row["_row_id"] for row in rows if row["_row_id"] is not None}

    # Rows

    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        version = self._version(self._tip())
        first = self.next_id
        self.table.append(self._new_rows(count))
        version.rows.update({id: self._row(id) for id in range(first, self.next_id)})
        self._committed(version)

    @rule(modulus=st.integers(1, 4), rest=st.integers(0, 3))
    def delete(self, modulus: int, rest: int) -> None:
        version = self._version(self._tip())
        gone = [id for id in version.rows if id % modulus == rest]
        if gone:
            where = self._said(f"id in ({', '.join(map(str, gone))})")
            with self.table.transaction(engine=self.engine) as tx:
                tx.delete(where)
        for id in gone:
            del version.rows[id]
            version.row_ids.pop(id, None)
        self._committed(version)

    @rule(
        low=st.integers(0, 20),
        width=st.integers(0, 8),
        weight=st.integers(-5, 5),
        mode=st.sampled_from(("rows", "columns", "auto")),
    )
    def update(self, low: int, width: int, weight: int, mode: str) -> None:
        version = self._version(self._tip())
        where = f"id between {low} and {low + width}"
        with self.table.transaction(engine=self.engine) as tx:
            tx.update({"weight": weight, "colour": "pink"}, where=self._said(where), mode=mode)
        for id, row in version.rows.items():
            if low <= id <= low + width:
                row.update({2: "pink", 3: weight})
        self._committed(version)

    @rule(low=st.integers(0, 20), count=st.integers(1, 4))
    def upsert(self, low: int, count: int) -> None:
        version = self._version(self._tip())
        ids = [*range(low, low + count)]
        self.next_id = max(self.next_id, low + count)
        rows = [{"id": id, "colour": "gold", "weight": -id} for id in ids]
        with self.table.transaction(engine=self.engine) as tx:
            tx.upsert(pa.Table.from_pylist(rows, schema=self._base_schema()), on=["id"])
        for id in ids:  # columns that the new row lacks keep their values
            version.rows[id] = {**version.rows.get(id, {}), 1: id, 2: "gold", 3: -id}
        self._committed(version)

    @rule(colour=st.sampled_from(COLOURS))
    def overwrite(self, colour: str | None) -> None:
        version = self._version(self._tip())
        where = "colour is null" if colour is None else f"colour = '{colour}'"
        first = self.next_id
        self.table.overwrite(self._new_rows(2), where=where)
        for id in [id for id, row in version.rows.items() if row[2] == colour]:
            del version.rows[id]
            version.row_ids.pop(id, None)
        version.rows.update({id: self._row(id) for id in range(first, self.next_id)})
        self._committed(version)

    @rule()
    def several_changes_as_one(self) -> None:
        version = self._version(self._tip())
        first = self.next_id
        with self.table.transaction() as tx:
            tx.append(self._new_rows(3))
            tx.delete(f"id = {first + 1}")
            tx.update({"colour": "mixed"}, where=f"id = {first}")
        version.rows.update({id: self._row(id) for id in (first, first + 2)})
        version.rows[first][2] = "mixed"
        self._committed(version)

    # Layout: nothing a reader could notice

    @rule()
    def rewrite_data(self) -> None:
        version = self._version(self._tip())
        compacted(self.table)
        self._committed(version)

    @rule()
    def merge_column_files(self) -> None:
        version = self._version(self._tip())
        self.table.compact(merge_columns=True)
        self._committed(version)

    @rule()
    def compact_metadata(self) -> None:
        version = self._version(self._tip())
        self.table.compact_metadata()
        self._committed(version)

    @rule()
    def rewrite_manifests(self) -> None:
        version = self._version(self._tip())
        self.table.rewrite_manifests()
        self._committed(version)

    # Definition

    @rule()
    @precondition(lambda self: self.columns_added < 3)
    def add_column(self) -> None:
        self.columns_added += 1
        self.table.evolve_schema().add_column(f"extra_{self.columns_added}", "string").commit()

    @rule()
    @precondition(lambda self: self.columns_added < 3)
    def add_column_with_values(self) -> None:
        version = self._version(self._tip())
        self.columns_added += 1
        name = f"extra_{self.columns_added}"
        with self.table.transaction(engine=self.engine) as tx:
            tx.add_columns({name: "colour || '?'"})
        field_id = self.table.refresh().schema.find_field(name).field_id
        for row in version.rows.values():
            row[field_id] = None if row[2] is None else row[2] + "?"
        self._committed(version)

    @rule(low=st.integers(0, 20), count=st.integers(1, 4))
    def merge_columns(self, low: int, count: int) -> None:
        version = self._version(self._tip())
        ids = [*range(low, low + count)]
        values = pa.table({"id": pa.array(ids, pa.int64()), "colour": ["teal"] * count})
        with self.table.transaction(engine=self.engine) as tx:
            tx.merge_columns(values, on="id")
        for id in ids:
            if id in version.rows:
                version.rows[id][2] = "teal"
        self._committed(version)

    @rule()
    def rename_column(self) -> None:
        spare = [c for c in self.table.schema.fields if c.name.startswith("extra_")]
        if spare:
            name = spare[0].name
            self.table.evolve_schema().rename_column(name, f"{name}_renamed").commit()

    @rule()
    def drop_column(self) -> None:
        spare = [c for c in self.table.schema.fields if c.name.startswith("extra_")]
        if spare:
            self.table.evolve_schema().drop_column(spare[-1].name).commit()

    @rule()
    def change_partitioning(self) -> None:
        names = [part.name for part in self.table.spec.fields]
        evolve = self.table.evolve_partitions()
        if names:
            evolve.remove(names[0]).commit()
        else:
            evolve.add("truncate[10](id)").commit()

    # Refs and history

    @rule(count=st.integers(1, 3))
    def append_to_a_branch(self, count: int) -> None:
        if self._tip() is None:
            return
        branch = self.table.branch("audit", create=True)
        version = self._version(self._tip("audit"))
        first = self.next_id
        branch.append(self._new_rows(count))
        version.rows.update({id: self._row(id) for id in range(first, self.next_id)})
        self._committed(version, "audit")

    @rule()
    def tag(self) -> None:
        if self._tip() is not None:
            self.tags += 1
            self.table.tag(f"tag-{self.tags}")

    @rule(back=st.integers(1, 3))
    def rollback(self, back: int) -> None:
        chain = self._ancestry()
        if len(chain) > back:
            self.table.rollback(chain[back])

    @rule(keep=st.integers(1, 4))
    def expire(self, keep: int) -> None:
        soon = datetime.now(UTC) + timedelta(days=1)
        self.table.expire_snapshots(older_than=soon, keep_last=keep)
        kept = {int(snapshot.snapshot_id) for snapshot in self.table.snapshots()}
        self.versions = {id: version for id, version in self.versions.items() if id in kept}

    def _ancestry(self) -> list[Snapshot]:
        known = {int(s.snapshot_id): s for s in self.table.snapshots()}
        chain: list[Snapshot] = []
        snapshot = self._tip()
        while snapshot is not None:
            chain.append(snapshot)
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else known.get(int(parent))
        return chain

    def _base_schema(self) -> pa.Schema:
        return pa.schema([("id", pa.int64()), ("colour", pa.string()), ("weight", pa.int64())])

    def _field_ids(self, snapshot: Snapshot | None = None) -> set[int]:
        schema = self.table.metadata.schema()
        if snapshot is not None:
            schema = self.table.metadata.schema_of(snapshot)
        return {column.field_id for column in schema.fields}

    # What must always hold

    @invariant()
    def every_snapshot_has_its_rows(self) -> None:
        if not hasattr(self, "table"):
            return
        snapshots = self.table.snapshots()
        assert {int(s.snapshot_id) for s in snapshots} == set(self.versions)
        for snapshot in snapshots:
            expected = projected(
                self.versions[int(snapshot.snapshot_id)].rows, self._field_ids(snapshot)
            )
            assert rows_of(self.table, snapshot) == expected
        tip = self._tip()
        assert self.table.scan().count() == len(self._version(tip).rows)

    @invariant()
    def the_change_feed_leads_from_one_snapshot_to_the_next(self) -> None:
        if not hasattr(self, "table"):
            return
        chain = self._ancestry()[:4]
        if len(chain) < 2:
            return
        until, since = chain[0], chain[-1]
        names = {
            column.name: column.field_id for column in self.table.metadata.schema_of(until).fields
        }
        start = projected(self.versions[int(since.snapshot_id)].rows, set(names.values()))
        end = projected(self.versions[int(until.snapshot_id)].rows, set(names.values()))
        steps = self.table.changes(since=since, until=until).to_arrow().to_pylist()
        assert replay(start, steps, names) == end
        net = self.table.changes(since=since, until=until, collapse=True).to_arrow().to_pylist()
        assert _net(start, net, names) == end

    @invariant()
    def every_rule_of_the_format_holds(self) -> None:
        if hasattr(self, "table"):
            report = self.table.check(deep=True)
            assert not report.problems, str(report)


def _net(
    start: dict[int, Row], changes: list[dict[str, Any]], names: dict[str, int]
) -> dict[int, Row]:
    rows = dict(start)
    for change in changes:
        row = {names[name]: change[name] for name in names}
        if change["_change_type"] in ("delete", "update_preimage"):
            assert rows.pop(row[ID]) == row
    for change in changes:
        row = {names[name]: change[name] for name in names}
        if change["_change_type"] in ("insert", "update_postimage"):
            assert row[ID] not in rows
            rows[row[ID]] = row
    return rows


IS_SEARCH = not settings().derandomize
TestTable = pytest.mark.timeout(6000 if IS_SEARCH else 600)(TableMachine.TestCase)
TestTable.settings = settings(
    max_examples=500 if IS_SEARCH else 30,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class SparkMachine(TableMachine):
    """The same with changes as Spark jobs."""

    @property
    def engine(self) -> Engine | None:
        from frazil.spark.rows.spark_engine import SparkEngine
        from tests.support.spark_session import shared_session

        return SparkEngine(shared_session())

    def _said(self, where: str) -> str:
        return f"({where}) and abs(id) = id"


TestTableOnSpark = pytest.mark.spark(pytest.mark.timeout(600)(SparkMachine.TestCase))
TestTableOnSpark.settings = settings(
    max_examples=3,
    stateful_step_count=8,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
