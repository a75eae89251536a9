"""Long histories of tables in a bucket: what the head holds, what moves out, what expires."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from frazil.catalog.backend import TableHead
from frazil.catalog.objects.object_catalog import ObjectCatalog
from frazil.catalog.objects.object_head import ObjectHead
from frazil.commit.head import Draft, Landed
from frazil.errors import NotFound
from frazil.format.metadata.metadata import RefKind, SnapshotId, SnapshotRef
from tests.support.catalogs import append, append_and_land, long_history, orders
from tests.support.folder_bucket import bucket_storages
from tests.support.memory_catalog import MemoryCatalog


@pytest.fixture
def catalog(tmp_path: Path) -> ObjectCatalog:
    catalog = ObjectCatalog(str(tmp_path / "warehouse"), storages=bucket_storages(tmp_path))
    catalog.namespaces.create("shop")
    return catalog


def made(catalog: ObjectCatalog, **properties: str) -> TableHead:
    quiet = {"write.metadata.json-every": "0", **properties}
    return catalog.create_table("shop.orders", orders(catalog.location_for("shop.orders"), quiet))


def head_json(head: TableHead) -> dict[str, object]:
    assert isinstance(head, ObjectHead)
    document: dict[str, object] = json.loads(Path(head.object_path).read_bytes())
    return document


def test_a_head_holds_at_most_64_snapshots_and_the_rest_is_found_in_objects(
    catalog: ObjectCatalog,
) -> None:
    head = made(catalog)
    for number in range(1, 131):
        append_and_land(head, number)
        held = head_json(head)["snapshots"]
        assert isinstance(held, list)
        assert len(held) <= 64
    again = catalog.load("shop.orders")
    assert [int(each.snapshot_id) for each in again.snapshots()] == list(range(1, 131))
    assert [int(e.snapshot_id) for e in again.history().snapshot_log] == list(range(1, 131))
    assert int(again.snapshot(3).snapshot_id) == 3
    assert again.landed(3) == again.state
    assert again.landed(999) is None
    # append_and_land commits at 1010, 1020, …
    assert [again.snapshot_id_as_of(at) for at in (1_009, 1_010, 1_015, 2_299, 9_999)] == [
        None,
        1,
        1,
        129,
        130,
    ]


def test_most_commits_write_one_object(catalog: ObjectCatalog) -> None:
    head = made(catalog)
    store = catalog.storage(head.state.metadata.location)
    writes = []
    for number in range(1, 201):
        base = head.load()
        with store.recording() as calls:
            assert isinstance(head.swap(base, append(base, number)), Landed)
        writes.append(sum(call.verb == "write" for call in calls))
    # 64 fit; then every 33rd commit moves the older ones out with one object more.
    assert writes.count(1) == 195
    assert writes.count(2) == 5
    assert [at + 1 for at, count in enumerate(writes) if count == 2] == [65, 98, 131, 164, 197]


def test_small_objects_become_one_of_at_most_a_thousand(
    catalog: ObjectCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frazil.catalog.objects import history_objects

    monkeypatch.setattr(history_objects, "MAX_RECENT", 8)
    monkeypatch.setattr(history_objects, "KEPT_RECENT", 4)
    monkeypatch.setattr(history_objects, "MAX_SNAPSHOTS", 40)
    head = made(catalog)
    for number in range(1, 301):
        append_and_land(head, number)
    history = head_json(head)["history"]
    assert isinstance(history, list)
    assert all(each["snapshots"] <= 40 for each in history)
    assert len(history) <= 300 // 36 + 8
    assert [int(each.snapshot_id) for each in head.snapshots()] == list(range(1, 301))


def test_a_table_with_a_long_history_is_entered_whole(catalog: ObjectCatalog) -> None:
    location = catalog.location_for("shop.orders")
    metadata, history = long_history(orders(location), 2_500)
    head = catalog.create_table("shop.orders", metadata, history)
    counts = head_json(head)["history"]
    assert isinstance(counts, list)
    assert [each["snapshots"] for each in counts] == [1000, 1000, 468]
    assert head.history().snapshots == history.snapshots
    assert head.history().snapshot_log == history.snapshot_log
    assert append_and_land(head, 9_999).metadata.current_snapshot_id == 9_999


def test_expiry_rewrites_an_object_when_half_of_it_is_gone(catalog: ObjectCatalog) -> None:
    head = made(catalog)
    for number in range(1, 101):
        append_and_land(head, number)  # 1 to 33 and 34 to 66 are in objects
    before = head_json(head)["history"]
    assert isinstance(before, list)
    assert [each["snapshots"] for each in before] == [33, 33]
    expire(head, [5])
    after = head_json(head)["history"]
    assert isinstance(after, list)
    assert after[0] == {**before[0], "removed-snapshot-ids": [5]}
    expire(head, range(1, 20))
    last = head_json(head)["history"]
    assert isinstance(last, list)
    assert last[0]["object"] != before[0]["object"]
    assert (last[0]["snapshots"], last[0]["removed-snapshot-ids"]) == (14, [])
    assert last[1] == before[1]
    expire(head, range(20, 34))
    rest = head_json(head)["history"]
    assert isinstance(rest, list)
    assert rest == [before[1]]
    assert [int(each.snapshot_id) for each in head.snapshots()] == list(range(34, 101))
    assert [int(e.snapshot_id) for e in head.history().snapshot_log] == list(range(34, 101))
    with pytest.raises(NotFound):
        head.snapshot(5)


def expire(head: TableHead, numbers: object) -> None:
    base = head.load()
    gone = tuple(
        number
        for number in numbers  # type: ignore[attr-defined]
        if any(int(each.snapshot_id) == number for each in head.snapshots())
    )
    kept = replace(base.metadata, last_updated_ms=base.metadata.last_updated_ms + 1)
    outcome = head.swap(base, Draft(metadata=kept, removed_snapshot_ids=gone))
    assert isinstance(outcome, Landed)


def test_a_tag_on_an_old_snapshot_comes_with_the_head(catalog: ObjectCatalog) -> None:
    head = made(catalog)
    for number in range(1, 101):
        append_and_land(head, number)
    tag(head, "old", 2)
    fresh = catalog.load("shop.orders")
    assert {int(number) for number in fresh.state.snapshots} == {2, 100}
    store = catalog.storage(head.state.metadata.location)
    with store.recording() as calls:
        again = catalog.load("shop.orders")
    assert [call.verb for call in calls] == ["read"]
    tip = again.state.tip("old")
    assert tip is not None
    assert int(tip.snapshot_id) == 2


def tag(head: TableHead, name: str, number: int) -> None:
    base = head.load()
    ref = SnapshotRef(snapshot_id=SnapshotId(number), kind=RefKind.TAG)
    now_ms = base.metadata.last_updated_ms + 1
    draft = Draft(metadata=base.metadata.with_ref(name, ref, now_ms=now_ms))
    assert isinstance(head.swap(base, draft), Landed)


def test_many_refs_and_many_columns_are_objects_of_their_own(catalog: ObjectCatalog) -> None:
    head = made(catalog, comment="x" * 50_000)
    append_and_land(head, 1)
    definition = head_json(head)["definition"]
    assert isinstance(definition, dict)
    assert list(definition) == ["object"]
    base = head.load()
    ref = SnapshotRef(snapshot_id=SnapshotId(1), kind=RefKind.TAG)
    tags = {f"a tag with a rather long name, number {number}": ref for number in range(600)}
    tagged = replace(base.metadata, refs={**base.metadata.refs, **tags})
    assert isinstance(head.swap(base, Draft(metadata=tagged)), Landed)
    refs = head_json(head)["refs"]
    assert isinstance(refs, dict)
    assert list(refs) == ["object"]
    assert head_json(head)["definition"] == definition  # it has not changed, so it was not written
    assert Path(getattr(head, "object_path", "")).stat().st_size < 40_000
    fresh = catalog.load("shop.orders")
    assert fresh.state == head.state
    assert len(fresh.state.metadata.refs) == 601


def test_random_commits_expiries_and_rollbacks_leave_what_a_model_has(
    catalog: ObjectCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frazil.catalog.objects import history_objects

    monkeypatch.setattr(history_objects, "MAX_RECENT", 6)
    monkeypatch.setattr(history_objects, "KEPT_RECENT", 3)
    monkeypatch.setattr(history_objects, "MAX_SNAPSHOTS", 12)
    model = MemoryCatalog(warehouse=str(tmp_path / "model"))
    model.namespaces.create("shop")
    metadata = orders(f"{tmp_path}/warehouse/orders", {"write.metadata.json-every": "0"})
    heads = [catalog.create_table("shop.orders", metadata)]
    heads += [model.create_table("shop.orders", metadata)]
    chance = random.Random(7)
    for number in range(1, 150):
        state = heads[1].load()
        kept = [int(each.snapshot_id) for each in heads[1].snapshots()]
        named = {int(ref.snapshot_id) for ref in state.metadata.refs.values()}
        action = chance.choice(["append", "append", "append", "expire", "tag", "back", "untag"])
        now_ms = state.metadata.last_updated_ms + 10
        if action == "expire":
            gone = [each for each in kept if each not in named and chance.random() < 0.3]
            later = replace(state.metadata, last_updated_ms=now_ms)
            draft = Draft(metadata=later, removed_snapshot_ids=tuple(gone))
        elif action in ("tag", "back") and kept:
            kind = RefKind.TAG if action == "tag" else RefKind.BRANCH
            ref = SnapshotRef(snapshot_id=SnapshotId(chance.choice(kept)), kind=kind)
            name = f"tag {chance.randrange(3)}" if action == "tag" else "main"
            draft = Draft(metadata=state.metadata.with_ref(name, ref, now_ms=now_ms))
        elif action == "untag" and len(state.metadata.refs) > 1:
            name = chance.choice(
                [each for each in state.metadata.refs if each != "main"] or ["main"]
            )
            draft = Draft(metadata=state.metadata.without_ref(name, now_ms=now_ms))
        else:
            draft = append(state, number)
        for head in heads:
            assert isinstance(head.swap(head.load(), draft), Landed)
        fresh = catalog.load("shop.orders")
        assert fresh.history().snapshots == heads[1].history().snapshots
        assert fresh.history().snapshot_log == heads[1].history().snapshot_log
        assert fresh.state == heads[1].load()
