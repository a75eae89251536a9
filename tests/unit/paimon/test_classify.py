"""Which files of a primary-key table are plain rows, and which are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frazil.paimon.adoption.classify import Verdict, classify
from frazil.paimon.read.data_types import parse_type
from frazil.paimon.read.paimon_table import PaimonTable
from tests.unit.paimon.encode import binary_row, entry
from tests.unit.paimon.place import Place

INT = parse_type("INT")
TAKEN, LEFT_OUT, MERGED, REFUSED = Verdict.TAKEN, Verdict.LEFT_OUT, Verdict.MERGED, Verdict.REFUSED


def keyed(name: str, low: int, high: int, **changes: Any) -> dict[str, Any]:
    return entry(
        f"{name}.parquet",
        min_key=binary_row([INT], [low]),
        max_key=binary_row([INT], [high]),
        **changes,
    )


def verdicts(
    tmp_path: Path,
    entries: list[dict[str, Any]],
    options: dict[str, str] | None = None,
    *,
    merging: bool = False,
) -> list[Verdict]:
    place = Place(tmp_path / "t")
    place.schema(("k", "INT NOT NULL"), ("v", "STRING"), primaryKeys=["k"], options=options or {})
    place.snapshot(1, entries)
    found = classify(PaimonTable.open(str(place.root)).state(), merging=merging)
    return [found.classes[code].verdict for code in found.codes]


def test_a_bucket_compacted_into_one_level_is_plain_rows(tmp_path: Path) -> None:
    entries = [
        keyed("a", 1, 5, level=5),
        keyed("b", 6, 9, level=5),
        keyed("c", 1, 9, bucket=1, level=4),
    ]
    assert verdicts(tmp_path, entries) == [TAKEN, TAKEN, TAKEN]


def test_overlapping_key_ranges_need_a_merge_and_lone_files_do_not(tmp_path: Path) -> None:
    entries = [
        *(keyed("a", 1, 5), keyed("b", 5, 9), keyed("c", 10, 20), keyed("d", 30, 40, level=5)),
        *(keyed("e", 8, 9, bucket=1), keyed("f", 35, 35)),
    ]
    assert verdicts(tmp_path, entries) == [MERGED, MERGED, TAKEN, MERGED, TAKEN, MERGED]


def test_a_long_file_joins_all_files_under_it(tmp_path: Path) -> None:
    entries = [keyed("a", 1, 100), keyed("b", 2, 3), keyed("c", 50, 60), keyed("d", 101, 102)]
    assert verdicts(tmp_path, entries) == [MERGED, MERGED, MERGED, TAKEN]


def test_counted_delete_rows_need_a_merge_even_alone(tmp_path: Path) -> None:
    entries = [keyed("a", 1, 5, delete_row_count=1), keyed("b", 6, 9, delete_row_count=0)]
    assert verdicts(tmp_path, entries) == [MERGED, TAKEN]


@pytest.mark.parametrize(
    "options", [{"deletion-vectors.enabled": "true"}, {"merge-engine": "first-row"}]
)
def test_level_0_is_left_out_where_paimon_leaves_it_out(
    tmp_path: Path, options: dict[str, str]
) -> None:
    entries = [keyed("a", 1, 5, level=5), keyed("b", 2, 3, level=4), keyed("c", 1, 9)]
    assert verdicts(tmp_path, entries, options) == [TAKEN, TAKEN, LEFT_OUT]


def test_level_0_of_a_first_row_table_is_merged_in_when_merging(tmp_path: Path) -> None:
    entries = [keyed("a", 1, 5, level=5), keyed("b", 4, 9), keyed("c", 20, 30)]
    options = {"merge-engine": "first-row"}
    assert verdicts(tmp_path, entries, options, merging=True) == [MERGED, MERGED, TAKEN]


def test_level_0_that_paimon_merges_on_read_is_refused(tmp_path: Path) -> None:
    options = {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"}
    entries = [keyed("a", 1, 5, level=5), keyed("b", 4, 9)]
    assert verdicts(tmp_path, entries, options) == [TAKEN, REFUSED]


@pytest.mark.parametrize("engine", ["partial-update", "aggregation"])
def test_engines_that_combine_rows_are_refused_unless_compacted(
    tmp_path: Path, engine: str
) -> None:
    contested = [keyed("a", 1, 5), keyed("b", 4, 9)]
    assert verdicts(tmp_path / "1", contested, {"merge-engine": engine}) == [REFUSED, REFUSED]
    compacted = [keyed("a", 1, 5, level=5)]
    assert verdicts(tmp_path / "2", compacted, {"merge-engine": engine}) == [TAKEN]


def test_the_postponed_bucket_is_invisible(tmp_path: Path) -> None:
    entries = [entry("a.avro", bucket=-2), keyed("b", 1, 2, level=5)]
    assert verdicts(tmp_path, entries) == [LEFT_OUT, TAKEN]


def test_other_formats_and_partial_columns_are_refused(tmp_path: Path) -> None:
    place = Place(tmp_path / "t")
    place.schema(("k", "INT"), ("v", "STRING"))
    place.snapshot(
        1,
        [
            *(entry("a.orc"), entry("b.zstd.parquet"), entry("c.avro"), entry("d.blob")),
            entry("e.parquet", write_cols=["v"]),
            entry("f.parquet", write_cols=["k", "v", "_ROW_ID", "_SEQUENCE_NUMBER"]),
        ],
    )
    found = classify(PaimonTable.open(str(place.root)).state())
    assert [found.classes[code].verdict for code in found.codes] == [
        *(TAKEN, TAKEN, REFUSED, REFUSED, REFUSED, TAKEN)
    ]
    reasons = {found.classes[code].reason for code in found.codes}
    assert "data file format 'avro' is not read" in reasons


def test_files_with_the_same_row_ids_are_refused(tmp_path: Path) -> None:
    place = Place(tmp_path / "t")
    place.schema(("k", "INT"), ("v", "STRING"))
    ids = {"a": 0, "b": 10, "c": 19, "d": 30, "e": 0}
    files = [entry(f"{name}.parquet", row_count=10) for name in ids]
    for file, first in zip(files, ids.values(), strict=True):
        file["_FILE"]["_FIRST_ROW_ID"] = first
    place.snapshot(1, files)
    found = classify(PaimonTable.open(str(place.root)).state())
    assert [found.classes[code].verdict for code in found.codes] == [
        *(REFUSED, REFUSED, REFUSED, TAKEN, REFUSED)
    ]
    assert "_FIRST_ROW_ID" in next(c.reason for c in found.classes if c.verdict is REFUSED)
