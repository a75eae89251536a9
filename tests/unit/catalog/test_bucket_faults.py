"""A catalog in a bucket when requests fail before or after their effect, and when writers die."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from frazil.catalog.names import Identifier
from frazil.catalog.objects import conditional_put, names
from frazil.catalog.objects.object_catalog import ObjectCatalog
from frazil.commit.head import Landed, Lost, Unknown
from frazil.errors import AlreadyExists, FrazilError, NotFound, StorageError, Unsupported
from frazil.storage.base import ObjectVersion, PreconditionFailed, StoreBusy
from tests.support.catalogs import append, append_and_land, orders
from tests.support.folder_bucket import FolderBucket, bucket_storages, no_fault

VIEW = {"view-uuid": "f3a0c6f0-6d0e-4c36-9d0a-0d3a4b3f1c11", "format-version": 1}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional_put, "_MAX_WAIT_S", 0.001)
    monkeypatch.setattr(conditional_put, "_MIN_WAIT_S", 0.001)


@pytest.fixture
def catalog(tmp_path: Path) -> ObjectCatalog:
    catalog = opened(tmp_path)
    catalog.namespaces.create("shop")
    quiet = {"write.metadata.json-every": "0"}
    catalog.create_table("shop.orders", orders(catalog.location_for("shop.orders"), quiet))
    return catalog


def opened(folder: Path, fault: Callable[[str, str], None] = no_fault) -> ObjectCatalog:
    return ObjectCatalog(str(folder / "warehouse"), storages=bucket_storages(folder, fault))


@dataclass(slots=True)
class Faults:
    """Raises errors at requests for a head: the first ones before, others after their effect."""

    before: list[Exception] = field(default_factory=list)
    after: list[Exception] = field(default_factory=list)
    between: Callable[[], None] | None = None

    def __call__(self, verb: str, path: str) -> None:
        if not path.endswith("head.json"):
            return
        if verb == "put" and self.before:
            raise self.before.pop(0)
        if verb == "after put" and self.after:
            error = self.after.pop(0)
            if self.between is not None:
                self.between()
            raise error


def snapshot_ids(folder: Path) -> list[int]:
    return [int(each.snapshot_id) for each in opened(folder).load("shop.orders").snapshots()]


@pytest.mark.parametrize(
    "error", [StorageError("reset"), PreconditionFailed("412"), AlreadyExists("412"), StoreBusy("")]
)
def test_a_swap_whose_reply_is_lost_has_landed_once(
    catalog: ObjectCatalog, tmp_path: Path, error: FrazilError
) -> None:
    faults = Faults(after=[error])
    head = opened(tmp_path, faults).load("shop.orders")
    outcome = head.swap(head.state, append(head.state, 1))
    assert isinstance(outcome, Landed)
    assert faults.after == []
    assert snapshot_ids(tmp_path) == [1]
    assert append_and_land(head, 2).version == 2


def test_a_lost_reply_is_resolved_when_others_have_committed_since(
    catalog: ObjectCatalog, tmp_path: Path
) -> None:
    def others() -> None:
        head = opened(tmp_path).load("shop.orders")
        for number in range(100, 110):
            append_and_land(head, number)

    head = opened(tmp_path, Faults(after=[StorageError("reset")], between=others)).load(
        "shop.orders"
    )
    outcome = head.swap(head.state, append(head.state, 1))
    assert isinstance(outcome, Landed)
    assert outcome.states[0].version == 1
    assert snapshot_ids(tmp_path) == [1, *range(100, 110)]
    assert head.load().version == 11


def test_more_versions_than_a_head_remembers_leave_a_doubt(
    catalog: ObjectCatalog, tmp_path: Path
) -> None:
    def others() -> None:
        head = opened(tmp_path).load("shop.orders")
        state = head.load()
        for number in range(100, 358):
            outcome = head.swap(state, append(state, number))
            assert isinstance(outcome, Landed)
            (state,) = outcome.states

    head = opened(tmp_path, Faults(after=[StorageError("reset")], between=others)).load(
        "shop.orders"
    )
    outcome = head.swap(head.state, append(head.state, 1))
    assert isinstance(outcome, Unknown)
    assert head.landed(1) is not None


def test_requests_that_never_arrive_and_a_busy_store_are_waited_for(
    catalog: ObjectCatalog, tmp_path: Path
) -> None:
    errors: list[Exception] = [StorageError("reset"), *(StoreBusy("SlowDown") for _ in range(20))]
    head = opened(tmp_path, Faults(before=errors)).load("shop.orders")
    assert isinstance(head.swap(head.state, append(head.state, 1)), Landed)
    assert snapshot_ids(tmp_path) == [1]


def test_a_store_that_stays_away_leaves_a_doubt_and_nothing_else(
    catalog: ObjectCatalog, tmp_path: Path
) -> None:
    errors: list[Exception] = [StorageError("reset")] * 4
    head = opened(tmp_path, Faults(before=errors)).load("shop.orders")
    assert isinstance(head.swap(head.state, append(head.state, 1)), Unknown)
    assert head.landed(1) is None
    assert snapshot_ids(tmp_path) == []


def test_another_writer_who_was_first_wins(catalog: ObjectCatalog, tmp_path: Path) -> None:
    head = opened(tmp_path).load("shop.orders")
    append_and_land(opened(tmp_path).load("shop.orders"), 5)
    assert isinstance(head.swap(head.state, append(head.state, 1)), Lost)
    assert snapshot_ids(tmp_path) == [5]


def test_a_rename_or_an_export_does_not_lose_a_commit(
    catalog: ObjectCatalog, tmp_path: Path
) -> None:
    head = opened(tmp_path).load("shop.orders")
    base = head.state
    catalog.rename("shop.orders", "shop.sales")
    catalog.load("shop.sales").export()
    assert isinstance(head.swap(base, append(base, 1)), Landed)
    state = opened(tmp_path).load("shop.sales").state
    assert state.version == 1
    assert state.metadata_location is not None


def test_a_stalled_writer_cannot_bring_a_dropped_table_back(
    catalog: ObjectCatalog, tmp_path: Path
) -> None:
    head = opened(tmp_path).load("shop.orders")
    base = head.state
    catalog.purge("shop.orders")
    assert isinstance(head.swap(base, append(base, 1)), Lost)
    with pytest.raises(NotFound):
        head.load()
    assert opened(tmp_path).list_tables("shop") == []


# Writers that die


class Died(BaseException):
    """A process that ends at a request."""


@dataclass(slots=True)
class Death:
    """Ends the process at the n-th request."""

    at: int
    count: int = 0

    def __call__(self, verb: str, path: str) -> None:
        self.count += 1
        if self.count == self.at:
            raise Died


def create(catalog: ObjectCatalog) -> None:
    catalog.create_table("shop.sales", orders(f"{catalog.warehouse}/shop/sales"))


def rename(catalog: ObjectCatalog) -> None:
    catalog.rename("shop.orders", "shop.sales")


def drop(catalog: ObjectCatalog) -> None:
    catalog.drop("shop.orders")


def rename_view(catalog: ObjectCatalog) -> None:
    catalog.views.rename("shop.cheap", "shop.bargains")


@pytest.mark.parametrize("operation", [create, rename, drop, rename_view])
def test_whoever_dies_at_any_request_leaves_a_catalog_that_works(
    tmp_path: Path, operation: Callable[[ObjectCatalog], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    at, is_done = 0, False
    while not is_done:
        at += 1
        folder = tmp_path / f"run {at}"
        folder.mkdir()
        catalog = opened(folder)
        catalog.namespaces.create("shop")
        catalog.create_table("shop.orders", orders(catalog.location_for("shop.orders")))
        append_and_land(catalog.load("shop.orders"), 1)
        catalog.views.create("shop.cheap", VIEW)
        dying = opened(folder)
        bucket = dying.storage("")
        assert isinstance(bucket, FolderBucket)
        bucket.fault = Death(at)
        try:
            operation(dying)
            is_done = True
        except Died:
            pass
        check(folder, operation)
        # Whatever was left behind can be taken over after ten minutes.
        monkeypatch.setattr(names, "MAX_CLAIM_MS", -1)
        later = opened(folder)
        for name in ("shop.orders", "shop.sales"):
            if not later.table_exists(name):
                later.create_table(name, orders(later.location_for(name)))
        assert [each.name for each in later.list_tables("shop")] == ["orders", "sales"]
        monkeypatch.undo()
    assert at > 4


def check(folder: Path, operation: Callable[[ObjectCatalog], None]) -> None:
    """What must hold, whenever a writer died."""
    catalog = opened(folder)
    tables = [name for name in ("shop.orders", "shop.sales") if catalog.table_exists(name)]
    if operation is rename:
        assert len(tables) == 1  # under exactly one name, with its rows
        head = catalog.load(tables[0])
        assert [int(each.snapshot_id) for each in head.snapshots()] == [1]
        append_and_land(head, 2)
    elif operation is create:
        assert "shop.orders" in tables
    elif operation is drop:
        assert tables in (["shop.orders"], [])
    views = [name for name in ("shop.cheap", "shop.bargains") if catalog.views.exists(name)]
    assert views  # a view that is renamed may have two names, never none


def test_a_claim_of_a_stalled_rename_is_taken_over_and_never_confirmed(
    catalog: ObjectCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The renamer stops before it swaps the head; ten minutes later another takes the name; then
    the renamer goes on."""
    stalled, go_on = threading.Event(), threading.Event()

    def wait(verb: str, path: str) -> None:
        if verb == "put" and path.endswith("head.json"):
            stalled.set()
            assert go_on.wait(10)

    outcome: list[BaseException | None] = []

    def renaming() -> None:
        try:
            opened(tmp_path, wait).rename("shop.orders", "shop.sales")
            outcome.append(None)
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=renaming)
    thread.start()
    assert stalled.wait(10)
    other = opened(tmp_path)
    with pytest.raises(AlreadyExists, match="being renamed"):
        other.create_table("shop.sales", orders(other.location_for("shop.sales")))
    monkeypatch.setattr(names, "MAX_CLAIM_MS", -1)
    taken = other.create_table("shop.sales", orders(other.location_for("shop.sales")))
    go_on.set()
    thread.join()
    assert isinstance(outcome[0], AlreadyExists)
    fresh = opened(tmp_path)
    assert [each.name for each in fresh.list_tables("shop")] == ["orders", "sales"]
    assert fresh.load("shop.sales").state == taken.load()
    assert fresh.load("shop.orders").state.version == 0


