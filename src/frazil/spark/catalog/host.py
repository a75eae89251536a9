"""A Python process beside Spark's driver, for catalogs that a session's configuration names.

    spark.sql.extensions          frazil.spark.Extensions
    spark.sql.catalog.frazil      frazil.spark.FrazilCatalog
    spark.sql.catalog.frazil.uri  /data/warehouse

The Java side starts it (`Host.java`) with the first such catalog; it attaches to the driver's
virtual machine, answers what the catalogs ask for, and ends when its input does.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from frazil.credentials import without_password
from frazil.errors import InvalidInput
from frazil.spark.bridge.verbs import Answers, bridge_of
from frazil.spark.catalog.catalog_verbs import CatalogVerbs
from frazil.spark.session.find_table import CATALOG_CONF, FIELD_IDS_CONF, ready
from frazil.table.open_catalog import connect

if TYPE_CHECKING:
    from pyspark import SparkContext

URI, WAREHOUSE, NAME, PYTHON = "uri", "warehouse", "catalog-name", "python"


class Host(Answers):
    """Opens catalogs for the sessions of one Spark context."""

    def __init__(self, context: SparkContext) -> None:
        super().__init__({"open catalog": self._open})
        self._context = context

    def _open(self, request: Any) -> dict[str, Any]:
        from pyspark.sql import SparkSession

        session, name, text, answer = request
        options = json.loads(text)
        uri = options.get(URI) or options.get(WAREHOUSE)
        if uri is None:
            raise InvalidInput(
                f"the catalog {name} has no location: set spark.sql.catalog.{name}.{URI} to a "
                "warehouse folder or a database URI"
            )
        spark = SparkSession(self._context, session)
        ready(spark)
        catalog = connect(
            uri,
            warehouse=options.get(WAREHOUSE) if URI in options else None,
            name=options.get(NAME, "default"),
            **{key: value for key, value in options.items() if "." in key},
        )
        spark.conf.set(FIELD_IDS_CONF, "true")
        spark.conf.set(CATALOG_CONF, without_password(uri))
        bridge = bridge_of(spark)
        bridge.catalog = catalog
        answer.add(CatalogVerbs(bridge, catalog, name))
        return {}


def main() -> None:
    """Attach to the virtual machine that started this process, and serve until it ends."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import ensure_callback_server_started, launch_gateway

    gateway = launch_gateway()
    ensure_callback_server_started(gateway)
    asking = gateway.jvm.System.getProperties().get(sys.argv[1])
    java = asking.context()
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jconf=java.getConf()))
    asking.arrived(Host(context))
    sys.stdin.read()


if __name__ == "__main__":
    main()
