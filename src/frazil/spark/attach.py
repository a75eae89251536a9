"""Tables of a catalog as temporary views of a Spark session, for SQL.

A view shows its table as it was when it was attached; `Attached.refresh` looks again. INSERT INTO
a view writes to the table. Python data sources know no DELETE, UPDATE, MERGE and no time travel in
SQL: those are functions of this package.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import types as sql

from frazil.errors import InvalidInput
from frazil.spark.metadata_tables import metadata_schema
from frazil.spark.native import frame
from frazil.spark.pruned_sql import View, asked_of, is_query
from frazil.spark.session import (
    CATALOG_CONF,
    TIME_CONF,
    CatalogLike,
    catalog_of,
)
from frazil.spark.source import pinned_scan
from frazil.spark.source_options import METADATA_TABLES, SourceOptions
from frazil.spark.spark_types import spark_schema
from frazil.table.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Attached:
    """The views made: names of views by names of tables."""

    spark: SparkSession
    catalog: Catalog
    namespace: str | None
    views: dict[str, str]
    relations: Mapping[str, View] = field(default_factory=dict, repr=False)

    def sql(self, query: str) -> DataFrame:
        """Run a query whose filters also prune files through the tree.

        The result is that of `spark.sql`. The query is optimised twice, and while it is, its views
        stand for the pruned tables: two threads should not do that in one session at once. Without
        a JVM at hand (Spark Connect), with cached views, and for statements that write, nothing is
        pruned.
        """
        if not hasattr(self.spark, "_jsparkSession") or not is_query(self.spark, query):
            return self.spark.sql(query)
        found = self.spark.sql(query)
        plan = found._jdf.queryExecution().optimizedPlan()
        asked = asked_of(plan, self.relations).items()
        wanted = {view: where for view, each in asked if (where := each.where) is not None}
        if not wanted:
            return found
        with self._pruned(wanted):
            return self.spark.sql(query)

    @contextmanager
    def _pruned(self, wanted: Mapping[str, str]) -> Iterator[None]:
        """Views of the rows that match a filter, for a moment."""
        frames = {}
        for view, where in wanted.items():
            options = SourceOptions.parse({**self.relations[view].options, "where": where})
            frames[view] = frame(self.spark, pinned_scan(options))
        try:
            for view, pruned in frames.items():
                pruned.createOrReplaceTempView(view)
            yield
        finally:
            for view in frames:
                relation = self.relations[view]
                _view(self.spark, view, spark_schema(relation.schema), relation.options)

    def refresh(self) -> Attached:
        """The views again, as the tables are now; new tables get views, dropped ones lose them."""
        fresh = attach(self.spark, self.catalog, self.namespace)
        for table, view in self.views.items():
            if table not in fresh.views:
                for name in (view, *(f"{view}__{each}" for each in METADATA_TABLES)):
                    self.spark.catalog.dropTempView(name)
        return fresh


def attach(
    spark: SparkSession, catalog: CatalogLike | None = None, namespace: str | None = None
) -> Attached:
    """Make a view for every table of a namespace, or of the catalog, and its metadata tables.

    Table `shop.orders` becomes the view `orders`, its snapshots `orders__snapshots`, and so on.

    >>> frazil.spark.attach(spark, "warehouse", "shop")                    # doctest: +SKIP
    >>> spark.sql("SELECT count(*) FROM orders").show()                    # doctest: +SKIP
    """
    found = catalog_of(spark, catalog)
    options = SourceOptions.of_catalog(found)
    names = found.list_tables(namespace)
    views = {name: name.rsplit(".", 1)[-1] for name in names}
    taken = [view for view, count in Counter(views.values()).items() if count > 1]
    if taken:
        raise InvalidInput(
            f"several namespaces have tables named {', '.join(sorted(taken))}; attach one "
            "namespace at a time: attach(spark, catalog, namespace)"
        )
    spark.conf.set(TIME_CONF, "true")
    if set(options) == {"catalog", "catalog-name"} and options["catalog-name"] == "default":
        spark.conf.set(CATALOG_CONF, options["catalog"])
    relations: dict[str, View] = {}
    for name, view in views.items():
        table = found.load_table(name)
        tip = table.current_snapshot()
        pinned = {
            **options,
            "table": name,
            "snapshot": "0" if tip is None else str(tip.snapshot_id),
            "schema-id": str(table.metadata.current_schema_id),
        }
        relations[view] = View(options=pinned, schema=table.schema)
        _view(spark, view, spark_schema(table.schema), pinned)
        for each in METADATA_TABLES:
            shape = metadata_schema(table, each)
            _view(spark, f"{view}__{each}", shape, {**pinned, "metadata": each})
    return Attached(spark, found, namespace, views, relations)


def _view(
    spark: SparkSession, name: str, schema: sql.StructType, options: Mapping[str, str]
) -> None:
    """A view whose schema is given: Spark then starts no Python process to ask for it."""
    listed = ", ".join(f"{_text(key)} {_text(value)}" for key, value in options.items())
    columns = ", ".join(f"{_quoted(field.name)} {_ddl(field.dataType)}" for field in schema)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW {_quoted(name)} ({columns}) USING frazil "
        f"OPTIONS ({listed})"
    )


def _ddl(kind: sql.DataType) -> str:
    """A type as SQL writes it, with every name quoted."""
    if isinstance(kind, sql.StructType):
        inner = ", ".join(f"{_quoted(field.name)}: {_ddl(field.dataType)}" for field in kind)
        return f"STRUCT<{inner}>"
    if isinstance(kind, sql.ArrayType):
        return f"ARRAY<{_ddl(kind.elementType)}>"
    if isinstance(kind, sql.MapType):
        return f"MAP<{_ddl(kind.keyType)}, {_ddl(kind.valueType)}>"
    return str(kind.simpleString())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
