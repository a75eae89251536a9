"""Bodies of requests as values: JSON of a known shape, bounded in depth and number of values."""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np

from frazil.serve.limits import MAX_JSON_DEPTH, MAX_JSON_VALUES, MIB
from frazil.serve.rest_errors import bad_request

Shape = TypeVar("Shape")

_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_QUOTE, _COMMA = b'",'


def decoded(data: bytes, shape: type[Shape], *, max_depth: int = MAX_JSON_DEPTH) -> Shape:
    """A body as a shape; 400 when it is not one, so deep that what reads it would fail, or of so
    many values that they would take much more memory than their text."""
    depth, values = _size(data, skips_texts=False)
    if depth > max_depth or values > MAX_JSON_VALUES:
        depth, values = _size(data, skips_texts=True)
    if depth > max_depth:
        raise bad_request(f"Malformed request: nested more than {max_depth} levels deep")
    if values > MAX_JSON_VALUES:
        raise bad_request(f"Malformed request: more than {MAX_JSON_VALUES} values")
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"Malformed request: {error}") from error


def _size(data: bytes, *, skips_texts: bool) -> tuple[int, int]:
    """How deep brackets are nested, and how many values commas part. A piece at a time: what is
    measured may be too large."""
    if skips_texts:
        data = data.replace(rb"\\", b"").replace(rb"\"", b"")
    deepest = level = in_text = 0
    values = 1
    for start in range(0, len(data), MIB):
        piece = np.frombuffer(data, dtype=np.uint8, count=min(MIB, len(data) - start), offset=start)
        if skips_texts:
            inside = np.cumsum(piece == _QUOTE, dtype=np.int32) + in_text
            in_text = int(inside[-1]) % 2
            piece = piece[inside % 2 == 0]
        if len(piece):
            levels = np.cumsum(_STEPS[piece], dtype=np.int32)
            deepest = max(deepest, level + int(levels.max()))
            level += int(levels[-1])
            values += int(np.count_nonzero(piece == _COMMA))
    return deepest, values
