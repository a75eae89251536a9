"""CALL frazil.system.…: the procedures of `frazil.sql`, offered to Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types as sql

from frazil.errors import InvalidInput
from frazil.sql.procedures import PROCEDURES, Procedure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from frazil.table.catalog import Catalog

EXECUTE: Final = "execute"
"""Carries out a statement that Spark has no grammar for."""
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
        text = re.sub(
            rf"^(\s*alter\s+table\s+)`?{own_name}`?\s*\.", r"\1", arguments["statement"], flags=re.I
        )
        result = catalog.sql(text)
    else:
        found = PROCEDURES[name]
        given = ", ".join(
            f"{key} => {_value(_own(value, key, own_name), found, key)}"
            for key, value in arguments.items()
        )
        result = catalog.sql(f"CALL system.{name}({given})")
    return spark.createDataFrame(result.to_arrow())._jdf


def _parameter(name: str, *, required: bool) -> dict[str, Any]:
    return {"name": name, "type": sql.StringType().json(), "required": required}


def _own(text: str, argument: str, own_name: str) -> str:
    """The name of a table without the catalog that the call names already."""
    return text.removeprefix(f"{own_name}.") if argument == "table" else text


def _value(text: str, procedure: Procedure, argument: str) -> str:
    kinds = procedure.arguments[argument]
    allowed = kinds if isinstance(kinds, tuple) else (kinds,)
    if bool in allowed and text.lower() in ("true", "false"):
        return text
    if (int in allowed or float in allowed) and _NUMBERS.fullmatch(text):
        return text
    return "'" + text.replace("'", "''") + "'"
