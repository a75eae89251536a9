"""One spelling per place, to decide whether two paths are the same file or folder.

Local paths lose their scheme, `//`, `/./`, `/../` and symbolic links; paths of object stores lose
what their several schemes and doubled slashes add. Used to compare places, never to open a file:
an object is opened by the name it has. Also checks locations that people give, and reads names of
many files: patterns with `*`, and values in paths as Hive writes them.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from frazil.errors import InvalidInput
from frazil.storage.base import is_local, local_path

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):(//)?")
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "wasb"}
_MARKS = re.compile(r"[\x00-\x1f\x7f?#]")
NULL_IN_PATH: Final = "__HIVE_DEFAULT_PARTITION__"
_WILD: Final = re.compile(r"[*?\[]")


class Places:
    """Canonical paths. Remembers folders it has resolved, so make one for each operation."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def folder(self, path: str) -> str:
        """A folder, with a slash at its end."""
        folder_ = self._local(local_path(path)) if is_local(path) else _object(path)
        return folder_ if folder_.endswith("/") else f"{folder_}/"

    def file(self, path: str) -> str:
        """A file. A link in its place is not followed: deleting it deletes the link."""
        if not is_local(path):
            return _object(path)
        folder, name = posixpath.split(local_path(path))
        if name in ("", ".", ".."):
            return self._local(local_path(path))
        return posixpath.join(self._local(folder), name)

    def files(self, paths: pa.Array) -> tuple[pa.DictionaryArray, pa.Array]:
        """`file` for a column, as folders with a slash at the end and names in them: a folder is
        resolved once for all files in it."""
        import pyarrow as pa

        from frazil import arrow_compute as pc

        paths = paths.cast(pa.string())
        ends = pc.match_substring_regex(paths, r"(^|/)\.{0,2}$|^[^/]*$")
        is_odd = pc.any(ends).as_py()  # no folder and name to tell apart
        if is_odd:
            paths = pa.array([self.file(path) for path in paths.to_pylist()], pa.string())
        parts = pc.split_pattern(paths, "/", max_splits=1, reverse=True)
        folders = pc.list_element(parts, 0).dictionary_encode()
        spelled = folders.dictionary.to_pylist()
        resolved = [f"{folder}/" if is_odd else self.file(f"{folder}/x")[:-1] for folder in spelled]
        canonical = pa.DictionaryArray.from_arrays(folders.indices, pa.array(resolved, pa.string()))
        return canonical, pc.list_element(parts, 1)

    def _local(self, path: str) -> str:
        storage = self._known.get(path)
        if storage is None:
            self._known[path] = storage = self._resolved(path or "/")
        return storage

    def _resolved(self, path: str) -> str:
        """The folder above is known as a rule: one question to the system, not one per level."""
        above, name = posixpath.split(path)
        try:
            if not above or name in ("", ".", "..") or os.path.islink(path):
                return os.path.realpath(path)
        except ValueError:  # a zero byte: no such place, and none like it
            return path
        return posixpath.join(self._local(above), name)


def _object(path: str) -> str:
    match = _SCHEME.match(path)
    scheme = match.group(1).lower() if match else ""
    rest = path[match.end() :] if match else path
    store, slash, key = rest.partition("/")
    clean = posixpath.normpath(f"/{key}") if slash else ""
    return f"{_SAME_STORE.get(scheme, scheme)}://{store}{re.sub('^/+', '/', clean)}"


def same_store(one: str, other: str) -> bool:
    """Whether one storage serves both paths: both are local, or of one scheme."""
    return _store(one) == _store(other)


def _store(path: str) -> str:
    match = None if is_local(path) else _SCHEME.match(path)
    scheme = match.group(1).lower() if match else "file"
    return _SAME_STORE.get(scheme, scheme)


