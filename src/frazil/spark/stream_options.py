"""Options of streaming reads and writes, in addition to those of every read and write.

stream-mode            appends (default): rows of files that were appended;
                       changes: every row change, with the columns of a change feed
start                  earliest (default): all that is in the table; latest: what comes from now on
start-snapshot         what comes after this snapshot
start-timestamp        what was committed after this time: ISO text or milliseconds
max-files-per-batch, max-rows-per-batch, max-snapshots-per-batch
skip-changes           true: in appends mode, pass over snapshots that delete or overwrite
query-id               a sink's own name for its query, instead of the checkpoint's
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from frazil.errors import InvalidInput
from frazil.spark.source_options import number

STREAM_OPTIONS = frozenset(
    {
        "stream-mode",
        "start",
        "start-snapshot",
        "start-timestamp",
        "max-files-per-batch",
        "max-rows-per-batch",
        "max-snapshots-per-batch",
        "skip-changes",
        "query-id",
        "checkpointlocation",
        "queryname",
        "outputmode",
    }
)
"""Names that the data source takes for streams; the last three are Spark's own."""


class StreamMode(StrEnum):
    """What a streaming read gives."""

    APPENDS = "appends"
    CHANGES = "changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """What a user of a stream asked for."""

    mode: StreamMode = StreamMode.APPENDS
    from_latest: bool = False
    start_snapshot: int | None = None
    start_ms: int | None = None
    max_files: int | None = None
    max_rows: int | None = None
    max_snapshots: int | None = None
    skip_changes: bool = False
    query_id: str | None = None
    checkpoint: str | None = None

    @staticmethod
    def parse(options: Mapping[str, str]) -> StreamOptions:
        """Options by their names, in any case."""
        given = {key.lower(): value for key, value in options.items()}
        starts = [key for key in ("start", "start-snapshot", "start-timestamp") if key in given]
        if len(starts) > 1:
            raise InvalidInput(f"options {' and '.join(starts)} exclude each other")
        return StreamOptions(
            mode=StreamMode(_one_of(given, "stream-mode", tuple(StreamMode))),
            from_latest=_one_of(given, "start", ("earliest", "latest")) == "latest",
            start_snapshot=number(given, "start-snapshot", least=1),
            start_ms=_moment(given.get("start-timestamp")),
            max_files=number(given, "max-files-per-batch", least=1),
            max_rows=number(given, "max-rows-per-batch", least=1),
            max_snapshots=number(given, "max-snapshots-per-batch", least=1),
            skip_changes=_one_of(given, "skip-changes", ("false", "true")) == "true",
            query_id=given.get("query-id"),
            checkpoint=given.get("checkpointlocation"),
        )

    @property
    def is_limited(self) -> bool:
        """Whether batches have a limit."""
        limits = (self.max_files, self.max_rows, self.max_snapshots)
        return any(limit is not None for limit in limits)


def _one_of(given: Mapping[str, str], key: str, allowed: tuple[str, ...]) -> str:
    text = given.get(key, allowed[0]).lower()
    if text not in allowed:
        raise InvalidInput(f"option {key} is {text!r}; expected {' or '.join(allowed)}")
    return text


def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    if text.isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"option start-timestamp is {text!r}; expected ISO text or milliseconds"
        ) from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
