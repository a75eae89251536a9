"""Names of tables and views, with the branch or the time that a node asks for."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.base import BaseRelation
from dbt.adapters.contracts.relation import HasQuoting, Policy, RelationConfig, RelationType
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.frazil.connections import DATABASE, options_of
from frazil.filter.text.quotes import literal, quoted


@dataclass
class _Included(Policy):
    database: bool = False
    schema: bool = True
    identifier: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class FrazilRelation(BaseRelation):
    """A table or view. `branch` is where a model is built and read; `as_of` is the branch, tag,
    snapshot id or time that a source is read at."""

    include_policy: Policy = field(default_factory=_Included)
    quote_policy: Policy = field(default_factory=_Included)
    renameable_relations: Any = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )
    replaceable_relations: Any = field(
        default_factory=lambda: frozenset({RelationType.Table, RelationType.View})
    )
    branch: str | None = None
    as_of: str | None = None

    @classmethod
    def create_from(
        cls, quoting: HasQuoting, relation_config: RelationConfig, **kwargs: Any
    ) -> FrazilRelation:
        options = options_of(relation_config.config)
        for name in ("branch", "as_of"):
            if options.get(name) is not None:
                kwargs.setdefault(name, str(options[name]))
        relation: FrazilRelation = super().create_from(quoting, relation_config, **kwargs)
        return relation

    def __post_init__(self) -> None:
        if self.database not in (None, DATABASE):
            raise DbtRuntimeError(
                f"database of {self.render()} is {self.database!r}; a Frazil catalog has no "
                "databases. Leave `database` out and name the namespace in `schema`."
            )

    def quoted(self, identifier: str) -> str:
        return quoted(identifier)

    @property
    def main(self) -> FrazilRelation:
        """The table itself, for statements that define it."""
        plain: FrazilRelation = self.replace(branch=None, as_of=None)
        return plain

    def render(self) -> str:
        parts = []
        if self.include_policy.schema and self.schema is not None:
            parts += [quoted(part) for part in self.schema.split(".")]
        if self.include_policy.identifier and self.identifier is not None:
            named = self.quote_policy.identifier
            parts.append(quoted(self.identifier) if named else self.identifier)
            if self.branch is not None:
                parts.append(quoted(f"branch_{self.branch}"))
        name = ".".join(parts)
        return name if self.as_of is None else f"{name} FOR {_version(self.as_of)}"


def _version(as_of: str) -> str:
    if as_of.isdecimal():
        return f"VERSION AS OF {as_of}"
    try:
        datetime.datetime.fromisoformat(as_of)
    except ValueError:
        return f"VERSION AS OF {literal(as_of)}"
    return f"TIMESTAMP AS OF {literal(as_of)}"
