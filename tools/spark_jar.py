"""Compiles the Java classes for Spark into the package, so that a wheel brings them."""

from __future__ import annotations

from frazil.spark.session.jar import PACKAGED, build, class_path_of_pyspark

if __name__ == "__main__":
    build(PACKAGED, class_path=class_path_of_pyspark())
    print(f"wrote {PACKAGED}")
