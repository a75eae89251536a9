"""`catalog.sql` as a whole: threads, many calls, results that outlive each other."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import frazil


@pytest.fixture
def catalog(tmp_path: Path) -> frazil.Catalog:
    made = frazil.connect(tmp_path / "w")
    made.sql("CREATE TABLE s.t (id BIGINT, n BIGINT)")
    made.sql("INSERT INTO s.t SELECT i, i % 10 FROM range(1000) r(i)")
    return made


def test_threads_share_a_catalog(catalog: frazil.Catalog) -> None:
    def count(n: int) -> int:
        found = catalog.sql("SELECT count(*) AS c FROM s.t WHERE n = ?", [n % 10]).to_pylist()
        return int(found[0]["c"])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count, range(40))) == [100] * 40


def test_results_are_independent_of_each_other(catalog: frazil.Catalog) -> None:
    first, second = (catalog.sql(f"SELECT id FROM s.t WHERE n = {n}") for n in (1, 2))
    pairs = zip(first, second, strict=True)
    assert all(a["id"] + 1 == b["id"] for a, b in pairs)


def test_a_result_shows_the_state_it_was_made_on(catalog: frazil.Catalog) -> None:
    result = catalog.sql("SELECT count(*) AS c FROM s.t")
    catalog.sql("DELETE FROM s.t WHERE n = 3")
    assert result.to_pylist() == [{"c": 1000}]
    assert catalog.sql("SELECT count(*) AS c FROM s.t").to_pylist() == [{"c": 900}]


def test_a_result_that_is_gone_holds_nothing(catalog: frazil.Catalog) -> None:
    gc.disable()
    try:
        result = catalog.sql("SELECT * FROM s.t")
        result.to_arrow()
        kept = weakref.ref(result._keep)
        del result
        assert kept() is None
    finally:
        gc.enable()


def test_a_result_becomes_every_kind_of_frame(catalog: frazil.Catalog) -> None:
    result = catalog.sql("SELECT id, n FROM s.t WHERE id < 3 ORDER BY id")
    expected = {"id": [0, 1, 2], "n": [0, 1, 2]}
    assert result.to_arrow().to_pydict() == expected
    assert result.to_pandas().to_dict("list") == expected
    assert result.to_polars().to_dict(as_series=False) == expected
    assert result.to_duckdb().fetchall() == [(0, 0), (1, 1), (2, 2)]
    lazy = catalog.sql("SELECT id FROM s.t").to_duckdb()
    assert lazy.filter("id = 7").fetchall() == [(7,)]


def test_changes_are_published_by_their_wap_id(tmp_path: Path) -> None:
    catalog = frazil.connect(tmp_path)
    catalog.sql("CREATE TABLE shop.orders (id BIGINT); INSERT INTO shop.orders VALUES (1)")
    audit = catalog["shop.orders"].branch("audit", create=True)
    audit.append([{"id": 2}], summary={"wap.id": "nightly"})
    audit.append([{"id": 3}], summary={"wap.id": "later"})
    catalog.sql("CALL system.publish_changes('shop.orders', 'nightly')")
    published = catalog.sql("SELECT id FROM shop.orders ORDER BY id").to_arrow()
    assert published["id"].to_pylist() == [1, 2]
    with pytest.raises(frazil.FrazilError, match="already"):
        catalog.sql("CALL system.publish_changes('shop.orders', 'nightly')")
