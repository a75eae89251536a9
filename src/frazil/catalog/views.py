"""Views of a catalog: Iceberg's view metadata under a name, replaced by compare and swap.

The metadata is kept as its JSON has it (versions, representations, schemas, properties), so what
other writers put there survives. Tables and views share their names. `sql_views` keeps views in a
database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from frazil.catalog.names import Identifier, Namespace, dotted
from frazil.errors import AlreadyExists, CommitConflict, NotFound
from frazil.value_classes import dataclass

ViewName = str | tuple[str, ...] | Identifier


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """A view as loaded; `version` counts its changes."""

    identifier: Identifier
    metadata: Mapping[str, Any]
    version: int


class Views(Protocol):
    """Views by name."""

    def create(self, identifier: ViewName, metadata: Mapping[str, Any]) -> ViewState:
        """Enter a view; AlreadyExists when a table or view has the name."""

    def load(self, identifier: ViewName) -> ViewState:
        """A view; NotFound when it does not exist."""

    def exists(self, identifier: ViewName) -> bool:
        """Whether the view exists."""

    def list(self, namespace: str | Namespace) -> list[Identifier]:
        """The views of a namespace, sorted."""

    def replace(self, base: ViewState, metadata: Mapping[str, Any]) -> ViewState:
        """Store new metadata; CommitConflict when `base` is not current any more."""

    def rename(self, identifier: ViewName, to: ViewName) -> None:
        """Give a view another name."""

    def drop(self, identifier: ViewName) -> None:
        """Remove a view; NotFound when it does not exist."""


def checked_name(name: ViewName, namespace_exists: Callable[[Namespace], bool]) -> Identifier:
    """The name of a new view, whose namespace must exist."""
    parsed = Identifier.parse(name)
    if not namespace_exists(parsed.namespace):
        raise NotFound(f"{parsed}: namespace {dotted(parsed.namespace)} does not exist")
    return parsed


def name_taken(identifier: Identifier) -> AlreadyExists:
    """The error for a name in use."""
    return AlreadyExists(f"{identifier}: a table or view has this name already")


def no_view(identifier: Identifier) -> NotFound:
    """The error for a view that does not exist."""
    return NotFound(f"view {identifier} does not exist")


def view_moved(base: ViewState) -> CommitConflict:
    """The error for a view that changed after it was loaded."""
    return CommitConflict(
        f"view {base.identifier} was replaced or dropped in the meantime; load it again"
    )


def view_text(metadata: Mapping[str, Any], name: str) -> str:
    """The SQL a view was made with."""
    current = metadata.get("current-version-id")
    for version in metadata.get("versions", ()):
        if version.get("version-id") == current:
            for representation in version.get("representations", ()):
                return str(representation["sql"])
    raise NotFound(f"view {name} has no SQL")
