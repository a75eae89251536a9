"""Locations in metadata: relative to the table where they lie under it, absolute elsewhere.

Knows how a stored path and the table location make the address of a file, and back. Paths are
opaque text: percent signs, repeated slashes and case are never touched. Knows nothing of file
systems.

- A path that starts with a URI scheme is absolute and used as it is. One with a `..` segment is
  refused: it would pass for a file of the folder that it leads out of.
- Anything else is relative: table location + `/` + path. It has no `.` or `..` segment, so it
  cannot leave the table.
- `file:/x`, `file:///x` and a bare `/x` are one local file. This is the only case in which two
  spellings are taken as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from frazil.errors import FormatError, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

# Written once, for `re` and for Arrow's RE2 alike.
_SCHEME_PATTERN = r"^[A-Za-z][A-Za-z0-9+.\-]*:"
_DOT_PATTERN = r"(^|/)\.\.?(/|$)"
_UP_PATTERN = r"(^|/|:)\.\.(/|$)"
_LOCAL_PATTERN = r"^(?i:file):(//)?/([^/]|$)"
_LOCAL_PREFIX = r"^(?i:file):(//)?/"

_LOCALHOST = "file://localhost"

_scheme = re.compile(_SCHEME_PATTERN)
_dot_segment = re.compile(_DOT_PATTERN)
_up_segment = re.compile(_UP_PATTERN)
_local = re.compile(_LOCAL_PATTERN)
_local_prefix = re.compile(_LOCAL_PREFIX)
_root = re.compile(_SCHEME_PATTERN + r"(//[^/]*)?")


def is_absolute(path: str) -> bool:
    """Whether a path in v4 metadata stands for itself: whether it starts with a URI scheme."""
    return _scheme.match(path) is not None


def scheme(path: str) -> str | None:
    """The URI scheme of a path in lower case, or None when it has none."""
    match = _scheme.match(path)
    return match.group(0)[:-1].lower() if match else None


def resolve(location: str, path: str) -> str:
    """The address of the file that v4 metadata of the table at `location` calls `path`."""
    if is_absolute(path):
        check_absolute(path)
        return path
    _check_relative(path)
    return f"{_base(location)}/{path}"


def check_absolute(path: str) -> None:
    """Refuse an absolute path that leads up: what it names is not where it seems to lie."""
    if _up_segment.search(path):
        raise _upward(path)


def relativise(location: str, path: str) -> str:
    """How v4 metadata of the table at `location` stores the address `path`.

    Relative when it lies strictly under the location. A bare local path elsewhere is given the
    location's scheme, or `file`: without one it would be read as relative. A path that is already
    relative stays.
    """
    if path.startswith("/") or is_absolute(path):
        check_absolute(path)
    base = _base(_as_local(location))
    address = _as_local(resolve_legacy(location, path) if path.startswith("/") else path)
    if address.startswith(f"{base}/"):
        tail = address[len(base) + 1 :]
        if _dot_segment.search(tail):
            raise _dotted(path)
        if tail and not is_absolute(tail):
            return tail
    if path.startswith("/"):
        return f"{_root_of(location)}{path}"
    if not is_absolute(path):
        _check_relative(path)
    return path


def resolve_legacy(location: str, path: str) -> str:
    """The address of a file that a v1 to v3 manifest of the table at `location` calls `path`.

    Such paths are absolute; one without a scheme is given the table location's, with its host or
    bucket.
    """
    root = _root.match(location)
    check_absolute(path)
    if is_absolute(path) or root is None:
        return path
    if not path.startswith("/"):
        raise FormatError("must be absolute or have a scheme", path=path)
    return root.group(0) + path


def resolve_all(location: str, paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """`resolve` for a column; nulls stay null."""
    from frazil import arrow_compute as pc

    absolute = pc.match_substring_regex(paths, _SCHEME_PATTERN)
    _check_all(paths, absolute)
    joined = pc.binary_join_element_wise(_text(_base(location), paths), paths, _text("/", paths))
    return pc.if_else(absolute, paths, joined)


def which_absolute(paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """`is_absolute` for a column."""
    from frazil import arrow_compute as pc

    return pc.match_substring_regex(paths, _SCHEME_PATTERN)


def absolute_ones(paths: pa.ChunkedArray) -> list[str]:
    """The paths of a column that stand for themselves, each once. Refuses what leads out."""
    from frazil import arrow_compute as pc

    absolute = pc.match_substring_regex(paths, _SCHEME_PATTERN)
    _check_all(paths, absolute)
    locations: list[str] = pc.unique(pc.filter(paths, absolute)).to_pylist()
    return locations


def relativise_all(location: str, paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """`relativise` for a column; nulls stay null."""
    from frazil import arrow_compute as pc

    base = _base(_as_local(location))
    absolute = pc.match_substring_regex(paths, _SCHEME_PATTERN)
    bare = pc.starts_with(paths, "/")
    _refuse(paths, _leads_up(paths, pc.or_(absolute, bare)), _upward)
    root = _text(_root_of(location), paths)
    rooted = pc.if_else(bare, pc.binary_join_element_wise(root, paths, _text("", paths)), paths)
    is_local = pc.match_substring_regex(rooted, _LOCAL_PATTERN)
    addresses = pc.if_else(is_local, pc.replace_substring_regex(rooted, _LOCAL_PREFIX, "/"), rooted)

    under = pc.starts_with(addresses, f"{base}/")
    tails = pc.utf8_slice_codeunits(addresses, len(base) + 1)
    dotted = pc.and_(under, pc.match_substring_regex(tails, _DOT_PATTERN))
    _refuse(paths, dotted, _dotted)
    relative = pc.and_not(under, pc.match_substring_regex(tails, f"^$|{_SCHEME_PATTERN}"))
    _check_all_relative(paths, pc.invert(pc.or_(relative, pc.or_(absolute, bare))))
    return pc.if_else(relative, tails, rooted)


def stored_exactly(location: str, paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """How v4 metadata stores addresses that another writer knows by their very text; nulls stay.

    Relative only where the text begins with the location. A bare local path elsewhere is stored as
    `file://localhost/…` and one without a root as `file:…`, spellings that are not in use, so that
    `spelled` gives them back.
    """
    from frazil import arrow_compute as pc

    base = _base(location)
    under = pc.starts_with(paths, f"{base}/")
    tails = pc.utf8_slice_codeunits(paths, len(base) + 1)
    odd = pc.match_substring_regex(tails, f"^$|{_SCHEME_PATTERN}|{_DOT_PATTERN}")
    relative = pc.and_not(under, odd)
    bare = pc.starts_with(paths, "/")
    is_stored = pc.or_(relative, pc.match_substring_regex(paths, _SCHEME_PATTERN))
    _refuse(paths, pc.equal(paths, _text("", paths)), _empty)
    root = pc.if_else(bare, _text(_LOCALHOST, paths), _text("file:", paths))
    rooted = pc.binary_join_element_wise(root, paths, _text("", paths))
    return pc.if_else(is_stored, pc.if_else(relative, tails, paths), rooted)


def spelled(location: str, paths: pa.ChunkedArray) -> pa.ChunkedArray:
    """The addresses of a column as other writers know them: `stored_exactly` undone."""
    from frazil import arrow_compute as pc

    rooted = pc.replace_substring_regex(resolve_all(location, paths), f"^{_LOCALHOST}/", "/")
    return pc.replace_substring_regex(rooted, r"^file:([^/])", r"\1")


def _base(location: str) -> str:
    """The location without its trailing slashes; those of a bare `s3://` or `file://` stay."""
    if not location:
        raise InvalidInput("the table location is empty")
    root = _root.match(location)
    head = len(root.group(0)) if root else 0
    return location[:head] + location[head:].rstrip("/")


def _root_of(location: str) -> str:
    """What turns a bare local path into an absolute one for a table at `location`."""
    root = _root.match(location)
    return root.group(0) if root else "file://"


def _as_local(path: str) -> str:
    return _local_prefix.sub("/", path) if _local.match(path) else path


def _check_relative(path: str) -> None:
    if not path:
        raise _empty(path)
    if _dot_segment.search(path):
        raise _dotted(path)


def _check_all(paths: pa.ChunkedArray, absolute: pa.ChunkedArray) -> None:
    from frazil import arrow_compute as pc

    _check_all_relative(paths, pc.invert(absolute))
    _refuse(paths, _leads_up(paths, absolute), _upward)


def _leads_up(paths: pa.ChunkedArray, absolute: pa.ChunkedArray) -> pa.ChunkedArray:
    from frazil import arrow_compute as pc

    if not pc.any(absolute).as_py():  # as a rule: the pattern is looked for in no text
        return absolute
    return pc.and_(absolute, pc.match_substring_regex(paths, _UP_PATTERN))


def _check_all_relative(paths: pa.ChunkedArray, relative: pa.ChunkedArray) -> None:
    from frazil import arrow_compute as pc

    _refuse(paths, pc.and_(relative, pc.equal(paths, _text("", paths))), _empty)
    _refuse(paths, pc.and_(relative, pc.match_substring_regex(paths, _DOT_PATTERN)), _dotted)


def _refuse(
    paths: pa.ChunkedArray, bad: pa.ChunkedArray, problem: Callable[[str], FormatError]
) -> None:
    from frazil import arrow_compute as pc

    if pc.any(bad).as_py():
        raise problem(pc.filter(paths, bad)[0].as_py())


def _text(value: str, like: pa.ChunkedArray) -> pa.Scalar:

    from frazil import arrow_values  # only here is Arrow at hand

    return arrow_values.scalar(value, like.type)


def _dotted(path: str) -> FormatError:
    return FormatError("has a '.' or '..' segment; a relative path must not", path=path)


def _upward(path: str) -> FormatError:
    return FormatError("has a '..' segment, which could lead out of its folder", path=path)


def _empty(path: str) -> FormatError:
    return FormatError("the path is empty", path=path or "''")
