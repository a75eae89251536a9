"""Rows from files a user names: csv, json (lines or an array), parquet, feather."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet

from frazil.data.schema import arrow_schema
from frazil.errors import InvalidInput, NotFound
from frazil.table import Table


def read_rows(files: Sequence[Path], *, into: Table | None = None) -> pa.Table:
    """All rows of the files; csv and json take the types of the table they go into."""
    wanted = None if into is None else arrow_schema(into.schema)
    parts = [_read(path, wanted) for path in files]
    return pa.concat_tables(parts, promote_options="permissive")


def _read(path: Path, wanted: pa.Schema | None) -> pa.Table:
    if not path.is_file():
        raise NotFound(f"{path}: no such file")
    ending = path.suffix.lower()
    try:
        if ending == ".csv":
            types = {} if wanted is None else {field.name: field.type for field in wanted}
            options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=True)
            return pyarrow.csv.read_csv(path, convert_options=options)
        if ending in (".json", ".jsonl", ".ndjson"):
            return _read_json(path, wanted)
        if ending == ".parquet":
            return pyarrow.parquet.read_table(path)
        if ending in (".arrow", ".feather"):
            return pyarrow.feather.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path}: {str(error).splitlines()[0]}") from error
    raise InvalidInput(f"{path}: expected a .csv, .json, .jsonl, .parquet or .arrow file")


def _read_json(path: Path, wanted: pa.Schema | None) -> pa.Table:
    with path.open("rb") as stream:
        is_array = stream.read(1024).lstrip().startswith(b"[")
    if is_array:
        import json

        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{path}: {error}") from error
        return pa.Table.from_pylist(rows)
    options = None
    if wanted is not None:
        options = pyarrow.json.ParseOptions(
            explicit_schema=wanted, unexpected_field_behavior="infer"
        )
    return pyarrow.json.read_json(path, parse_options=options)
