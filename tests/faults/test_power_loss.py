"""The power fails at every call that makes something durable: what was acknowledged is there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import frazil
from frazil.errors import CommitUnknown
from frazil.storage import local
from tests.faults.disk import Disk
from tests.faults.gates import Crash, Gate, gated
from tests.faults.operations import content, rows

RED = {1: "red", 2: "red", 3: "red"}
WORK: dict[str, tuple[Callable[[frazil.Table], object], dict[int, str]]] = {
    "append": (lambda table: table.append(rows(4, 5)), {**RED, 4: "red"}),
    "update": (lambda table: table.update({"colour": "blue"}, where="id = 2"), {**RED, 2: "blue"}),
    "evolve schema": (lambda table: table.evolve_schema().add_column("n", "int").commit(), RED),
}


@pytest.mark.parametrize("name", WORK)
def test_nothing_that_the_catalog_names_is_lost(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, after = WORK[name]
    for at in range(1, 100):
        folder = tmp_path / str(at)
        table = frazil.connect(folder).create_table("shop.things", rows(1, 4))
        gate = Gate(at=at)
        disk = Disk(folder=folder, gate=gate)
        with monkeypatch.context() as patch:
            patch.setattr(local, "_synced", set())
            disk.watch(patch)
            with contextlib.suppress(Crash, CommitUnknown):
                work(gated(table, gate))
        disk.lose_what_is_not_synced()
        left = frazil.connect(folder).load_table("shop.things")
        assert content(left) in (RED, after)
        assert not left.check(deep=True).problems
        if gate.passed < at:
            assert content(left) == after
            assert at > 10  # files, folders and the catalog were all asked for something
            return
    raise AssertionError("the work does not end")


def test_files_then_folders_then_the_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = frazil.connect(tmp_path / "warehouse").create_table("shop.things", rows(0, 1).schema)
    disk = Disk(folder=tmp_path, gate=Gate())
    head = table._handle.head
    swap = head.swap

    def swap_last(base: object, draft: object) -> object:
        assert not disk.bytes
        assert not disk.names
        disk.trace.append("catalog")
        return swap(base, draft)  # type: ignore[arg-type]

    monkeypatch.setattr(head, "swap", swap_last)
    disk.watch(monkeypatch)
    table.append(rows(0, 1))
    place = Path(table.location.removeprefix("file://"))
    trace = [os.path.relpath(path, place) for path in disk.trace[:-1]]
    (data,) = (path for path in trace if path.startswith("data/"))
    (root,) = (path for path in trace if path.startswith("metadata/"))
    # The data folder is new, so the folder above it is synced as well.
    assert trace == [data, "data", ".", root, "metadata"]
    assert disk.trace[-1] == "catalog"


def test_a_commit_syncs_two_files_and_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = frazil.connect(tmp_path / "warehouse").create_table("shop.things", rows(0, 1).schema)
    table.append(rows(0, 1))
    disk = Disk(folder=tmp_path, gate=Gate())
    disk.watch(monkeypatch)
    for first in range(5):
        disk.trace.clear()
        table.append(rows(first, first + 1))
        assert len(disk.trace) == 4


def test_a_new_warehouse_is_durable_with_its_first_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(folder=tmp_path, gate=Gate())
    with monkeypatch.context() as patch:
        patch.setattr(local, "_synced", set())
        disk.watch(patch)
        catalog = frazil.connect(tmp_path / "new" / "warehouse")
        catalog.create_table("shop.things", rows(0, 1))
        catalog.close()
    disk.lose_what_is_not_synced()
    with frazil.connect(tmp_path / "new" / "warehouse") as again:
        assert content(again.load_table("shop.things")) == {0: "red"}
