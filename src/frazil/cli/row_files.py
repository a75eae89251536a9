"""Rows from files a user names, or from standard input: CSV, JSON (lines or an array), Parquet,
Arrow. Folders and patterns stand for the files in them; folders such as `day=2024-01-01` give
their files a column."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from frazil.cli import json_rows
from frazil.cli.typed_text import fitted, guessed
from frazil.data.schema import arrow_schema
from frazil.errors import InvalidInput, NotFound
from frazil.maintenance.progress import Progress, silent
from frazil.storage.patterns import is_pattern, matching, root_of, values_in_path, visible
from frazil.table import Table
from frazil.text_format import first_line

ENDINGS: Final = (".csv", ".json", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather", ".arrows")


def read_rows(
    files: Sequence[Path], *, into: Table | None = None, progress: Progress = silent
) -> pa.Table:
    """All rows of the files; csv and json take the types of the table they go into."""
    schema = None if into is None else arrow_schema(into.schema)
    sources = [(path, root) for name in files for path, root in _expanded(name)]
    parts: list[pa.Table] = []
    for at, (path, root) in enumerate(sources):
        progress(at, len(sources), "files read")
        rows = _read(path, schema)
        parts.append(_with_values_of_path(rows, path.relative_to(root), schema) if root else rows)
    progress(len(sources), len(sources), "files read")
    return _with_guessed(pa.concat_tables(parts, promote_options="permissive"), schema)


def _expanded(name: Path) -> Iterator[tuple[Path, Path | None]]:
    """The files that a name stands for, and the folder that was named."""
    text = name.as_posix()
    if text == "-" or name.is_file():
        yield name, None
        return
    if name.is_dir():
        folder, names = name, visible(_walked(name), text, ENDINGS)
        missing = f"{name}: no files that can be read; expected {', '.join(ENDINGS)}"
    elif is_pattern(text):
        folder = Path(root_of(text) or ".")
        names = matching(_walked(folder), text)
        missing = f"{name}: no file matches"
    else:
        raise NotFound(f"{name}: no such file")
    if not names:
        raise NotFound(missing)
    yield from ((Path(path), folder) for path in names)


def _walked(folder: Path) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        yield from (Path(place, name).as_posix() for name in names)


_FROM_PATH: Final = b"frazil.from-path"


def _with_values_of_path(rows: pa.Table, path: Path, schema: pa.Schema | None) -> pa.Table:
    """The rows with columns for the folders of their file, unless the file has them itself."""
    for name, value in values_in_path(path.as_posix()).items():
        if name in rows.column_names:
            continue
        column = pa.repeat(pa.scalar(value, pa.string()), rows.num_rows)
        at = -1 if schema is None else schema.get_field_index(name)
        field = pa.field(name, pa.string(), metadata={_FROM_PATH: b""})
        if schema is not None and at >= 0:
            column = fitted(column, schema.field(at).type, name, str(path), lines=None)
            field = pa.field(name, column.type)
        rows = rows.append_column(field, column)
    return rows


def _with_guessed(rows: pa.Table, schema: pa.Schema | None) -> pa.Table:
    """Values of paths for a table that is new, as numbers or dates if all of them are."""
    if schema is not None:
        return rows
    for at, field in enumerate(rows.schema):
        if field.metadata and _FROM_PATH in field.metadata:
            rows = rows.set_column(at, field.name, guessed(rows.column(at)))
    return rows


def _read(path: Path, schema: pa.Schema | None) -> pa.Table:
    if str(path) == "-":
        content = sys.stdin.buffer.read()
        name, ending = "standard input", _ending_of(content)
    else:
        name, ending, content = str(path), path.suffix.lower(), None
    try:
        source = path if content is None else pa.BufferReader(content)
        if ending == ".csv":
            return _read_csv(path.read_bytes() if content is None else content, name, schema)
        if ending in (".json", ".jsonl", ".ndjson"):
            return json_rows.read(path.read_bytes() if content is None else content, name, schema)
        if ending == ".parquet":
            return pyarrow.parquet.ParquetFile(source).read()
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


def _read_csv(content: bytes, name: str, schema: pa.Schema | None) -> pa.Table:
    types = {} if schema is None else {field.name: field.type for field in schema}
    try:
        return pyarrow.csv.read_csv(pa.BufferReader(content), convert_options=_options(types))
    except pa.ArrowInvalid:
        # Read by one thread, lines are numbered; read as text, the value that does not fit is seen.
        alone = pyarrow.csv.ReadOptions(use_threads=False)
        texts = dict.fromkeys(types, pa.string())
        read = pyarrow.csv.read_csv(
            pa.BufferReader(content), read_options=alone, convert_options=_options(texts)
        )
        for field in read.schema:
            if field.name in types:
                fitted(read.column(field.name), types[field.name], field.name, name, lines=2)
        raise


def _options(types: dict[str, pa.DataType]) -> pyarrow.csv.ConvertOptions:
    """An empty field is null; text that merely looks like it ("NA", a quoted "") stays text."""
    return pyarrow.csv.ConvertOptions(
        column_types=types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
