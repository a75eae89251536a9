"""What a sender must be to use an endpoint: the vocabulary of the table beside every route.

A right has a role and says where the names are that it concerns. `Endpoint` cannot be made without
one; `tests/serve/test_rights.py` calls every endpoint as everybody and compares.
"""

from __future__ import annotations

from enum import Enum

from frazil.value_classes import frozen


class Role(Enum):
    """The least that a sender must be."""

    NOBODY = "nobody"
    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"
    """A writer of everything."""


class Names(Enum):
    """Where the namespace is that the role is needed in."""

    NONE = "none"
    """No namespace is concerned, or only what the sender may see is shown."""
    PATH = "path"
    BODY = "body"
    """The handler checks every name in the body, with `Request.named` or `check`."""


@frozen
class Rights:
    """A role, and where its namespace is named."""

    role: Role
    names: Names
    is_question: bool = False
    """Whether nothing is changed although only writers may ask."""

    @property
    def changes(self) -> bool:
        """Whether the endpoint is there to change something."""
        return self.role in (Role.WRITER, Role.ADMIN) and not self.is_question

    def __str__(self) -> str:
        where = "" if self.names is Names.NONE else f" of the namespace in the {self.names.value}"
        return f"{self.role.value}{where}"


ANYBODY = Rights(role=Role.NOBODY, names=Names.NONE)
ANY_READER = Rights(role=Role.READER, names=Names.NONE)
"""Whoever is known; what is shown depends on what the sender may read."""
PATH_READER = Rights(role=Role.READER, names=Names.PATH)
PATH_WRITER = Rights(role=Role.WRITER, names=Names.PATH)
BODY_READER = Rights(role=Role.READER, names=Names.BODY)
BODY_WRITER = Rights(role=Role.WRITER, names=Names.BODY)
BODY_WRITER_ASKS = Rights(role=Role.WRITER, names=Names.BODY, is_question=True)
ADMIN = Rights(role=Role.ADMIN, names=Names.NONE)
