"""A Spark session and a catalog brought together: which table is meant, what Spark must know."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from frazil.credentials import without_password
from frazil.errors import InvalidInput
from frazil.iceberg.types import IcebergType, ListType, MapType, StructType, TimeType
from frazil.spark.session.carried_credentials import carry_with
from frazil.spark.session.session_bridge import bridge_if_any
from frazil.table.catalog import Catalog
from frazil.table.open_catalog import connect
from frazil.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG_CONF = "spark.frazil.catalog"
FIELD_IDS_CONF = "spark.sql.parquet.fieldId.read.enabled"
TIME_CONF = "spark.sql.timeType.enabled"

CatalogLike = Catalog | str | os.PathLike[str]


def ready(spark: SparkSession) -> None:
    """Get a session ready for work on tables: which Python its tasks run, and how credentials
    reach them."""
    carry_with(spark)
    _use_this_python(spark)


def _use_this_python(spark: Any) -> None:
    """Let the workers of a local session run this interpreter, unless another one was chosen.

    Spark would take the first `python3` on the path, which may not have this package.
    """
    context = getattr(spark, "_sc", None)  # a session of Spark Connect has none
    if context is None or os.environ.get("PYSPARK_PYTHON"):
        return
    if context.getConf().contains("spark.pyspark.python"):
        return
    if context.master.startswith("local"):
        context.pythonExec = sys.executable


def session() -> SparkSession:
    """The session that is active."""
    from pyspark.sql import SparkSession

    current = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if current is None:
        raise InvalidInput(
            "no Spark session is active; SparkSession.builder.getOrCreate() starts one"
        )
    if hasattr(current, "_jsparkSession"):
        active = SparkSession._get_j_spark_session_class(current._jvm).getActiveSession()
        if active.isDefined() and not active.get().equals(current._jsparkSession):
            return SparkSession(current.sparkContext, active.get())
    return current


def catalog_of(spark: SparkSession, catalog: CatalogLike | None = None) -> Catalog:
    """The catalog given, opened if it is a path or URI; else the one the session was told of."""
    ready(spark)
    if isinstance(catalog, Catalog):
        return catalog
    if catalog is not None:
        return connect(os.fspath(catalog))
    named = spark.conf.get(CATALOG_CONF, None)
    bridge = bridge_if_any(spark)
    if bridge is not None and bridge.catalog is not None and named == public_uri(bridge.catalog):
        return bridge.catalog
    if named is None:
        raise InvalidInput(
            "no catalog: pass catalog=, call frazil.spark.register(spark, catalog), or "
            f"set {CATALOG_CONF} on the session"
        )
    return connect(named)


def table_of(spark: SparkSession, table: Table | str, catalog: CatalogLike | None = None) -> Table:
    """The table itself, or the table with this name in the catalog, at the state it has now."""
    ready(spark)
    if isinstance(table, Table):
        return table.pinned()
    return catalog_of(spark, catalog).load_table(table)._as_loaded()


def public_uri(catalog: Catalog) -> str | None:
    """Where a catalog is, without a password: settings of a session are no place for one."""
    return None if catalog._origin is None else without_password(catalog._origin["uri"])


def prepare(spark: SparkSession, kinds: Iterable[IcebergType]) -> None:
    """Switch on what reading and writing these types natively needs."""
    _switch_on(spark, FIELD_IDS_CONF)
    if any(_has_time(kind) for kind in kinds):
        _switch_on(spark, TIME_CONF)


def _switch_on(spark: SparkSession, conf: str) -> None:
    if spark.conf.get(conf, "false") != "true":
        spark.conf.set(conf, "true")


def _has_time(kind: IcebergType) -> bool:
    match kind:
        case StructType():
            return any(_has_time(field.field_type) for field in kind.fields)
        case ListType():
            return _has_time(kind.element_type)
        case MapType():
            return _has_time(kind.key_type) or _has_time(kind.value_type)
    return isinstance(kind, TimeType)
