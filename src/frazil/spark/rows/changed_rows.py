"""The rows of a table that a job may change, each with its number in the plan.

Spark's filters over the frame prune the files; what the tree understood of them is also what
conflicts are judged by.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import Column, DataFrame

from frazil.data.metadata_columns import ROW_ID
from frazil.iceberg.expressions import AlwaysTrue
from frazil.rows.actions import KEY
from frazil.rows.planned import Planned
from frazil.rows.scan import Scan
from frazil.spark.bridge.verbs import bridge_of
from frazil.spark.expressions.pushed import Pushed, understood
from frazil.spark.read.bulk_reads import frame
from frazil.spark.session import jar
from frazil.spark.session.file_list import is_connect
from frazil.value_classes import dataclass, replace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.table.table import Table

Condition: TypeAlias = str | Column
Binding: TypeAlias = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, kw_only=True)
class ChangedRows:
    """A frame of the table's columns, `_row_id` and the row's key."""

    table: Table
    rows: DataFrame
    token: str | None
    whole: Planned | None

    @staticmethod
    def of(
        spark: SparkSession,
        table: Table,
        *,
        bound: Binding | None = None,
        scan: Scan | Planned | None = None,
        metadata_columns: Sequence[str] = (),
    ) -> ChangedRows:
        """The rows of a scan, by default those of the table's branch now.

        `bound` gives the columns other identities; `metadata_columns` are there in addition.
        """
        table._handle.check_writable()
        scan = scan or table.scan()
        if is_connect(spark):
            planned = scan if isinstance(scan, Planned) else Planned.of(scan)
            scan = planned.scan
            more = (ROW_ID.name, *(name for name in metadata_columns if name != ROW_ID.name))
            rows = frame(spark, scan, metadata_columns=more, key=KEY, planned=planned, bridge=None)
            return ChangedRows(table=table, rows=rows, token=None, whole=planned)
        token, rows = bridge_of(spark).held(
            scan, (ROW_ID.name, KEY, *(name for name in metadata_columns if name != ROW_ID.name))
        )
        return ChangedRows(
            table=table, rows=bound(rows) if bound else rows, token=token, whole=None
        )

    def planned(self, rows: DataFrame) -> tuple[Planned, Pushed]:
        """The files that a frame made of these rows reads, after its filters have pruned."""
        if self.token is None:
            assert self.whole is not None
            return self.whole, Pushed(expression=AlwaysTrue(), is_exact=False)
        spark = rows.sparkSession
        over = json.loads(jar.frames(spark).filters(rows._jdf))  # plans the scan
        planned, pushed = bridge_of(spark).planned(self.token)
        schema = planned.scan.table_schema
        whole = understood(over["filters"], schema, is_all=over["exact"])
        return planned, replace(pushed, is_exact=whole.is_exact)
