"""A table as a Spark frame: `frazil.spark.table(orders, where="price > 100")`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from frazil.data.metadata_columns import PARTITION_ID
from frazil.spark.bridge.verbs import bridge_for, bridge_of
from frazil.spark.expressions.conditions import explained, quoted
from frazil.spark.read.bulk_reads import chosen_column, frame
from frazil.spark.rows.changed_rows import Condition
from frazil.spark.session.file_list import is_connect
from frazil.spark.session.find_table import CatalogLike, session, table_of
from frazil.table.refs import AsOf
from frazil.table.table import Table
from frazil.value_classes import replace


def table(
    table: Table | str,
    where: Condition | None = None,
    columns: Sequence[str] | None = None,
    *,
    as_of: AsOf | None = None,
    catalog: CatalogLike | None = None,
) -> DataFrame:
    """Rows of a table as a Spark frame, pinned to the current snapshot and read on executors.

    `where` is Spark SQL or a column; it prunes files, and so does every filter added later.
    `columns` may include metadata columns: `_row_id`, `_last_updated_sequence_number`, `_file`,
    `_pos`, `_spec_id`,
    `_partition`.

    >>> frazil.spark.table("shop.orders", where="price > 100")          # doctest: +SKIP
    """
    spark = session()
    opened = table_of(spark, table, catalog)
    scan = opened.scan(columns=columns, as_of=as_of)
    names = [field.name for field in scan.read_schema.fields]
    if is_connect(spark) or PARTITION_ID in {field.field_id for field in scan.read_schema.fields}:
        every = [field.name for field in scan.table_schema.fields]
        wide = replace(scan, columns=(*every, *(name for name in names if name not in every)))
        rows = frame(spark, wide, bridge=bridge_for(spark))
        chosen = [rows[quoted(name)] for name in names]
    else:
        rows = bridge_of(spark).rows(opened, scan)
        chosen = [
            chosen_column(rows, scan.table_schema, field) for field in scan.read_schema.fields
        ]
    with explained("table"):
        return (rows if where is None else rows.filter(where)).select(*chosen)
