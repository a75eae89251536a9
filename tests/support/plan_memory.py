"""Pages through a plan of all files of a served table; says how much the process grew.

python -m tests.support.plan_memory <warehouse>
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from starlette.testclient import TestClient

import frazil
from frazil.serve.app import build
from frazil.serve.service import Service

ORDERS = "/v1/namespaces/shop/tables/orders"
NOTHING = {"type": "eq", "term": "order_id", "value": -1}


def main() -> None:
    """Plan nothing, then everything; no answer is kept."""
    client = TestClient(
        build(Service(frazil.connect(sys.argv[1]))), base_url="http://127.0.0.1:8181"
    )
    assert client.post(f"{ORDERS}/plan", json={"filter": NOTHING}).json()["plan-tasks"] == []
    before = _resident_kb("VmRSS")
    files = largest_files = largest_bytes = 0
    answer = client.post(f"{ORDERS}/plan", json={})
    left: list[str] = []
    while True:
        part = answer.json()
        count = len(part["file-scan-tasks"])
        files += count
        largest_files = max(largest_files, count)
        largest_bytes = max(largest_bytes, len(answer.content))
        left += part.get("plan-tasks", [])
        if not left:
            break
        answer = client.post(f"{ORDERS}/tasks", json={"plan-task": left.pop()})
    grown = (_resident_kb("VmHWM") - before) / 1024
    found = {
        "files": files,
        "largest_part_files": largest_files,
        "largest_part_bytes": largest_bytes,
        "grown_mb": grown,
    }
    print(json.dumps(found))


def _resident_kb(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1])
    raise AssertionError(f"the system does not say {key}")


if __name__ == "__main__":
    main()
