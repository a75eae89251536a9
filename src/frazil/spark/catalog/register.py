"""A Frazil catalog in Spark SQL: `frazil.spark.register(spark, catalog)`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from frazil.errors import InvalidInput, Unsupported
from frazil.spark.bridge.verbs import bridge_of
from frazil.spark.catalog.catalog_verbs import CatalogVerbs
from frazil.spark.session import jar
from frazil.spark.session.file_list import is_connect
from frazil.spark.session.find_table import (
    CATALOG_CONF,
    FIELD_IDS_CONF,
    CatalogLike,
    catalog_of,
    public_uri,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.table.catalog import Catalog

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def register(
    spark: SparkSession, catalog: CatalogLike | None = None, name: str = "frazil"
) -> Catalog:
    """Register a catalog with Spark SQL under a name; no restart is needed.

    Its tables are then called `frazil.shop.orders`. Statements see the current snapshot unless they
    ask for another.

    >>> frazil.spark.register(spark, "warehouse")                         # doctest: +SKIP
    >>> spark.sql("SELECT * FROM frazil.shop.orders WHERE id = 7")        # doctest: +SKIP
    """
    if is_connect(spark):
        raise Unsupported(
            "a Spark Connect client cannot register a catalog: its session runs elsewhere. Use "
            "frazil.spark.table and the other functions instead",
            feature="catalog on Spark Connect",
        )
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == "spark_catalog":
        raise InvalidInput(f"{name!r} is not a name for a catalog; expected one like 'frazil'")
    opened = catalog_of(spark, catalog)
    bridge = bridge_of(spark)
    asked = jar.new(spark, "Bridge", CatalogVerbs(bridge, opened, name))
    jar.call(spark, "Sessions", "register", spark._jsparkSession, name, asked)
    spark.conf.set(FIELD_IDS_CONF, "true")
    bridge.catalog = opened
    place = public_uri(opened)
    if place is not None:
        spark.conf.set(CATALOG_CONF, place)
    return opened
