"""ClickHouse, as the library chdb, on a served catalog in a bucket. Runs in its own environment.

    python clickhouse_client.py <uri> <endpoint with bucket> <key> <secret> <statements as JSON>

Prints the rows of `shop.orders` before the statements and after them.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from chdb.session import Session

ORDERS = "lake.`shop.orders`"


def main() -> None:
    """Run the statements."""
    uri, endpoint, key, secret, statements = sys.argv[1:]
    session = Session()
    for setting in ("allow_database_iceberg", "allow_experimental_insert_into_iceberg"):
        session.query(f"SET {setting} = 1")
    session.query(
        f"CREATE DATABASE lake ENGINE = DataLakeCatalog('{uri}/v1', '{key}', '{secret}') "
        f"SETTINGS catalog_type = 'rest', warehouse = 'v2', storage_endpoint = '{endpoint}'"
    )
    answer = {"before": rows(session)}
    for statement in json.loads(statements):
        session.query(statement.replace("shop.orders", ORDERS))
    answer["after"] = rows(session)
    print(json.dumps(answer))


def rows(session: Any) -> list[list[Any]]:
    """The table's rows, sorted."""
    text = str(session.query(f"SELECT * FROM {ORDERS} ORDER BY id", "JSONCompactEachRow"))
    return [json.loads(line) for line in text.splitlines()]


main()
