"""How many delete manifests a plan opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.filter.text.filter_text import parse
from frazil.iceberg.partitioning import PartitionField, PartitionSpec
from frazil.iceberg.transforms import IdentityTransform
from frazil.scan.plan import plan
from frazil.tree.read import TreeReader
from tests.support.legacy_deletes import COUNTRIES, SCHEMA, DeleteTable, with_delete_manifests

MANIFESTS = 1_000
BY_COUNTRY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "country"))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeleteTable:
    """A v2 table: 10 countries with a data manifest each, 100 delete manifests per country."""
    return with_delete_manifests(tmp_path_factory.mktemp("t"), spec=BY_COUNTRY, manifests=MANIFESTS)


def _opened(table: DeleteTable, where: str) -> tuple[int, int, int]:
    """Data files left, delete files that apply, and delete manifests opened."""
    reader: TreeReader = table.reader()
    with reader.storage.recording() as calls:
        found = plan(reader, table.snapshot, where=parse(where, SCHEMA))
    deletes = {rows for matched in found.matches.values() for rows in matched}
    opened = {call.path for call in calls if "/deletes-" in call.path}
    return found.files.num_rows, len(deletes), len(opened)


def test_a_partition_opens_its_own(table: DeleteTable) -> None:
    per_country = MANIFESTS // len(COUNTRIES)
    assert _opened(table, "country = 'AT'") == (1, per_country, per_country)


def test_all_are_opened_where_all_apply(table: DeleteTable) -> None:
    assert _opened(table, "id >= 0") == (len(COUNTRIES), MANIFESTS, MANIFESTS)


def test_none_is_opened_where_no_file_is_left(table: DeleteTable) -> None:
    assert _opened(table, "country = 'XX'") == (0, 0, 0)


def test_deletes_older_than_every_file_left_stay_closed(tmp_path: Path) -> None:
    table = with_delete_manifests(tmp_path, spec=BY_COUNTRY, manifests=20, data_age=11)
    # Delete manifests are of sequence numbers 1 to 20, data files of 11. One of 11 may hold
    # position deletes, which apply to files of their own age; its equality delete does not.
    files, deletes, opened = _opened(table, "id >= 0")
    assert (files, deletes, opened) == (len(COUNTRIES), 9, 10)
