"""Daft on a served catalog. Runs in its own virtual environment.

    python daft_client.py <uri> <warehouse>

Reads `shop.orders`, appends to it, overwrites `shop.copy`, and prints what it read.
"""

from __future__ import annotations

import json
import sys

import daft
from pyiceberg.catalog.rest import RestCatalog


def main() -> None:
    """Read and write."""
    uri, warehouse = sys.argv[1:]
    catalog = RestCatalog("c", uri=uri, warehouse=warehouse)
    orders = catalog.load_table("shop.orders")
    rows = daft.read_iceberg(orders)
    answer = {
        "all": rows.sort("id").to_pydict(),
        "french": rows.where(daft.col("country") == "fr").select("id").to_pydict()["id"],
    }
    added = daft.from_pydict({"id": [100], "country": ["it"]})
    added.write_iceberg(orders, mode="append")
    copied = daft.read_iceberg(catalog.load_table("shop.orders"))
    copied.write_iceberg(catalog.load_table("shop.copy"), mode="overwrite")
    print(json.dumps(answer))


main()
