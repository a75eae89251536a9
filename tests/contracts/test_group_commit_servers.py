"""Two server processes on one catalog, writers on both, and one server that is killed: every append
lands once, whichever server it was sent to and however often."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.remote import remote_wire
from frazil.catalog.remote.remote_head import RemoteHead
from frazil.catalog.sql.offers import entries_bytes
from frazil.errors import CatalogError
from frazil.table import Catalog, Table
from frazil.table.transaction import Transaction
from tests.support.project import ROOT

SCHEMA = pa.schema([("id", pa.int64())])
WRITERS, APPENDS = 6, 10
SERVER = """
import sys
import frazil
from frazil import serve
catalog = frazil.connect(sys.argv[1], warehouse=sys.argv[2])
serve.run(catalog, port=0, ready=lambda address: print(address, flush=True))
"""


@contextmanager
def server(uri: str, warehouse: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server in a process of its own."""
    command = [sys.executable, "-c", SERVER, uri, warehouse]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address
            yield address, process
        finally:
            process.kill()


class Writer(threading.Thread):
    """Appends one row at a time: to its own server first, to the other one without an answer.

    Every third append is sent to both, as by a client whose answer was lost.
    """

    def __init__(self, number: int, addresses: list[str], landed: threading.Semaphore) -> None:
        super().__init__()
        self._first = number * APPENDS
        order = addresses if number % 2 else addresses[::-1]
        self._tables = [frazil.connect(each).load_table("shop.orders") for each in order]
        self._landed = landed
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            for id in range(self._first, self._first + APPENDS):
                self._append(id)
                self._landed.release()
        except BaseException as error:
            self.problem = error

    def _append(self, id: int) -> None:
        mine, other = self._tables
        base, entries = mine._handle.state, _written(mine, id)
        again = {"is-repeated": True}
        try:
            _sent(mine, entries, id + 1, base)
        except CatalogError:  # cut off, or gone: whether it has landed is not known
            _sent(other, entries, id + 1, base, **again)
            return
        if id % 3 == 0:
            with suppress(CatalogError):
                _sent(other, entries, id + 1, base, **again)


def _written(table: Table, id: int) -> pa.Buffer:
    """The entry of a file that is written and not committed."""
    transaction = Transaction(table._handle)  # its server may have died
    transaction.append(pa.table({"id": [id]}, SCHEMA))
    change = transaction._change
    assert change is not None
    assert change.added is not None
    return entries_bytes(change.added)


def _sent(table: Table, entries: pa.Buffer, append_id: int, base: Any, **more: Any) -> None:
    head = table._handle.head
    assert isinstance(head, RemoteHead)
    header = {
        "key": head.key,
        "branch": "main",
        "summary": {},
        "append-id": append_id,
        "writer": head._writer,
        "known": head.known().document(),
        "since-version": base.version,
        "since-sequence-number": base.metadata.last_sequence_number,
        **more,
    }
    body = remote_wire.framed(json.dumps(header).encode(), entries)
    answer = head._requests.once("append", body)
    assert answer["state"]["version"] > base.version


def _ids(catalog: Catalog) -> list[int]:
    found = catalog.load_table("shop.orders").scan().to_arrow()["id"].to_pylist()
    return sorted(found)


@pytest.mark.timeout(300)
def test_two_servers_and_a_killed_one_land_every_append_once(
    database_uri: str, tmp_path: Path
) -> None:
    warehouse = str(tmp_path / "warehouse")
    with ExitStack() as stack:
        catalog = stack.enter_context(frazil.connect(database_uri, warehouse=warehouse))
        catalog.create_table("shop.orders", SCHEMA)
        first, dies = stack.enter_context(server(database_uri, warehouse))
        second, _ = stack.enter_context(server(database_uri, warehouse))
        landed = threading.Semaphore(0)
        writers = [Writer(number, [first, second], landed) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        for _ in range(WRITERS * APPENDS // 2):
            assert landed.acquire(timeout=120)
        dies.kill()
        for writer in writers:
            writer.join(120)
        assert [writer.problem for writer in writers] == [None] * WRITERS
        assert _ids(catalog) == list(range(WRITERS * APPENDS))
        report = catalog.load_table("shop.orders").check(deep=True)
        assert not report.problems, str(report)
