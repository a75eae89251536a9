"""Entries of files as bytes, to travel between a driver and its executors."""

from __future__ import annotations

import pyarrow as pa

from frazil.format.entries.batch import EntryBatch


def packed(entries: EntryBatch) -> bytes:
    """Entries as bytes: an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, entries.table.schema) as stream:
        stream.write_table(entries.table)
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> EntryBatch:
    """The entries of `packed`."""
    with pa.ipc.open_stream(data) as stream:
        return EntryBatch(stream.read_all())