# Stores that do not keep their word


class Lying(FolderBucket):
    """A store that ignores a condition."""

    def __init__(self, lock: str, ignored: str) -> None:
        super().__init__(lock)
        self.ignored = ignored

    def put_new(self, path: str, data: bytes) -> ObjectVersion:
        if self.ignored == "If-None-Match":
            self.delete(path)
        return super().put_new(path, data)

    def put_if(self, path: str, data: bytes, version: ObjectVersion) -> ObjectVersion:
        if self.ignored == "If-Match":
            stored = self.get(path)
            assert stored is not None
            version = stored.version
        return super().put_if(path, data, version)


@pytest.mark.parametrize("ignored", ["If-None-Match", "If-Match"])
def test_a_store_that_ignores_conditions_is_refused(tmp_path: Path, ignored: str) -> None:
    bucket = Lying(str(tmp_path / "lock"), ignored)
    catalog = ObjectCatalog(str(tmp_path / "warehouse"), storages=lambda _: bucket)
    with pytest.raises(Unsupported, match=f"{ignored}.*read_only=True"):
        catalog.namespaces.create("shop")
    assert not list((tmp_path / "warehouse").rglob("*.json"))


def test_a_catalog_opened_for_reading_changes_nothing(
    catalog: ObjectCatalog, tmp_path: Path
) -> None:
    warehouse = str(tmp_path / "warehouse")
    reader = ObjectCatalog(warehouse, storages=bucket_storages(tmp_path), read_only=True)
    head = reader.load("shop.orders")
    for change in (
        lambda: reader.namespaces.create("other"),
        lambda: reader.drop("shop.orders"),
        lambda: reader.rename("shop.orders", "shop.sales"),
        lambda: head.swap(head.state, append(head.state, 1)),
        lambda: reader.storage(warehouse).write_new(f"{warehouse}/x", b""),
    ):
        with pytest.raises(Unsupported, match="read_only=True"):
            change()
    assert snapshot_ids(tmp_path) == []


def test_nothing_is_created_until_something_is_defined(tmp_path: Path) -> None:
    catalog = opened(tmp_path)
    assert catalog.namespaces.children() == []
    assert not catalog.table_exists("shop.orders")
    with pytest.raises(NotFound):
        catalog.load("shop.orders")
    assert not (tmp_path / "warehouse").exists()
    assert not catalog.marker.exists


@pytest.mark.parametrize(
    ("one", "other"),
    [(("shop", "eu"), ("shop.eu",)), (("a=2Eb",), ("a.b",)), (("é",), ("=C3=A9",))],
)
def test_namespaces_that_look_alike_are_told_apart(
    catalog: ObjectCatalog, one: tuple[str, ...], other: tuple[str, ...]
) -> None:
    for namespace in (one, other):
        catalog.namespaces.create(namespace)
        catalog.create_table((*namespace, "t"), orders(catalog.location_for((*namespace, "t"))))
    for namespace in (one, other):
        assert catalog.list_tables(namespace) == [Identifier(namespace=namespace, name="t")]
