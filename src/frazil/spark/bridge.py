"""What Spark's Java side asks for: one verb, one JSON text, one answer.

Every scan and every statement of Spark SQL on a Frazil table ends here. Errors of Frazil travel
back as data, so that users see their message first.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.expressions import AlwaysFalse
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as sql

from frazil.errors import FrazilError, InvalidInput
from frazil.rows.actions import KEY
from frazil.rows.planned import Planned
from frazil.rows.scan import Scan
from frazil.spark import jar
from frazil.spark.bulk_reads import frame
from frazil.spark.conditions import quoted
from frazil.spark.find_table import prepare
from frazil.spark.loaded import ROWS, Loaded
from frazil.spark.log import addresses, is_connect
from frazil.spark.pushed import Pushed, understood
from frazil.spark.scan_plan import AskedColumns, scan_plan
from frazil.spark.source_verbs import SourceVerbs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.table.table import Table

log = logging.getLogger("frazil.spark")
_PARTITION: Final = "_partition"
_MAX_HELD: Final = 256
_MAX_PLANS: Final = 32 << 20
"""Characters of answers that are kept."""
_ATTRIBUTE: Final = "_frazil_bridges"


def bridge_of(spark: SparkSession) -> Bridge:
    """The bridge of a session; the first call loads the Java classes."""
    known: dict[str, Bridge] = spark.sparkContext._gateway.__dict__.setdefault(_ATTRIBUTE, {})
    session = str(spark._jsparkSession.sessionUUID())
    if session not in known:
        known[session] = Bridge(spark)
    return known[session]


def bridge_for(spark: SparkSession) -> Bridge | None:
    """The bridge of a session; None for a client of Spark Connect, which has none."""
    return None if is_connect(spark) else bridge_of(spark)


class Answers:
    """Answers by verb, as Java asks for them."""

    def __init__(self, verbs: Mapping[str, Callable[[Any], Any]]) -> None:
        self.verbs = dict(verbs)

    def apply(self, verb: str, request: Any) -> Any:
        """Called by Java."""
        try:
            found = self.verbs[verb](request)
        except FrazilError as error:
            return _refusal(type(error).__name__, str(error))
        except Exception as error:
            log.exception("%s failed", verb)
            return _refusal("Internal", f"{type(error).__name__}: {error}")
        return json.dumps(found) if isinstance(found, dict) else found

    class Java:
        """What py4j calls."""

        implements = ["java.util.function.BiFunction"]


class Bridge(Answers):
    """Answers for one session. Remembers tables by key, and plans that jobs hold on to."""

    def __init__(self, spark: SparkSession) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        self.tables: dict[str, Table] = {}
        source = SourceVerbs(spark, self.tables)
        super().__init__(
            {
                "plan": self._plan,
                "rows": self._rows,
                "source": source.described,
                "source insert": source.insert,
            }
        )
        ensure_callback_server_started(spark.sparkContext._gateway)
        self.spark = spark
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._plans: OrderedDict[str, str] = OrderedDict()
        self.is_installed = False
        self._lock = threading.Lock()
        self._next = 0
        self.java = jar.new(spark, "Bridge", self)
        jar.call(spark, "Source", "serve", spark._jsparkSession, self.java)

    # Frames

    def held(
        self, rows: Scan | Planned, metadata_columns: Sequence[str] = ()
    ) -> tuple[str, DataFrame]:
        """A frame over a scan whose plan is kept, with a token to ask for it by.

        The files are those of the plan, or, of a scan, those that the filters over the frame leave
        when Spark plans it first.
        """
        with self._lock:
            self._next += 1
            token = json.dumps({"held": self._next})
            self._held[token] = _Held(
                scan=rows.scan if isinstance(rows, Planned) else rows,
                planned=rows if isinstance(rows, Planned) else None,
            )
            while len(self._held) > _MAX_HELD:
                self._held.popitem(last=False)
        scan = self._held[token].scan
        prepare(self.spark, (field.field_type for field in scan.table_schema.fields))
        table = Loaded(table=_plain(scan), scan=replace(scan, columns=None, matching=None))
        described = {**table.described(""), "token": token, "writable": False}
        return token, self.frame(described, metadata_columns)

    def planned(self, token: str) -> tuple[Planned, Pushed]:
        """The plan of a held frame once Spark has planned it, and what its filters told."""
        held = self._held[token]
        if held.planned is None or held.pushed is None:  # no row can match: Spark left it out
            held.pushed = Pushed(expression=AlwaysFalse(), is_exact=True)
            held.planned = Planned.of(replace(held.scan, matching=AlwaysFalse()))
        return held.planned, held.pushed

    def rows(self, table: Table, scan: Scan) -> DataFrame:
        """A frame over one snapshot of a table."""
        key = f"{table.name} at {table.location}"
        self.tables[key] = table
        prepare(self.spark, (field.field_type for field in scan.table_schema.fields))
        return self.frame(Loaded(table=table, scan=scan, is_pinned=True).described(key))

    def frame(
        self, described: Mapping[str, Any], metadata_columns: Sequence[str] = ()
    ) -> DataFrame:
        """The rows of a table that Spark knows."""
        more = json.dumps(list(metadata_columns))
        rows = jar.frames(self.spark).rows(self.java, json.dumps(described), more)
        return DataFrame(rows, self.spark)

    # Reading

    def loaded(self, token: str) -> Loaded:
        """What a token stands for."""
        said = json.loads(token)
        table = self.tables.get(said.get("table", ""))
        if table is None:
            raise InvalidInput(
                "the plan of this frame is no longer available; create the frame again"
            )
        return Loaded.of(replace(table, branch_name=said["branch"]), said)

    def _plan(self, request: str) -> str:
        """The plan of a scan. A token names one snapshot, so an answer stays true: Spark plans a
        statement more than once."""
        with self._lock:
            if request in self._plans:
                self._plans.move_to_end(request)
                return self._plans[request]
        made = json.dumps(self._planned_scan(request))
        with self._lock:
            self._plans[request] = made
            while len(self._plans) > 1 and sum(map(len, self._plans.values())) > _MAX_PLANS:
                self._plans.popitem(last=False)
        return made

    def _planned_scan(self, request: str) -> dict[str, Any]:
        asked = json.loads(request)
        token = asked["token"]
        held = self._held.get(token)
        loaded = None if held is not None else self.loaded(token)
        if loaded is not None and loaded.kind != ROWS:
            return {"native": False, "bytes": 1 << 20}
        scan = held.scan if held is not None else loaded.scan  # type: ignore[union-attr]
        if _PARTITION in _struct(asked["schema"]).names:  # joined to the rows, file by file
            return {"native": False, "bytes": 1 << 20}
        if loaded is not None and scan.matching is not None:  # a filter in Frazil's own grammar
            return {"native": False, "bytes": 1 << 20}
        wanted = AskedColumns.of(_struct(asked["schema"]), scan.table_schema)
        prepare(self.spark, (field.field_type for field in wanted.schema.fields))
        filters = [*asked["filters"], *asked.get("runtime", ())]
        pushed = understood(filters, scan.table_schema, is_all=asked["exact"])
        names = tuple(field.name for field in wanted.schema.fields)
        planned = Planned.of(
            replace(scan, matching=pushed.expression, columns=names, max_rows=None)
        )
        total = _files_of(scan)
        if held is not None:
            planned, total = held.kept(planned, pushed), total
        made = scan_plan(
            planned,
            wanted,
            addresses=addresses(self.spark, planned.paths),
            of=total,
        )
        if loaded is not None and loaded.split_bytes is not None:
            made["split"] = loaded.split_bytes
        return made

    def _rows(self, request: str) -> Any:
        """The rows of a scan that only Python can read, as Spark's own rows."""
        asked = json.loads(request)
        held = self._held.get(asked["token"])
        fields = _struct(asked["schema"]).fields
        wanted = [field.name for field in fields]
        loaded = None if held is not None else self.loaded(asked["token"])
        if loaded is not None and loaded.kind != ROWS:
            rows = loaded.frame(self.spark)
        else:
            scan = held.scan if held is not None else loaded.scan  # type: ignore[union-attr]
            pushed = understood(asked["filters"], scan.table_schema, is_all=False)
            columns = tuple(name for name in wanted if name != KEY)
            narrowed = replace(scan, columns=columns, max_rows=None)
            if held is not None or scan.matching is None:
                narrowed = replace(narrowed, matching=pushed.expression)
            else:
                narrowed = narrowed.where(pushed.expression)
            planned = Planned.of(narrowed)
            if held is not None:
                planned = held.kept(planned, pushed)
            key = KEY if KEY in wanted else None
            rows = frame(self.spark, narrowed, planned=planned, key=key, bridge=self)
        return rows.select(*(_narrowed(rows, field) for field in fields))._jdf.rdd()


