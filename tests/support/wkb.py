"""Shapes as WKB, written by hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence

Place = tuple[float, ...]


def coordinates(places: Sequence[Place], order: str = "<") -> bytes:
    return b"".join(struct.pack(f"{order}{len(place)}d", *place) for place in places)


def header(kind: int, order: str = "<") -> bytes:
    return struct.pack(f"{order}BI", int(order == "<"), kind)


def point(*place: float, kind: int = 1, order: str = "<") -> bytes:
    return header(kind, order) + coordinates([place], order)


def line(*places: Place, kind: int = 2) -> bytes:
    return header(kind) + struct.pack("<I", len(places)) + coordinates(places)


def polygon(*rings: Sequence[Place]) -> bytes:
    parts = [struct.pack("<I", len(ring)) + coordinates(ring) for ring in rings]
    return header(3) + struct.pack("<I", len(rings)) + b"".join(parts)


def rectangle(west: float, south: float, east: float, north: float) -> bytes:
    return polygon([(west, south), (east, south), (east, north), (west, north), (west, south)])


def collection(*parts: bytes, kind: int = 7) -> bytes:
    return header(kind) + struct.pack("<I", len(parts)) + b"".join(parts)
