"""Iceberg's property `format-version` in statements that were written for Iceberg's catalog."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

log = logging.getLogger("frazil.spark")
_KEY: Final = "format-version"
_KNOWN: Final = ("2", "3", "4")


def without_format_version(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that are stored: a version that readers of the table can do with is noted and
    left out, any other stays and is refused with them."""
    version = properties.get(_KEY)
    if version not in _KNOWN:
        return dict(properties)
    if version != "4":
        log.warning("format-version %s is not stored: tables are of version 4", version)
    return {key: value for key, value in properties.items() if key != _KEY}
