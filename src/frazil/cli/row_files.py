"""Rows from files a user names: csv, json (lines or an array), parquet, feather."""

from __future__ import annotations

import json
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
    content = path.read_bytes()
    if content[:1024].lstrip().startswith(b"["):
        try:
            rows = json.loads(content)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{path}: {error}") from error
        content = "\n".join(json.dumps(row) for row in rows).encode()
    if not content.strip():
        raise InvalidInput(f"{path}: has no rows")
    found = pyarrow.json.read_json(pa.BufferReader(content))
    if wanted is None:
        return found
    named = [field for field in wanted if field.name in found.column_names]
    options = pyarrow.json.ParseOptions(
        explicit_schema=pa.schema([field.with_type(_as_parsed(field.type)) for field in named]),
        unexpected_field_behavior="infer",
    )
    parsed = pyarrow.json.read_json(pa.BufferReader(content), parse_options=options)
    for field in named:
        at = parsed.schema.get_field_index(field.name)
        if parsed.schema.field(at).type != field.type:
            parsed = parsed.set_column(at, field.name, parsed.column(at).cast(field.type))
    return parsed


def _as_parsed(kind: pa.DataType) -> pa.DataType:
    """The type Arrow's JSON reader parses text to; it takes dates and times only as numbers."""
    if pa.types.is_date(kind):
        return pa.timestamp("s")
    return pa.string() if pa.types.is_time(kind) else kind
