"""The operations whose walks are on the page of architecture, as they are run to record them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
import frazil.spark
from frazil import serve
from tests.docs.pages import DOCS
from tests.support.walks import Walk, recorded

PAGE = DOCS / "architecture.md"
MERGE = (
    "MERGE INTO shop.orders USING (SELECT 1 AS id, 'b' AS country) s ON orders.id = s.id "
    "WHEN MATCHED THEN UPDATE SET country = s.country WHEN NOT MATCHED THEN INSERT *"
)
SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string())])


def _catalog(folder: Path) -> frazil.Catalog:
    catalog = frazil.connect(folder / "warehouse")
    catalog.create_table("shop.orders", pa.table({"id": [1, 2], "country": ["de", "fr"]}))
    return catalog


def append(folder: Path) -> Walk:
    """`table.append`."""
    with _catalog(folder) as catalog:
        table = catalog.load_table("shop.orders")
        table.append([{"id": 3, "country": "it"}])
        with recorded() as walk:
            table.append([{"id": 4, "country": "es"}])
    return walk


def scan(folder: Path) -> Walk:
    """`table.scan`, read to the end."""
    with _catalog(folder) as catalog:
        table = catalog.load_table("shop.orders")
        table.scan("id > 0").to_arrow()
        with recorded() as walk:
            table.scan("id > 1").to_arrow()
    return walk


def sql_merge(folder: Path) -> Walk:
    """MERGE through `catalog.sql`."""
    with _catalog(folder) as catalog:
        catalog.sql(MERGE)
        with recorded() as walk:
            catalog.sql(MERGE.replace("1 AS", "2 AS"))
    return walk


def rest_commit(folder: Path) -> Walk:
    """An append of PyIceberg to a served table; only what the server does in answer."""
    from pyiceberg.catalog.rest import RestCatalog

    rows = pa.table({"id": [3], "country": ["it"]}, schema=SCHEMA)
    with _catalog(folder) as catalog, recorded() as walk, serve.start(catalog) as running:
        table = RestCatalog("frazil", uri=running.uri).load_table("shop.orders")
        table.append(rows)
        walk.ignored = frozenset({"serve.access.connections", "serve.running"})
        walk.clear()
        table.append(rows)
        walk.is_recording = False
    return walk


def spark_merge(spark: Any, folder: Path) -> Walk:
    """MERGE through Spark SQL: what Python does, which Java asks in threads of its own."""
    from frazil.spark.bridge.verbs import Answers

    walk = Walk()
    apply = Answers.apply

    def noted(answers: Answers, verb: str, request: Any) -> Any:
        before = sys.getprofile()  # an answer may ask Spark, which asks again in this thread
        sys.setprofile(walk.note)
        try:
            return apply(answers, verb, request)
        finally:
            sys.setprofile(before)

    merge = MERGE.replace("shop.orders", "frazil.shop.orders AS orders")
    with _catalog(folder) as catalog:
        frazil.spark.register(spark, catalog)
        spark.sql(merge)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Answers, "apply", noted)
            spark.sql(merge.replace("1 AS", "2 AS"))
    return walk


WALKS: dict[str, Callable[[Path], Walk]] = {
    "append": append,
    "scan": scan,
    "sql-merge": sql_merge,
    "rest-commit": rest_commit,
}


def on_page(name: str) -> str:
    """The walk that the page draws."""
    drawn = _block(name).search(PAGE.read_text(encoding="utf-8"))
    assert drawn is not None, f"docs/architecture.md has no walk called {name}"
    return drawn[2]


def draw(name: str, walk: Walk) -> None:
    """Put a walk on the page."""
    page = PAGE.read_text(encoding="utf-8")
    drawn = _block(name).sub(lambda block: block[1] + walk.drawn() + block[3], page)
    PAGE.write_text(drawn, encoding="utf-8")


def _block(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- walk: {name} -->\n\n```\n)(.*?)(```)", flags=re.DOTALL)
