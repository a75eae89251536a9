"""DuckDB that appends to a served table until its time is up and a row has landed. Runs in its own
virtual environment.

    python duckdb_writer.py <uri> <first id> <seconds>

Prints the ids whose INSERT succeeded as JSON. A conflict is no error: nothing of it may be there.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module


def main() -> None:
    """Append one row after the other."""
    connection = import_module("duckdb_session").connect(sys.argv[1])
    number, end = int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
    landed: list[int] = []
    while time.monotonic() < end or not landed:
        try:
            connection.execute(f"INSERT INTO lake.shop.orders VALUES ({number}, 'duckdb')")
            landed.append(number)
        except Exception as error:
            if "conflict" not in str(error).lower() and "requirement" not in str(error).lower():
                raise
        number += 1
    print(json.dumps(landed))


main()
