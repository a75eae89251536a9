"""A Frazil catalog in Spark SQL: `frazil.spark.register(spark, catalog)`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

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
    session = spark._jsparkSession
    asked = jar.new(spark, "Bridge", CatalogVerbs(bridge, opened, name))
    state = session.sessionState()
    _put(state.catalogManager(), name, jar.new(spark, "FrazilCatalog", asked, session, name))
    if not bridge.is_installed:
        _install(spark)
        bridge.is_installed = True
    spark.conf.set(FIELD_IDS_CONF, "true")
    bridge.catalog = opened
    place = public_uri(opened)
    if place is not None:
        spark.conf.set(CATALOG_CONF, place)
    return opened


def _put(manager: Any, name: str, plugin: Any) -> None:
    """Into the session's catalogs: Spark has no public way to add one to a running session."""
    _field(manager, "catalogs").put(name, plugin)


def _install(spark: SparkSession) -> None:
    session = spark._jsparkSession
    methods = session.experimental()
    strategies = methods.extraStrategies()
    ours = jar.new(spark, "RowChanges")
    setter = next(
        method
        for method in methods.getClass().getMethods()
        if method.getName() == "extraStrategies_$eq"
    )
    array_list = spark._jvm.java.util.ArrayList()
    array_list.add(strategies.appended(ours))
    setter.invoke(methods, array_list.toArray())
    state = session.sessionState()
    _add_rule(state.analyzer(), "extendedResolutionRules", jar.new(spark, "OpenNames", session))
    _add_rule(state.analyzer(), "postHocResolutionRules", jar.new(spark, "RowCommands", session))
    parser = jar.call(spark, "Statements", "over", state.sqlParser(), session)
    field = _declared(state, "sqlParser")
    field.set(state, parser)


def _add_rule(analyzer: Any, name: str, rule: Any) -> None:
    rules = _declared(analyzer, name)
    rules.set(analyzer, rules.get(analyzer).appended(rule))


def _field(owner: Any, name: str) -> Any:
    return _declared(owner, name).get(owner)


def _declared(owner: Any, name: str) -> Any:
    kind = owner.getClass()
    while kind is not None:
        for field in kind.getDeclaredFields():
            if field.getName() == name:
                field.setAccessible(True)
                return field
        kind = kind.getSuperclass()
    raise Unsupported(f"this Spark version has no {name}", feature="Spark version")
