"""Rows from files a user names, or from standard input: CSV, JSON (lines or an array), Parquet,
Arrow."""

from __future__ import annotations

import json
import sys
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
from frazil.words import first_line


def read_rows(files: Sequence[Path], *, into: Table | None = None) -> pa.Table:
    """All rows of the files; csv and json take the types of the table they go into."""
    wanted = None if into is None else arrow_schema(into.schema)
    parts = [_read(path, wanted) for path in files]
    return pa.concat_tables(parts, promote_options="permissive")


def _read(path: Path, wanted: pa.Schema | None) -> pa.Table:
    if str(path) == "-":
        content = sys.stdin.buffer.read()
        name, ending = "standard input", _ending_of(content)
    elif path.is_file():
        name, ending, content = str(path), path.suffix.lower(), None
    else:
        raise NotFound(f"{path}: no such file")
    try:
        source = path if content is None else pa.BufferReader(content)
        if ending == ".csv":
            return pyarrow.csv.read_csv(source, convert_options=_csv_options(wanted))
        if ending in (".json", ".jsonl", ".ndjson"):
            return _read_json(path.read_bytes() if content is None else content, name, wanted)
        if ending == ".parquet":
            return pyarrow.parquet.read_table(source)
        if ending in (".arrow", ".feather"):
            return pyarrow.feather.read_table(source)
        if ending == ".arrows":
            return pa.ipc.open_stream(source).read_all()
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{name}: {first_line(error)}") from error
    raise InvalidInput(f"{name}: expected a .csv, .json, .jsonl, .parquet, .arrow or .arrows file")


def _ending_of(content: bytes) -> str:
    """The format of what came without a name, by how it begins."""
    magic = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\xff\xff\xff\xff": ".arrows"}
    for start, ending in magic.items():
        if content.startswith(start):
            return ending
    return ".json" if content.lstrip()[:1] in (b"{", b"[") else ".csv"


def _csv_options(wanted: pa.Schema | None) -> pyarrow.csv.ConvertOptions:
    """An empty field is null; text that merely looks like it ("NA", a quoted "") stays text."""
    types = {} if wanted is None else {field.name: field.type for field in wanted}
    return pyarrow.csv.ConvertOptions(
        column_types=types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def _read_json(content: bytes, name: str, wanted: pa.Schema | None) -> pa.Table:
    if content[:1024].lstrip().startswith(b"["):
        try:
            rows = json.loads(content)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{name}: {error}") from error
        content = "\n".join(json.dumps(row) for row in rows).encode()
    if not content.strip():
        raise InvalidInput(f"{name}: has no rows")
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
