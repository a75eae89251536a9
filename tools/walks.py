"""Draws the walks of docs/architecture.md again, as they are recorded now.

Usage: python -m tools.walks [NAME …], by default all but `spark-merge`, which starts Spark.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.docs.walked import WALKS, draw, spark_merge

if __name__ == "__main__":
    for name in sys.argv[1:] or WALKS:
        with tempfile.TemporaryDirectory() as folder:
            if name in WALKS:
                draw(name, WALKS[name](Path(folder)))
            else:
                from tests.support.spark_session import shared_session

                draw("spark-merge", spark_merge(shared_session(), Path(folder)))
