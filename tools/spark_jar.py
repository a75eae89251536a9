"""Compiles the Java classes for Spark into the package, so that a wheel brings them."""

from __future__ import annotations

from pathlib import Path

import pyspark

from frazil.spark.jar import PACKAGED, build

if __name__ == "__main__":
    jars = Path(pyspark.__file__).parent / "jars"
    build(PACKAGED, class_path=f"{jars}/*")
    print(f"wrote {PACKAGED}")
