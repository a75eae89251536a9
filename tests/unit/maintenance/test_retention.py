"""Which snapshots and refs are due: Iceberg's retention rules."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from frazil.errors import InvalidInput
from frazil.format.metadata.metadata import (
    RefKind,
    Snapshot,
    SnapshotId,
    SnapshotRef,
    TableMetadata,
    new_table,
)
from frazil.iceberg.schema import Schema
from frazil.iceberg.types import LongType, NestedField
from frazil.maintenance.retention import Retention, chosen, due

NOW = 1_000_000


def _snapshot(id: int, parent: int | None, *, at: int) -> Snapshot:
    return Snapshot(
        snapshot_id=SnapshotId(id),
        parent_snapshot_id=None if parent is None else SnapshotId(parent),
        sequence_number=id,
        timestamp_ms=at,
        root_manifest=f"metadata/root-{id}.parquet",
    )


def _metadata(**refs: SnapshotRef) -> TableMetadata:
    made = new_table(
        schema=Schema(NestedField(1, "id", LongType())),
        location="file:///t",
        table_uuid=uuid.UUID(int=1),
        now_ms=0,
    )
    for name, ref in refs.items():
        made = made.with_ref(name, ref, now_ms=0)
    return made


def _ref(id: int, kind: RefKind = RefKind.BRANCH, **rules: Any) -> SnapshotRef:
    return SnapshotRef(snapshot_id=SnapshotId(id), kind=kind, **rules)


def _rules(*, older_than: int, keep_last: int = 1, **properties: str) -> Retention:
    return Retention.of(properties, now_ms=NOW, older_than_ms=older_than, keep_last=keep_last)


CHAIN = [_snapshot(id, id - 1 or None, at=id * 100) for id in range(1, 6)]


def _ids(found: tuple[Snapshot, ...]) -> list[int]:
    return [int(snapshot.snapshot_id) for snapshot in found]


def test_old_snapshots_of_a_branch_go_and_its_tip_stays() -> None:
    found = due(_metadata(main=_ref(5)), CHAIN, _rules(older_than=10_000))
    assert _ids(found.snapshots) == [1, 2, 3, 4]


def test_young_snapshots_stay() -> None:
    found = due(_metadata(main=_ref(5)), CHAIN, _rules(older_than=300))
    assert _ids(found.snapshots) == [1, 2]


def test_so_many_stay_however_old() -> None:
    found = due(_metadata(main=_ref(5)), CHAIN, _rules(older_than=10_000, keep_last=3))
    assert _ids(found.snapshots) == [1, 2]


def test_a_tag_keeps_its_snapshot_alone() -> None:
    metadata = _metadata(main=_ref(5), then=_ref(2, RefKind.TAG))
    found = due(metadata, CHAIN, _rules(older_than=10_000))
    assert _ids(found.snapshots) == [1, 3, 4]


def test_a_branch_has_rules_of_its_own() -> None:
    side = [*CHAIN, _snapshot(6, 3, at=600), _snapshot(7, 6, at=700)]
    metadata = _metadata(main=_ref(5), side=_ref(7, min_snapshots_to_keep=2))
    assert _ids(due(metadata, side, _rules(older_than=10_000)).snapshots) == [1, 2, 3, 4]
    young = _metadata(main=_ref(5), side=_ref(7, max_snapshot_age_ms=NOW - 300))
    assert _ids(due(young, side, _rules(older_than=10_000)).snapshots) == [1, 2, 4]


def test_what_no_ref_leads_to_goes_when_it_is_old() -> None:
    stray = [*CHAIN, _snapshot(6, 2, at=600)]
    metadata = _metadata(main=_ref(5))
    assert 6 not in _ids(due(metadata, stray, _rules(older_than=500)).snapshots)
    assert 6 in _ids(due(metadata, stray, _rules(older_than=700)).snapshots)


def test_refs_can_grow_too_old_but_main_cannot() -> None:
    metadata = _metadata(
        main=_ref(5, max_ref_age_ms=1),
        old=_ref(2, RefKind.TAG, max_ref_age_ms=NOW - 500),
        kept=_ref(1, RefKind.TAG),
    )
    found = due(metadata, CHAIN, _rules(older_than=10_000))
    assert found.refs == ("old",)
    assert _ids(found.snapshots) == [2, 3, 4]


def test_properties_state_the_rules() -> None:
    rules = Retention.of(
        {
            "history.expire.max-snapshot-age-ms": "1000",
            "history.expire.min-snapshots-to-keep": "4",
            "history.expire.max-ref-age-ms": "5000",
        },
        now_ms=NOW,
    )
    assert (rules.older_than_ms, rules.keep_last, rules.max_ref_age_ms) == (NOW - 1000, 4, 5000)
    usual = Retention.of({}, now_ms=NOW)
    assert (usual.older_than_ms, usual.keep_last) == (NOW - 432_000_000, 1)
    with pytest.raises(InvalidInput, match=r"history\.expire"):
        Retention.of({"history.expire.min-snapshots-to-keep": "few"}, now_ms=NOW)
    with pytest.raises(InvalidInput, match="keep_last"):
        Retention.of({}, now_ms=NOW, keep_last=0)


def test_chosen_snapshots_must_be_there_and_have_no_name() -> None:
    metadata = _metadata(main=_ref(5), then=_ref(2, RefKind.TAG))
    assert _ids(chosen(metadata, CHAIN, [3, 1]).snapshots) == [1, 3]
    with pytest.raises(InvalidInput, match="then"):
        chosen(metadata, CHAIN, [2])
    with pytest.raises(InvalidInput, match="no snapshot 9"):
        chosen(metadata, CHAIN, [9])
