"""Files below some folders, for paths that come from outside.

A path becomes an `AllowedPath` in `Fence.allowed` and nowhere else. A local one is a folder of the
fence and a path below it, and is opened from that folder component by component without following
links: what was checked is what is opened, whatever somebody puts in its place meanwhile. Objects of
a store have no links; they are compared in one spelling and opened as they are named.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from frazil.errors import Forbidden, NotFound
from frazil.storage.base import (
    Counted,
    Counters,
    FileInfo,
    NewFile,
    RandomAccess,
    Storage,
    explained,
    is_local,
    local_path,
)
from frazil.storage.local import (
    LocalFile,
    children_in,
    close_durably,
    forget_synced,
    info_of,
    names_in,
    sync_name,
    write_all,
)
from frazil.storage.places import Places
from frazil.storage.streams import Sink
from frazil.value_classes import field, frozen

if TYPE_CHECKING:
    import pyarrow as pa

    from frazil.limits import Limits

_SEAL: Final = object()
_LINKED: Final = frozenset({errno.ELOOP, errno.EMLINK})
_NO_LINK: Final = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS}
)
"""Another disk, a file of somebody else, too many links, or no links at all."""
_COPY_BYTES: Final = 8 << 20
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe in a file's place would otherwise keep a thread waiting for its other end.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@frozen
class AllowedPath:
    """A path that a fence let through: `text` as it was spelled; of a local one also the folder of
    the fence and the path below it."""

    text: str
    root: str | None = None
    tail: str = ""
    _seal: object = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self._seal is not _SEAL:
            raise TypeError("only Fence.allowed makes an AllowedPath")


class Fence:
    """Folders in which files may be used, but for folders in them that are `excluded`: of several
    that a path lies in, the innermost decides. Links below them are not followed, unless they lead
    into one of the `linked` folders, which whoever runs the server has named."""

    def __init__(
        self,
        folders: Iterable[str],
        *,
        linked: Iterable[str] = (),
        excluded: Iterable[str] = (),
    ) -> None:
        self._places = Places()
        linked = [folder for folder in linked if folder]
        places = [*(folder for folder in folders if folder), *linked]
        # Only outermost folders are resolved: one inside another is reached from there, so that
        # a link in its place leads nowhere.
        self._roots: list[tuple[str, str]] = []
        inner: list[str] = []
        for text in sorted({_normal(folder) for folder in places if is_local(folder)}, key=len):
            outer = self._outer(text)
            if outer is None:
                real = self._real(text)
                self._roots += [(text, real)] if text == real else [(text, real), (real, real)]
                inner.append(real)
            else:
                inner.append(posixpath.join(*outer))
        self._linked = sorted({self._real(path) for path in linked if is_local(path)}, key=len)
        objects = [self._places.folder(folder) for folder in places if not is_local(folder)]
        self._allowed = (*(f"{folder.rstrip('/')}/" for folder in inner), *objects)
        self._excluded = tuple({self._places.folder(folder) for folder in excluded})
        self._folders: dict[str, tuple[str, str] | None] = {}

    def __contains__(self, path: str) -> bool:
        try:
            self.allowed(path)
        except Forbidden:
            return False
        return True

    def allowed(self, path: str) -> AllowedPath:
        """The path, if it lies in one of the folders or is one; Forbidden otherwise."""
        if not path or "\0" in path or _climbs(path):
            raise _outside(path)
        if not is_local(path):
            if not self._is_allowed(self._places.folder(path)):
                raise _outside(path)
            return AllowedPath(text=path, _seal=_SEAL)
        text = _normal(os.path.abspath(local_path(path)))  # as opening it would take it
        place = self._place(text) if self._is_root(text) else self._below(*posixpath.split(text))
        if place is None or not self._is_allowed(f"{posixpath.join(*place).rstrip('/')}/"):
            raise _outside(path)
        return AllowedPath(text=path, root=place[0], tail=place[1], _seal=_SEAL)

    def _is_allowed(self, canonical: str) -> bool:
        """Whether the innermost folder that a place lies in is allowed."""
        inside = max(
            (len(folder) for folder in self._allowed if canonical.startswith(folder)), default=0
        )
        return inside > max(
            (len(folder) for folder in self._excluded if canonical.startswith(folder)), default=0
        )

    def _is_root(self, text: str) -> bool:
        return any(text == spelled for spelled, _ in self._roots)

    def _outer(self, text: str) -> tuple[str, str] | None:
        """The folder of the fence that a path is spelled to lie in, and the path below it."""
        for spelled, real in self._roots:
            if text == spelled or text.startswith(f"{spelled.rstrip('/')}/"):
                return real, text[len(spelled) :].lstrip("/")
        return None

    def _below(self, parent: str, name: str) -> tuple[str, str] | None:
        """Where a file of a folder is. Folders are looked at once: opening goes without links in
        any case, so that what changes meanwhile is refused there."""
        if parent not in self._folders:
            self._folders[parent] = self._place(parent)
        folder = self._folders[parent]
        if folder is None:
            return None
        root, tail = folder
        path_below = f"{tail}/{name}" if tail else name
        path = posixpath.join(root, path_below)
        return self._followed(path) if os.path.islink(path) else (root, path_below)

    def _place(self, text: str) -> tuple[str, str] | None:
        """The folder of the fence that a path lies in, and the path below it."""
        outer = self._outer(text)
        if outer is not None:
            return self._followed(posixpath.join(*outer)) if _has_link(*outer) else outer
        # Another spelling: links above a folder of the fence are those of the machine.
        above, tail = text, ""
        roots = {real for _, real in self._roots}
        while above != "/":
            real = os.path.realpath(above)
            if real in roots:
                return None if _has_link(real, tail) else (real, tail)
            above, name = posixpath.split(above)
            tail = f"{name}/{tail}" if tail else name
        return None

    def _followed(self, path: str) -> tuple[str, str] | None:
        """Where a link leads, if that is one of the folders that may be linked to."""
        real = os.path.realpath(path)
        for root in self._linked:
            if real == root or real.startswith(f"{root.rstrip('/')}/"):
                return root, real[len(root) :].lstrip("/")
        return None

    def _real(self, folder: str) -> str:
        return self._places.folder(folder).rstrip("/") or "/"


def _normal(path: str) -> str:
    return posixpath.normpath(f"/{local_path(path).lstrip('/')}")


def _climbs(path: str) -> bool:
    """Whether a path has a segment that leads up, spelled out or encoded."""
    return any(
        part in (".", "..") and (part == ".." or "%" in segment)
        for segment in path.split("/")
        for part in unquote(segment).replace("\\", "/").split("/")
    )


def _outside(path: str) -> Forbidden:
    return Forbidden(f"{path}: lies outside the warehouse and the locations this request may use")


def _has_link(root: str, tail: str) -> bool:
    """Whether something on the way below a folder is a link; what is not there is none."""
    at = root
    for name in tail.split("/") if tail else ():
        at = posixpath.join(at, name)
        if os.path.islink(at):
            return True
    return False


# --- files -------------------------------------------------------------------------------------


@contextmanager
def _folder_of(path: AllowedPath, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """The open folder of a file, and its name there."""
    *folders, name = path.tail.split("/")
    root = path.root or "/"
    if create:
        os.makedirs(root, exist_ok=True)
    at = os.open(root, _FOLDER)
    try:
        for folder in folders:
            try:
                inner = os.open(folder, _FOLDER, dir_fd=at)
            except FileNotFoundError:
                if not create:
                    raise
                _make_folder(folder, at)
                forget_synced(posixpath.dirname(_whole(path)))
                inner = os.open(folder, _FOLDER, dir_fd=at)
            except OSError as error:
                raise _not_followed(error, path, folder, at) from error
            os.close(at)
            at = inner
        yield at, name
    finally:
        os.close(at)


def _whole(path: AllowedPath) -> str:
    return posixpath.join(path.root or "/", path.tail)


def _make_folder(name: str, at: int) -> None:
    with suppress(FileExistsError):  # somebody else made it
        os.mkdir(name, dir_fd=at)


def _not_followed(error: OSError, path: AllowedPath, name: str, at: int) -> Exception:
    """Links are told apart from what else can be wrong with a folder."""
    try:
        is_link = stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)
    except OSError:
        is_link = False
    return _outside(path.text) if is_link or error.errno in _LINKED else error


def _opened(path: AllowedPath) -> int:
    """A regular file for reading; nothing else is one."""
    with _folder_of(path) as (folder, name):
        try:
            handle = os.open(name, _READ, dir_fd=folder)
        except OSError as error:
            raise _not_followed(error, path, name, folder) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotFound(f"{path.text}: no such file")
    return handle


@contextmanager
def _entries_of(path: AllowedPath) -> Iterator[Iterator[os.DirEntry[str]]]:
    """What lies in a folder."""
    with _folder_of(path) as (above, name):
        handle = os.open(name or ".", _FOLDER, dir_fd=above)
        try:
            with os.scandir(handle) as entries:
                yield entries
        finally:
            os.close(handle)


def _stat(path: AllowedPath) -> os.stat_result:
    with _folder_of(path) as (folder, name):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _linked(source: AllowedPath, target: AllowedPath) -> bool:
    """Give a file a second name; False where the system does not."""
    with (
        explained(target.text, "write"),
        _folder_of(source) as (folder, name),
        _folder_of(target, create=True) as (other, link),
    ):
        try:
            os.link(name, link, src_dir_fd=folder, dst_dir_fd=other, follow_symlinks=False)
        except OSError as error:
            if error.errno in _NO_LINK:
                return False
            raise
        sync_name(_whole(target))
    return True


class FencedStorage:
    """A storage whose every path is first let through a fence. Calls are counted by the storage
    that it stands in front of."""

    is_direct = False
    """Nothing may open a path of it by itself."""

    def __init__(self, inner: Storage, fence: Fence) -> None:
        self._inner = inner
        self._fence = fence

    def __repr__(self) -> str:
        return f"FencedStorage({self._inner!r})"

    @property
    def counters(self) -> Counters:
        return self._inner.counters

    @property
    def limits(self) -> Limits:
        return self._inner.limits

    def recording(self) -> Any:
        return self._inner.recording()

    @property
    def _counted(self) -> Counted:
        assert isinstance(self._inner, Counted)
        return self._inner

    def read(self, path: str) -> bytes:
        allowed = self._fence.allowed(path)
        if allowed.root is None:
            return self._inner.read(path)
        with explained(path, "read"), os.fdopen(_opened(allowed), "rb") as stream:
            data = stream.read()
        self._counted.count("read", path, len(data))
        return data

    def open(self, path: str, *, size: int | None = None) -> RandomAccess:
        allowed = self._fence.allowed(path)
        if allowed.root is None:
            return self._inner.open(path, size=size)
        with explained(path, "read"):
            handle = _opened(allowed)
            return LocalFile(self._counted, path, handle, os.fstat(handle).st_size)

    def write_new(self, path: str, data: bytes | pa.Buffer) -> None:
        allowed = self._fence.allowed(path)
        if allowed.root is None:
            self._inner.write_new(path, data)
            return
        with explained(path, "write"), _folder_of(allowed, create=True) as (folder, name):
            handle = os.open(name, _CREATE, 0o644, dir_fd=folder)
            try:
                write_all(handle, memoryview(data))
                os.fsync(handle)
                sync_name(_whole(allowed))
            except BaseException:
                os.close(handle)
                os.unlink(name, dir_fd=folder)
                raise
            os.close(handle)
        self._counted.count("write", path, len(data))

    def create(self, path: str) -> NewFile:
        allowed = self._fence.allowed(path)
        if allowed.root is None:
            return self._inner.create(path)
        with explained(path, "write"), _folder_of(allowed, create=True) as (folder, name):
            handle = os.open(name, _CREATE, 0o644, dir_fd=folder)
        return Sink(
            self._counted,
            path,
            write=lambda view: write_all(handle, view),
            close=lambda: close_durably(handle, _whole(allowed)),
            abort=lambda: os.close(handle),
        )

    def exists(self, path: str) -> bool:
        allowed = self._fence.allowed(path)
        if allowed.root is None:
            return self._inner.exists(path)
        self._counted.count("head", path)
        try:
            return stat.S_ISREG(_stat(allowed).st_mode)
        except OSError:
            return False

    def size(self, path: str) -> int:
        allowed = self._fence.allowed(path)
        if allowed.root is None:
            return self._inner.size(path)
        with explained(path, "read"):
            status = _stat(allowed)
            if not stat.S_ISREG(status.st_mode):
                raise NotFound(f"{path}: no such file")
        self._counted.count("head", path)
        return status.st_size

    def list(self, prefix: str) -> Iterator[FileInfo]:
        allowed = self._fence.allowed(prefix)
        if allowed.root is None:
            yield from self._inner.list(prefix)
            return
        waiting = [prefix.rstrip("/")]
        self._counted.count("list", prefix)
        while waiting:
            folders, files = self._scanned(waiting.pop())
            waiting += folders
            yield from files

    def children(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        """Folders and files directly in a folder, so that listing can go side by side."""
        allowed = self._fence.allowed(folder)
        if allowed.root is None:
            inner: Any = self._inner
            listing: tuple[Sequence[str], Sequence[FileInfo]] = inner.children(folder)
            return listing
        self._counted.count("list", folder)
        return self._scanned(folder.rstrip("/"))

    def _scanned(self, folder: str) -> tuple[Sequence[str], Sequence[FileInfo]]:
        """Links are left out: what they lead to lies elsewhere."""
        allowed = self._fence.allowed(folder)
        try:
            with explained(folder, "list"), _entries_of(allowed) as entries:
                return children_in(entries, folder, follow_links=False)
        except NotFound:
            return [], []

    def names(self, folder: str) -> Iterator[tuple[str, Sequence[str]]]:
        """Folders with names of files directly in them, all that are below a local folder. Links
        are left out."""
        waiting = [folder.rstrip("/")]
        while waiting:
            here = waiting.pop()
            allowed = self._fence.allowed(here)
            self._counted.count("list", here)
            try:
                with explained(here, "list"), _entries_of(allowed) as entries:
                    for names in names_in(entries, here, waiting, follow_links=False):
                        yield here, names
            except NotFound:
                continue

    def info(self, path: str) -> FileInfo | None:
        """About one local file; None when it is gone, or is something else."""
        allowed = self._fence.allowed(path)
        self._counted.count("head", path)
        with explained(path, "read"):
            try:
                status = _stat(allowed)
            except FileNotFoundError:
                return None
        return info_of(path, status) if stat.S_ISREG(status.st_mode) else None

    def delete(self, path: str) -> None:
        allowed = self._fence.allowed(path)
        if allowed.root is None:
            self._inner.delete(path)
            return
        self._counted.count("delete", path)
        with explained(path, "delete"):
            try:
                with _folder_of(allowed) as (folder, name):
                    os.unlink(name, dir_fd=folder)
            except FileNotFoundError:
                return

    def delete_all(self, paths: Iterable[str]) -> None:
        objects = []
        for path in paths:
            if self._fence.allowed(path).root is None:
                objects.append(path)
            else:
                self.delete(path)
        if objects:
            self._inner.delete_all(objects)

    def duplicate(self, path: str, to: str) -> None:
        """A second name for the bytes of a file: a hard link where that can be, else a copy."""
        source, target = self._fence.allowed(path), self._fence.allowed(to)
        if source.root is None and target.root is None and hasattr(self._inner, "copy"):
            self._inner.copy(path, to)
        elif source.root is None or target.root is None or not _linked(source, target):
            opened = self.open(path)
            with self.create(to) as copy:
                try:
                    for start in range(0, opened.size, _COPY_BYTES):
                        copy.write(opened.read_at(start, min(_COPY_BYTES, opened.size - start)))
                except BaseException:
                    if target.root is not None:  # a part of a file would be taken for the whole
                        self.delete(to)
                    raise

    def make_folder(self, path: str) -> None:
        """Make a folder that clients write into; a store of objects has none."""
        allowed = self._fence.allowed(f"{path.rstrip('/')}/x")
        if allowed.root is not None:
            with explained(path, "write"), _folder_of(allowed, create=True):
                return


__all__ = ["AllowedPath", "Fence", "FencedStorage"]