def checked_location(location: object, *, what: str = "location") -> str:
    """A location as it is stored: absolute, without `..`, doubled slashes and a slash at its end.

    A relative path is taken from the current folder. Refuses what names no folder.
    """
    if isinstance(location, os.PathLike):
        location = os.fspath(location)
    if not isinstance(location, str):
        raise InvalidInput(f"{what} is {location!r}; expected a path or URI as text")
    if not location.strip() or location != location.strip():
        raise InvalidInput(f"{what} is {location!r}; expected a path or URI without blank ends")
    if _MARKS.search(location) or not _is_utf8(location):
        raise InvalidInput(
            f"{what} is {location!r}; control characters, ?, # and invalid Unicode are not allowed"
        )
    match = _SCHEME.match(location)
    if match is not None and not is_local(location):
        return _checked_object(location, match, what)
    text = location if match is None else location[len("file:") :]
    if match is not None:
        text = text.removeprefix("//localhost")
        if not text.startswith("/") or re.match("//[^/]", text):
            raise InvalidInput(f"{what} is {location!r}; expected file:/// and an absolute path")
    if match is None and not text.startswith("/"):
        text = os.path.join(os.getcwd(), text)
    has_parent_segment = ".." in text.split("/")
    clean = (
        os.path.realpath(text) if has_parent_segment else posixpath.normpath(f"/{text.lstrip('/')}")
    )
    if clean == "/":
        raise InvalidInput(f"{what} is {location!r}, the root of the file system; name a folder")
    if match is None and location.startswith("/"):
        return clean
    is_short = match is not None and match.group(2) is None
    return f"file:{clean}" if is_short else f"file://{clean}"


def check_absolute(location: str) -> None:
    """Refuse a location that depends on where a program runs, or that names no folder."""
    text = location[len("file:") :] if location[:5].lower() == "file:" else location
    if is_local(location) and (not text.startswith("/") or not text.strip("/")):
        raise InvalidInput(f"{location!r} is not the absolute location of a folder")


def _checked_object(location: str, scheme: re.Match[str], what: str) -> str:
    store, _, key = location[scheme.end() :].partition("/")
    if not scheme.group(2) or not store:
        raise InvalidInput(f"{what} is {location!r}; expected a bucket, as in s3://bucket/folder")
    if ".." in key.split("/"):
        raise InvalidInput(f"{what} is {location!r}; a '..' segment is not allowed")
    parts = [part for part in key.split("/") if part not in ("", ".")]
    return "/".join([f"{scheme.group(1).lower()}://{store}", *parts])


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_pattern(path: str) -> bool:
    """Whether a path has `*`, `?` or `[` in it."""
    return _WILD.search(path) is not None


def root_of(pattern: str) -> str:
    """The folder to list for a pattern: what comes before its first wildcard."""
    first = _WILD.search(pattern)
    return pattern if first is None else pattern[: first.start()].rpartition("/")[0]


def matching(files: Iterable[str], pattern: str) -> list[str]:
    """Files that a pattern names, in order: `*` stands for any text without `/`, `**` for any."""
    expression = re.compile(_regex(pattern))
    return sorted(file for file in files if expression.fullmatch(file))


def visible(files: Iterable[str], folder: str, endings: Sequence[str]) -> list[str]:
    """Files below a folder with such endings, in order. What begins with `_` or `.` is hidden, as
    writers hide their own files and folders."""
    head = folder.rstrip("/") + "/"
    return sorted(
        file
        for file in files
        if file.lower().endswith(tuple(endings))
        and not any(part[:1] in ("_", ".") for part in file.removeprefix(head).split("/"))
    )


def values_in_path(path: str) -> dict[str, str | None]:
    """Values of folders such as `day=2024-01-01`; None for a folder of rows without a value."""
    pairs = [part.partition("=") for part in path.split("/")[:-1]]
    values = {unquote(name): unquote(value) for name, equals, value in pairs if equals and name}
    return {name: None if value == NULL_IN_PATH else value for name, value in values.items()}


def _regex(pattern: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            parts.append(".*")
            at += 2
        elif pattern[at] == "*":
            parts.append("[^/]*")
            at += 1
        elif pattern[at] == "?":
            parts.append("[^/]")
            at += 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 1)) > 0:
            inside = pattern[at + 1 : end].replace("\\", r"\\")
            parts.append(f"[{'^' + inside[1:] if inside.startswith('!') else inside}]")
            at = end + 1
        else:
            parts.append(re.escape(pattern[at]))
            at += 1
    return "".join(parts)
