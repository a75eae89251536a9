"""CALL frazil.system.…: the procedures of `frazil.sql`, offered to Spark SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types as sql

from frazil.catalog.names import undotted
from frazil.spark.session.session_bridge import refresh_cache
from frazil.sql.run.procedures import PROCEDURES, Procedure, call, check_name

if TYPE_CHECKING:
    from frazil.spark.bridge.verbs import Bridge
    from frazil.table.catalog import Catalog

EXECUTE: Final = "execute"
"""Carries out a statement that Spark has no grammar for."""
CHANGE_VIEW: Final = "change_view"
"""Carries out a statement on a view."""
_TABLES: Final = ("table", "source_table")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TYPES: Final = {
    int: sql.LongType,
    str: sql.StringType,
    bool: sql.BooleanType,
    float: sql.DoubleType,
    datetime: sql.TimestampType,
}


def names() -> list[str]:
    """What can be called."""
    return sorted(PROCEDURES)


def described(name: str) -> dict[str, Any]:
    """A procedure as Spark is told of it, with the types that each argument may have."""
    if name == EXECUTE:
        parameters = [_parameter("statement", (str,), required=True)]
        return {"name": name, "description": "Run a statement", "parameters": parameters}
    if name == CHANGE_VIEW:
        parameters = [_parameter("change", (str,), required=True)]
        return {"name": name, "description": "Change a view", "parameters": parameters}
    check_name(name)
    procedure = PROCEDURES[name.lower()]
    return {
        "name": name.lower(),
        "description": f"Frazil's {name.lower()}",
        "parameters": [
            _parameter(
                argument, _kinds(procedure, argument), required=argument in procedure.required
            )
            for argument in procedure.arguments
        ],
    }


def called(bridge: Bridge, catalog: Catalog, own_name: str, request: Mapping[str, Any]) -> Any:
    """The answer as a frame."""
    name, arguments = request["name"], request["arguments"]
    if name == EXECUTE:
        result = catalog.sql(_without_catalog(arguments["statement"], own_name)).to_arrow()
    elif name == CHANGE_VIEW:
        from frazil.spark.catalog.view_changes import changed_view

        change = json.loads(arguments["change"])
        result = changed_view(bridge.spark, catalog, own_name, change)
    else:
        procedure = PROCEDURES[name]
        values = {key: _value(value, _kinds(procedure, key)) for key, value in arguments.items()}
        for argument in _TABLES:
            if argument in values:
                values[argument] = values[argument].removeprefix(f"{own_name}.")
        from frazil.spark.catalog.procedure_jobs import RUNS

        result = call(catalog, name, values, runs=RUNS)
        changed = catalog.find_table(tuple(undotted(values["table"])))
        if changed is not None:
            refresh_cache(bridge.spark, changed)
    return bridge.spark.createDataFrame(result)._jdf


def _without_catalog(statement: str, own_name: str) -> str:
    """The statement with names of tables that start from the catalog itself."""
    before = r"alter\s+table|create\s+table(?:\s+if\s+not\s+exists)?|show\s+partitions"
    named = rf"`?{own_name}`?\s*\."
    comments = r"(?:\s|--[^\n]*\n|/\*(?s:.*?)\*/)*+"
    text = re.sub(rf"^({comments}(?:{before})\s+){named}", r"\1", statement, flags=re.I)
    if re.match(rf"{comments}create\s", text, flags=re.I):
        text = re.sub(rf"(\slike\s+){named}", r"\1", text, count=1, flags=re.I)
    return text


def _kinds(procedure: Procedure, argument: str) -> tuple[type, ...]:
    kinds = procedure.arguments[argument]
    return kinds if isinstance(kinds, tuple) else (kinds,)


def _parameter(name: str, kinds: Sequence[type], *, required: bool) -> dict[str, Any]:
    """An argument; a time may also be a text, which Spark reads in the session's time zone."""
    if datetime in kinds:
        kinds = (datetime,)
    types = [_type(kind, name).json() for kind in kinds]
    return {"name": name, "types": types, "required": required}


def _type(kind: type, argument: str) -> sql.DataType:
    if kind is list:
        return sql.ArrayType(sql.LongType() if argument.endswith("_ids") else sql.StringType())
    if kind is dict:
        return sql.MapType(sql.StringType(), sql.StringType())
    return _TYPES[kind]()


def _value(value: Any, kinds: Sequence[type]) -> Any:
    if datetime in kinds:
        return _EPOCH + timedelta(microseconds=value)
    return value
