"""Deleting a table's files, and which files are a table's own.

Files outside a table's folders (adopted where they were, or a clone's, which are its source's) are
never deleted by the care of that table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from frazil.catalog.export import METADATA_PATH
from frazil.errors import FrazilError
from frazil.format import paths
from frazil.format.metadata import TableMetadata
from frazil.maintenance.progress import Progress, run_all, silent
from frazil.storage import Storage, is_local, local_path

DATA_PATHS = ("write.data.path", "write.folder-storage.path", "write.object-storage.path")


def plain(path: str) -> str:
    """One spelling per file: local files by their path, `s3a` and `s3n` as `s3`."""
    if is_local(path):
        return "/" + local_path(path).lstrip("/")
    for other in ("s3a://", "s3n://"):
        if path.startswith(other):
            return f"s3://{path[len(other) :]}"
    return path


def own_folders(metadata: TableMetadata, location: str) -> tuple[str, ...]:
    """The folders that hold nothing but this table's files, each with a slash at its end."""
    folders = [location]
    for key in (METADATA_PATH, *DATA_PATHS):
        value = metadata.properties.get(key)
        if value:
            is_bare = value.startswith("/")
            folders.append(value if is_bare else paths.resolve(location, value.rstrip("/")))
    return tuple(f"{plain(folder).rstrip('/')}/" for folder in folders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """Files that are gone, and those that could not be deleted, with the reason."""

    paths: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()


def delete_all(storage: Storage, files: Iterable[str], *, progress: Progress = silent) -> Deleted:
    """Delete files side by side. One that fails is reported and left to orphan removal."""
    wanted: Sequence[str] = tuple(files)

    def delete(path: str) -> str | None:
        try:
            storage.delete(path)
        except FrazilError as error:
            return str(error)
        return None

    outcome = list(run_all(wanted, delete, what="files deleted", progress=progress))
    pairs = list(zip(wanted, outcome, strict=True))
    return Deleted(
        paths=tuple(path for path, problem in pairs if problem is None),
        failed=tuple((path, problem) for path, problem in pairs if problem is not None),
    )


def collects_garbage(metadata: TableMetadata) -> bool:
    """Whether files with rows may be deleted: not when `gc.enabled` says that others use them."""
    return metadata.properties.get("gc.enabled", "true").lower() != "false"
