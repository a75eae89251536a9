"""Virtual environments of peers whose packages cannot live beside ours, pinned and made once."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.peer_process import fetch
from tests.support.project import CACHE, locked


@dataclass(frozen=True, slots=True, kw_only=True)
class Venv:
    """One peer's environment: a name for its folder, and the pinned packages."""

    name: str
    packages: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The environment's folder."""
        return CACHE / "venvs" / self.name

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.path / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Where its packages are installed."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.path / "lib" / version / "site-packages"

    def ready(self) -> Venv:
        """The environment, made now unless one with the same packages is there."""
        pins = "\n".join(self.packages) + "\n"
        marker = self.path / "pins.txt"
        if marker.exists() and marker.read_text() == pins:
            return self
        with locked(f"venv-{self.name}"):
            if not (marker.exists() and marker.read_text() == pins):
                shutil.rmtree(self.path, ignore_errors=True)
                self.path.parent.mkdir(parents=True, exist_ok=True)
                log = CACHE / "logs" / f"venv-{self.name}.log"
                venv = [sys.executable, "-m", "venv", str(self.path)]
                fetch(f"the environment of {self.name}", venv, log=log)
                install = [str(self.python), "-m", "pip", "install", "-q", *self.packages]
                fetch(" ".join(self.packages), install, log=log)
                marker.write_text(pins)
        return self


ICEBERG_SPARK = Venv(
    name="iceberg-spark", packages=("pyspark==4.1.4", "pyarrow==26.0.1", "pandas==3.1.1")
)
"""Iceberg Java 1.12.0 runs on Spark 4.1, older than the Spark we support natively."""

SPARK_4_2 = Venv(name="spark-4.2", packages=("pyspark==4.2.1", "pyarrow==26.0.1", "pandas==3.1.1"))
"""Between the oldest Spark that we support and the one that we develop with."""

DUCKDB_ICEBERG = Venv(
    name="duckdb-iceberg",
    packages=(
        "duckdb==1.5.5",
        "duckdb-extension-iceberg==1.5.5",
        "duckdb-extension-avro==1.5.5",
        "pyarrow==26.0.1",
    ),
)
"""DuckDB with its iceberg extension as a package: nothing is downloaded when a test runs."""
