"""What a server cannot be started with is refused by name, before it listens."""

from __future__ import annotations

from typing import Any

import pytest

from frazil import serve
from frazil.errors import InvalidInput
from frazil.serve.settings import Settings
from frazil.table import Catalog

BAD: list[dict[str, Any]] = [
    {"host": None},
    {"host": 5},
    {"host": float("inf")},
    {"host": "\ud800"},
    {"host": "a\0b"},
    {"host": "x" * 5000},
    {"host": "no such host"},
    {"port": "80"},
    {"port": 1.5},
    {"port": True},
    {"port": -1},
    {"port": 65536},
    {"port": 2**70},
    {"settings": {}},
    {"settings": 7},
    {"access": "token"},
    {"access": b"x"},
]


@pytest.mark.parametrize("given", BAD, ids=lambda given: ascii(given)[:30])
def test_arguments_are_refused_by_name(catalog: Catalog, given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(InvalidInput, match=f"{name} is|cannot listen on"):
        serve.start(catalog, **given)


@pytest.mark.parametrize("found", [None, "COMMIT", 5, {}])
def test_only_a_catalog_can_be_served(found: Any) -> None:
    for begin in (serve.start, serve.run):
        with pytest.raises(InvalidInput, match=r"catalog is .*; expected a Catalog"):
            begin(found)


@pytest.mark.parametrize(
    "given",
    [
        {"is_read_only": "no"},
        {"allow_client_gc": 1},
        {"plans_scans": "yes"},
        {"sql_writes": None},
        {"max_request_bytes": 0},
        {"max_request_bytes": "1 MB"},
        {"request_timeout_s": 0},
        {"request_timeout_s": float("nan")},
        {"request_timeout_s": None},
        {"allowed": "/data"},
        {"allowed": (5,)},
        {"names": ["host"]},
        {"properties": {"a": 5}},
        {"properties": None},
    ],
    ids=str,
)
def test_settings_are_refused_by_name(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(InvalidInput, match=name):
        Settings(**given)


def test_a_setting_keeps_its_old_name() -> None:
    assert Settings(clients_collect=True).allow_client_gc
    assert not Settings().allow_client_gc
