"""Deleting files of which some may fail: in bulk first, one by one to learn which."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import FrazilError
from frazil.storage.base import Storage


def delete_reporting(storage: Storage, paths: Sequence[str]) -> dict[str, FrazilError]:
    """Delete files; those that could not be deleted, with the reason."""
    if not paths:
        return {}
    try:
        storage.delete_all(paths)
    except FrazilError as error:
        if len(paths) == 1:
            return {paths[0]: error}
    else:
        return {}
    failed: dict[str, FrazilError] = {}
    for path in paths:
        failed |= delete_reporting(storage, [path])
    return failed
