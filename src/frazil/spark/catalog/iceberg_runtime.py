"""Spark with Iceberg's own runtime on a served catalog: all of Iceberg's SQL on Frazil tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from frazil import serve
from frazil.errors import InvalidInput
from frazil.table import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
"""The newest runtime of Iceberg; it needs Spark 4.1."""


def iceberg_settings(uri: str, *, name: str = "frazil", jars: str | None = None) -> dict[str, str]:
    """What a Spark session needs to use the server at `uri` as the catalog `name`.

    `jars` are paths of Iceberg's runtime, for machines that cannot ask Maven for it.
    """
    catalog = f"spark.sql.catalog.{name}"
    runtime = {"spark.jars.packages": RUNTIME} if jars is None else {"spark.jars": jars}
    return {
        **runtime,
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "rest",
        f"{catalog}.uri": uri,
    }


def iceberg_session(
    catalog: Catalog | None = None,
    *,
    uri: str | None = None,
    name: str = "frazil",
    jars: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session of Spark 4.1 in which `name.namespace.table` are tables of a Frazil catalog.

    Pass the `uri` of a server, or a catalog, which is then served by this process as long as it
    runs.
    """
    from pyspark import __version__ as version
    from pyspark.sql import SparkSession

    if (catalog is None) == (uri is None):
        raise InvalidInput("give either a catalog or the uri of a server")
    if not version.startswith("4.1."):
        raise InvalidInput(f"Iceberg's runtime needs Spark 4.1; this is {version}")
    address = serve.start(catalog).uri if catalog is not None else uri
    assert address is not None
    builder = SparkSession.builder.appName("frazil")
    all_settings = {**iceberg_settings(address, name=name, jars=jars), **(settings or {})}
    for key, value in all_settings.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    return session
