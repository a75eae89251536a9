"""Pages of a table with variants: their bounds are objects, which have no place on a scale."""

from __future__ import annotations

from pathlib import Path

import frazil
from tests.serve.explorer.conftest import browse

TABLE = "/explorer/api/tables/shop/t"


def test_pages_of_a_table_with_variants_answer(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as catalog:
        catalog.sql("CREATE TABLE shop.t (id INT, v VARIANT, l VARIANT[])")
        for number in range(3):
            catalog.sql(
                f"INSERT INTO shop.t VALUES ({number}, {{'price': {number * 10}}}::VARIANT, [1])"
            )
        catalog.load_table("shop.t").rewrite_manifests()
        with browse(catalog) as page:

            def ask(view: str, **query: str) -> dict[str, object]:
                answer = page.get(f"{TABLE}/{view}", params=query)
                assert answer.status_code == 200, (view, answer.text)
                found: dict[str, object] = answer.json()
                return found

            for view in ("overview", "tree", "commits", "space", "health"):
                assert ask(view)
            tree = ask("tree", columns="2")
            (leaf,) = tree["leaves"]["id"]  # type: ignore[index]
            files = ask("leaf", id=leaf, where="v.price > 15")["page"]
            found = ask("file", id=files["id"][0])  # type: ignore[index]
            assert found
            rows = ask("rows", where="v.price > 15")
            assert rows["rows"] == [["2", "{price: 20}", "[1]"]]
