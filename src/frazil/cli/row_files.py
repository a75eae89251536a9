"""Rows from files a user names, or from standard input: CSV, JSON (lines or an array), Parquet,
Arrow. Folders and patterns stand for the files in them; folders such as `day=2024-01-01` give
their files a column."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet

from frazil import arrow_compute as pc
from frazil.data.schema import arrow_schema
from frazil.errors import InvalidInput, NotFound
from frazil.maintenance.progress import Progress, silent
from frazil.storage.places import is_pattern, matching, root_of, values_in_path, visible
from frazil.table import Table
from frazil.text_format import first_line

ENDINGS: Final = (".csv", ".json", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather", ".arrows")


def read_rows(
    files: Sequence[Path], *, into: Table | None = None, progress: Progress = silent
) -> pa.Table:
    """All rows of the files; csv and json take the types of the table they go into."""
    schema = None if into is None else arrow_schema(into.metadata.schema())
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
            return _read_json(path.read_bytes() if content is None else content, name, schema)
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
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content), read_options=alone, convert_options=_options(texts)
        )
        for field in table.schema:
            if field.name in types:
                fitted(table.column(field.name), types[field.name], field.name, name, lines=2)
        raise


def _options(types: dict[str, pa.DataType]) -> pyarrow.csv.ConvertOptions:
    """An empty field is null; text that merely looks like it ("NA", a quoted "") stays text."""
    return pyarrow.csv.ConvertOptions(
        column_types=types,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


_ZONE: Final = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"
_TIME: Final = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)?$"
_GUESSES: Final = (pa.int64(), pa.date32())


def fitted(
    column: pa.ChunkedArray | pa.Array,
    kind: pa.DataType,
    name: str,
    file: str,
    *,
    lines: int | None,
) -> pa.ChunkedArray | pa.Array:
    """Text in a type. `lines` is the line of the first value, None where lines mean nothing."""
    if pa.types.is_string(kind):
        return column
    try:
        return cast(column, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        at = _first_misfit(column, kind)
        where = "" if lines is None else f", line {lines + at}"
        problem = f"{column[at].as_py()!r} is not of type {kind}"
        raise InvalidInput(f"{file}{where}, column {name!r}: {problem}") from None


def guessed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as numbers or dates if all of it is, else as it is. Numbers that begin with a zero
    would lose it."""
    if pc.any(pc.match_substring_regex(column, "^0[0-9]")).as_py():
        return column
    for kind in _GUESSES:
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return column


