"""Who takes part: each peer's environment, pinned, and its driver."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.venvs import ICEBERG_SPARK, Venv

DRIVERS = Path(__file__).parent / "drivers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One library: its name in reports, its script, and where it runs (None: our environment)."""

    name: str
    script: str
    venv: Venv | None = None
    arguments: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        """How to start its driver; makes the environment if it is not there."""
        python = sys.executable if self.venv is None else str(self.venv.ready().python)
        return [python, str(DRIVERS / self.script), *self.arguments]


DELTA = Venv(name="bench-delta", packages=("deltalake==1.6.6", "pyarrow==26.0.1", "numpy==2.4.6"))
DUCKLAKE = Venv(
    name="bench-ducklake",
    packages=(
        "duckdb==1.5.5",
        "duckdb-extension-ducklake==1.5.5",
        "pyarrow==26.0.1",
        "numpy==2.4.6",
    ),
)
LANCE = Venv(name="bench-lance", packages=("pylance==14.0.2", "pyarrow==26.0.1", "numpy==2.4.6"))
PAIMON = Venv(name="pypaimon", packages=("pypaimon==2.1.0",))

FRAZIL = "Frazil"
PEERS = {
    peer.name: peer
    for peer in (
        Peer(name=FRAZIL, script="frazil_driver.py"),
        Peer(name="PyIceberg", script="pyiceberg_driver.py"),
        Peer(name="delta-rs", script="delta_driver.py", venv=DELTA),
        Peer(name="DuckLake", script="ducklake_driver.py", venv=DUCKLAKE),
        Peer(name="Paimon", script="paimon_driver.py", venv=PAIMON),
        Peer(name="plain Parquet", script="parquet_driver.py"),
    )
}
SPARK_PEERS = {
    peer.name: peer
    for peer in (
        Peer(name=FRAZIL, script="spark_frazil_driver.py"),
        Peer(name="Iceberg Java", script="spark_iceberg_driver.py", venv=ICEBERG_SPARK),
    )
}
BUCKET_PEERS = {
    peer.name: peer
    for peer in (
        Peer(name=FRAZIL, script="bucket_driver.py", arguments=("frazil",)),
        Peer(name="PyIceberg", script="bucket_driver.py", arguments=("pyiceberg",)),
        Peer(name="delta-rs", script="bucket_driver.py", venv=DELTA, arguments=("delta",)),
        Peer(name="Lance", script="bucket_driver.py", venv=LANCE, arguments=("lance",)),
    )
}
COLUMN_PEERS = {
    peer.name: peer
    for peer in (
        Peer(name=FRAZIL, script="columns_driver.py", arguments=("frazil",)),
        Peer(name="Frazil by rows", script="columns_driver.py", arguments=("frazil-rows",)),
        Peer(name="delta-rs", script="columns_driver.py", venv=DELTA, arguments=("delta",)),
        Peer(name="DuckLake", script="columns_driver.py", venv=DUCKLAKE, arguments=("ducklake",)),
        Peer(name="Lance", script="columns_driver.py", venv=LANCE, arguments=("lance",)),
    )
}
COLUMN_SPARK_PEERS = {
    peer.name: peer
    for peer in (
        Peer(name=FRAZIL, script="columns_driver.py", arguments=("frazil-spark",)),
        Peer(
            name="Iceberg Java",
            script="columns_driver.py",
            venv=ICEBERG_SPARK,
            arguments=("iceberg",),
        ),
    )
}
