"""CALL frazil.system.…: the procedures of `frazil.sql`, offered to Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types as sql

from frazil.errors import InvalidInput
from frazil.expr.quotes import literal
from frazil.sql.procedures import PROCEDURES, Procedure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.table.catalog import Catalog

EXECUTE: Final = "execute"
"""Carries out a statement that Spark has no grammar for."""
_TABLES: Final = ("table", "source_table")
_NUMBERS: Final = re.compile(r"-?\d+(\.\d+)?")


def names() -> list[str]:
    """What can be called."""
    return sorted(PROCEDURES)


def described(name: str) -> dict[str, Any]:
    """A procedure as Spark is told of it: every argument is a text, as Python reads them."""
    if name == EXECUTE:
        parameters = [_parameter("statement", required=True)]
        return {"name": name, "description": "Run a statement", "parameters": parameters}
    found = PROCEDURES.get(name.lower())
    if found is None:
        raise InvalidInput(f"procedure {name} does not exist; there are {', '.join(names())}")
    return {
        "name": name.lower(),
        "description": f"Frazil's {name.lower()}",
        "parameters": [
            _parameter(each, required=each in found.required) for each in found.arguments
        ],
    }


def called(spark: SparkSession, catalog: Catalog, own_name: str, request: Mapping[str, Any]) -> Any:
    """The answer as a frame."""
    name, arguments = request["name"], request["arguments"]
    if name == EXECUTE:
        result = catalog.sql(_without_catalog(arguments["statement"], own_name))
    else:
        found = PROCEDURES[name]
        given = ", ".join(
            f"{key} => {_value(_own(value, key, own_name), found, key)}"
            for key, value in arguments.items()
        )
        result = catalog.sql(f"CALL system.{name}({given})")
    return spark.createDataFrame(result.to_arrow())._jdf


def _without_catalog(statement: str, own_name: str) -> str:
    """The statement with names of tables that start from the catalog itself."""
    before = r"alter\s+table|create\s+table(?:\s+if\s+not\s+exists)?|show\s+partitions"
    named = rf"`?{own_name}`?\s*\."
    text = re.sub(rf"^(\s*(?:{before})\s+){named}", r"\1", statement, flags=re.I)
    if re.match(r"\s*create\s", text, flags=re.I):
        text = re.sub(rf"(\slike\s+){named}", r"\1", text, count=1, flags=re.I)
    return text


def _parameter(name: str, *, required: bool) -> dict[str, Any]:
    return {"name": name, "type": sql.StringType().json(), "required": required}


def _own(text: str, argument: str, own_name: str) -> str:
    """The name of a table without the catalog that the call names already."""
    return text.removeprefix(f"{own_name}.") if argument in _TABLES else text


def _value(text: str, procedure: Procedure, argument: str) -> str:
    kinds = procedure.arguments[argument]
    allowed = kinds if isinstance(kinds, tuple) else (kinds,)
    if bool in allowed and text.lower() in ("true", "false"):
        return text
    if (int in allowed or float in allowed) and _NUMBERS.fullmatch(text):
        return text
    return literal(text)