def is_time(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Which texts are a date with a time of day."""
    return pc.match_substring_regex(column, _TIME)


def has_zone(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Which texts of times say a zone."""
    return pc.match_substring_regex(column, _ZONE)


def cast(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """Text in a type; an Arrow error if a value does not fit."""
    if not pa.types.is_timestamp(kind):
        return column.cast(kind)
    zoned = has_zone(column)
    if kind.tz is None:
        if pc.any(zoned).as_py():
            raise pa.ArrowInvalid("a time with a zone")
        return column.cast(kind)
    # A time that says no zone is one of UTC, as everywhere in Frazil.
    return pc.if_else(zoned, column, pc.binary_join_element_wise(column, "Z", "")).cast(kind)


def _first_misfit(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> int:
    """The first value that cannot be cast, by halves."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            cast(column.slice(low, middle - low), kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            high = middle
        else:
            low = middle
    return low


def _read_json(content: bytes, name: str, schema: pa.Schema | None) -> pa.Table:
    """The rows; columns that the schema has get its types."""
    is_array = content[:1024].lstrip().startswith(b"[")
    if is_array:
        content = _as_lines(content, name)
    if not content.strip():
        raise InvalidInput(f"{name}: has no rows")
    declared = {} if schema is None else {field.name: field.type for field in schema}
    try:
        inferred = pyarrow.json.read_json(pa.BufferReader(content)).schema
        # Arrow's reader takes a zone in the text of a time and forgets it, and reads dates and
        # times of day as numbers only: they are read as text, and cast here.
        kinds = {field.name: declared.get(field.name, field.type) for field in inferred}
        explicit = pa.schema([(key, _as_text(kind)) for key, kind in kinds.items()])
        options = pyarrow.json.ParseOptions(explicit_schema=explicit)
        rows = pyarrow.json.read_json(pa.BufferReader(content), parse_options=options)
    except pa.ArrowInvalid as error:
        raise _located(content, name, declared, error, is_array=is_array) from error
    first = None if is_array else _first_line(content)
    for at, (key, kind) in enumerate(kinds.items()):
        column = rows.column(key)
        if key in declared and pa.types.is_string(column.type):
            typed = fitted(column, kind, key, name, lines=first)
        else:
            typed = _typed(column.combine_chunks(), kind, guesses=key not in declared)
        rows = rows.set_column(at, key, typed)
    return rows


def _as_lines(content: bytes, name: str) -> bytes:
    try:
        rows = json.loads(content)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{name}: {error}") from error
    return "\n".join(json.dumps(row) for row in rows).encode()


def _first_line(content: bytes) -> int | None:
    """The line of the first row; None where rows and lines do not go together."""
    lines = content.strip().split(b"\n")
    if any(not line.strip() for line in lines):
        return None
    return content[: len(content) - len(content.lstrip())].count(b"\n") + 1


def _as_text(kind: pa.DataType) -> pa.DataType:
    """A type whose dates and times are text."""
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _as_text(child.type)) for child in kind])
    if pa.types.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    return kind


def _typed(column: pa.Array, kind: pa.DataType, *, guesses: bool) -> pa.Array:
    """A column in its type. Where types are guessed, text of times becomes times: with a zone if
    all of them say one; it stays text if only some do."""
    if guesses and pa.types.is_string(column.type):
        return _times(column)
    if pa.types.is_struct(kind):
        children = [
            _typed(pc.struct_field(column, at), kind.field(at).type, guesses=guesses)
            for at in range(kind.num_fields)
        ]
        names = [child.name for child in kind]
        return pa.StructArray.from_arrays(children, names, mask=column.is_null())
    if pa.types.is_list(kind):
        inner = _typed(column.flatten(), kind.value_type, guesses=guesses)
        return pa.ListArray.from_arrays(_offsets(column), inner)
    return column if column.type == kind else cast(column, kind)


def _offsets(column: pa.Array) -> pa.Array:
    """Offsets of a list whose values are flattened; null where a list is."""
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    ends = pc.cumulative_sum(lengths).cast(pa.int32())
    starts = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    nulls = pa.concat_arrays([column.is_null(), pa.array([False])])
    return pc.if_else(nulls, pa.scalar(None, pa.int32()), starts)


def _times(column: pa.Array) -> pa.Array:
    if column.null_count == len(column) or not pc.all(is_time(column)).as_py():
        return column
    zoned = has_zone(column)
    if pc.all(zoned).as_py():
        return column.cast(pa.timestamp("us", "UTC"))
    return column if pc.any(zoned).as_py() else column.cast(pa.timestamp("us"))


def _located(
    content: bytes, name: str, declared: dict[str, Any], error: Exception, *, is_array: bool
) -> InvalidInput:
    """What is wrong, with the line and column if a look at each line finds them."""
    what = "row" if is_array else "line"
    for at, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as problem:
            return InvalidInput(f"{name}, {what} {at}: {problem}")
        if not isinstance(row, dict):
            return InvalidInput(f"{name}, {what} {at}: {line[:60]!r}; expected an object")
        for key, value in row.items():
            kind = declared.get(key)
            if kind is not None and not _takes(value, _as_text(kind)):
                return InvalidInput(
                    f"{name}, {what} {at}, column {key!r}: {value!r} is not of type {kind}"
                )
    return InvalidInput(f"{name}: {first_line(error)}")


def _takes(value: Any, kind: pa.DataType) -> bool:
    if value is None or pa.types.is_nested(kind) or pa.types.is_decimal(kind):
        return True
    try:
        pa.scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return not (isinstance(value, bool) and not pa.types.is_boolean(kind))