@dataclass(slots=True, kw_only=True)
class _Held:
    """A scan whose plan a job needs again; the plan is fixed when it is first known."""

    scan: Scan
    planned: Planned | None = None
    pushed: Pushed | None = None

    def kept(self, planned: Planned, pushed: Pushed) -> Planned:
        """A plan that Spark asks for, with the numbers of the plan that is held."""
        if self.planned is None:
            self.planned = planned
        if self.pushed is None:
            self.pushed = pushed
        return planned.among(self.planned)


def _refusal(kind: str, message: str) -> str:
    return json.dumps({"error": {"kind": kind, "message": message}})


def _struct(text: str) -> sql.StructType:
    made: sql.StructType = sql.StructType.fromJson(json.loads(text))
    return made


def _narrowed(rows: DataFrame, wanted: sql.StructField) -> Column:
    """A column with the parts that are asked for."""
    column = rows[quoted(wanted.name)]
    has = rows.schema[wanted.name].dataType
    if has == wanted.dataType or not isinstance(wanted.dataType, sql.StructType):
        return column
    parts = [column.getField(name).alias(name) for name in wanted.dataType.names]
    return F.when(column.isNotNull(), F.struct(*parts)).alias(wanted.name)


def _files_of(scan: Scan) -> int:
    """How many data files the snapshot has; -1 where its summary does not say."""
    found = "0" if scan.snapshot is None else scan.snapshot.summary.get("total-data-files", "-1")
    return int(found)


def _plain(scan: Scan) -> Table:
    from frazil.table.table import Table

    return Table(scan._handle)
