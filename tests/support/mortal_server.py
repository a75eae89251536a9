"""A server in a process of its own that dies by SIGKILL after its next commit, unanswered.

python -m tests.support.mortal_server <warehouse> <port> dies|lives
"""

from __future__ import annotations

import sys
from typing import Any

import frazil
from frazil.serve.app import build
from frazil.serve.running import Running
from frazil.serve.service import Service
from tests.support.lossy import Lossy


def main() -> None:
    """Serve until a commit is lost or the process is told to stop."""
    warehouse, port, fate = sys.argv[1:]
    pending = ["kill"] if fate == "dies" else []
    app: Any = Lossy(build(Service(frazil.connect(warehouse))), pending=pending)
    with Running(app, port=int(port)) as server:
        print(server.uri, flush=True)
        server.wait()


if __name__ == "__main__":
    main()
