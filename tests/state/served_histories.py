"""Random histories of a served table: several clients, native ones among them, beside a model.

Clients of the REST catalog are PyIceberg and a writer made by hand, which sends equality deletes
and repeats commits. Each has a view of the table that may be stale; a commit that is refused
changes nothing in the model.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from starlette.testclient import TestClient

import frazil
from frazil.errors import CommitConflict
from frazil.serve.app import build
from frazil.serve.running import Running
from frazil.serve.service import Service
from tests.state.histories import SMALL_TREE
from tests.support.raw_client import RawClient, with_ids

COLUMNS = pa.schema({"id": pa.int64(), "value": pa.int64()})


class ServedHistory:
    """One table and its clients, played from a seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.catalog = frazil.connect(folder / "warehouse")
        self.native = self.catalog.create_table("shop.orders", COLUMNS, properties=SMALL_TREE)
        app = build(Service(self.catalog))
        self.server = Running(app)
        self.remote = RestCatalog("x", uri=self.server.uri)
        self.peer = self.remote.load_table("shop.orders")
        place = Path(self.native.location.removeprefix("file://"))
        self.raw = RawClient(
            http=TestClient(app, base_url="http://127.0.0.1:8181"), folder=place / "raw"
        )
        self.rows: dict[int, int] = {}
        self.has_equality_deletes = False
        self.tags: dict[str, dict[int, int]] = {}
        self.next_id = 0
        self.log: list[str] = []

    def play(self, steps: int) -> None:
        """Do random things and compare after each."""
        try:
            for _ in range(steps):
                operation = self.rng.choice(_OPERATIONS)
                self.log.append(operation)
                getattr(self, operation)()
                self.compare()
            assert not self.native.check(deep=True).problems
        finally:
            self.server.close()

    def compare(self) -> None:
        """Natively and, where it can read them, to PyIceberg the rows are the model's."""
        self.native.refresh()
        found = self.native.scan().to_arrow()
        assert _by_id(found) == self.rows
        assert found.num_rows == len(self.rows), "a row is there twice"
        if not self.has_equality_deletes:
            seen = self.remote.load_table("shop.orders").scan().to_arrow()
            assert (_by_id(seen), seen.num_rows) == (self.rows, len(self.rows))
        for name, rows in self.tags.items():
            assert _by_id(self.native.scan(as_of=name).to_arrow()) == rows

    # Operations

    def native_append(self) -> None:
        made = self._new()
        self.native.append(_table(made))
        self.rows |= made

    def native_delete(self) -> None:
        limit = self.rng.randrange(3)
        self.native.delete(f"id % 3 = {limit}")
        self.rows = {key: value for key, value in self.rows.items() if key % 3 != limit}

    def native_update(self) -> None:
        self.native.update({"value": -1}, where="id % 5 = 0")
        self.rows = {key: -1 if key % 5 == 0 else value for key, value in self.rows.items()}

    def native_compact(self) -> None:
        self.native.compact(rewrite_all=True)

    def native_tag(self) -> None:
        if self.rows:
            name = f"t{len(self.tags)}"
            self.native.tag(name)
            self.tags[name] = dict(self.rows)

    def peer_append(self) -> None:
        made = self._new()
        try:
            self.peer.append(_table(made))
            self.rows |= made
        except CommitFailedException:
            self.peer.refresh()

    def peer_delete(self) -> None:
        if self.has_equality_deletes:
            return
        self.peer = self.remote.load_table("shop.orders")
        if self.rng.random() < 0.3:
            self._interfere()
        limit = self.rng.randrange(self.next_id + 1)
        doomed = {key for key in self.rows if key < limit}
        try:
            self.peer.delete(f"id < {limit}")
            self.rows = {key: value for key, value in self.rows.items() if key not in doomed}
        except (CommitFailedException, ValidationException, ValueError):
            self.peer = self.remote.load_table("shop.orders")

    def peer_overwrite(self) -> None:
        if self.has_equality_deletes:
            return
        self.peer = self.remote.load_table("shop.orders")
        made = self._new()
        self.peer.overwrite(_table(made), overwrite_filter="id >= 0")
        self.rows = made

    def raw_append(self) -> None:
        made = self._new()
        body = self.raw.updates(self.raw.data(_numbered(made)))
        for _ in range(self.rng.choice([1, 1, 2, 3])):  # an answer that was lost: sent again
            answer = self.raw.post(body)
            assert answer.status_code == 200, answer.text
        self.rows |= made

    def raw_append_on_a_stale_base(self) -> None:
        base = self.raw.load()
        body = self.raw.updates(self.raw.data(_numbered(self._new())), base=base)
        self._interfere()
        assert self.raw.post(body).status_code == 409

    def raw_upsert(self) -> None:
        """As Flink does: equality deletes and new rows under the same keys."""
        keys = [key for key in self.rows if self.rng.random() < 0.4]
        made = dict.fromkeys(keys, -2) | self._new()
        deletes = with_ids(_table(dict.fromkeys([*keys, -1], 0)), id=1)
        files = (self.raw.data(_numbered(made)), self.raw.equality_deletes(deletes))
        answer = self.raw.post(self.raw.updates(*files, operation="overwrite"))
        assert answer.status_code == 200, answer.text
        self.has_equality_deletes = True
        self.rows |= made

    def _interfere(self) -> None:
        made = self._new()
        fresh = self.catalog["shop.orders"]
        try:
            fresh.append(_table(made))
        except CommitConflict:
            return
        self.rows |= made

    def _new(self) -> dict[int, int]:
        count = self.rng.randrange(1, 6)
        first = self.next_id
        self.next_id += count
        return {key: self.rng.randrange(100) for key in range(first, first + count)}


_OPERATIONS = [
    name
    for name in vars(ServedHistory)
    if name.startswith(("native_", "peer_", "raw_")) and name != "raw_upsert"
]
_OPERATIONS += ["native_append", "peer_append", "raw_append"]


class UpsertedHistory(ServedHistory):
    """A history with equality deletes, which PyIceberg cannot read."""

    def play(self, steps: int) -> None:
        self.raw_append()
        self.raw_upsert()
        self.compare()
        super().play(steps)


def _table(rows: dict[int, int]) -> pa.Table:
    return pa.table({"id": list(rows), "value": list(rows.values())}, schema=COLUMNS)


def _numbered(rows: dict[int, int]) -> pa.Table:
    return with_ids(_table(rows), id=1, value=2)


def _by_id(rows: Any) -> dict[int, int]:
    return dict(zip(rows["id"].to_pylist(), rows["value"].to_pylist(), strict=True))
