"""Options of streaming reads and writes, in addition to those of every read and write.

stream-mode            appends (default): rows of files that were appended;
                       changes: every row change, with the columns of a change feed
start                  earliest (default): all that is in the table; latest: what comes from now on
start-snapshot         what comes after this snapshot
start-timestamp        what was committed after this time: ISO text or milliseconds
max-files-per-batch, max-rows-per-batch, max-snapshots-per-batch
stream-from-timestamp, streaming-max-files-per-micro-batch, streaming-max-rows-per-micro-batch
                       Iceberg's names of three of these
skip-changes           true: in appends mode, pass over snapshots that delete or overwrite
query-id               a sink's own name for its query, instead of the checkpoint's
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum

from frazil.errors import InvalidInput
from frazil.spark.options.source_options import number
from frazil.value_classes import frozen

_SYNONYMS = {
    "stream-from-timestamp": "start-timestamp",
    "streaming-max-files-per-micro-batch": "max-files-per-batch",
    "streaming-max-rows-per-micro-batch": "max-rows-per-batch",
}
"""Names that Iceberg has for options."""
STREAM_OPTIONS = frozenset(
    {
        *_SYNONYMS,
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


@frozen
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
        values = {key.lower(): value for key, value in options.items()}
        for theirs, ours in _SYNONYMS.items():
            if theirs in values and values.setdefault(ours, values[theirs]) != values[theirs]:
                raise InvalidInput(f"options {theirs} and {ours} exclude each other")
        starts = [key for key in ("start", "start-snapshot", "start-timestamp") if key in values]
        if len(starts) > 1:
            raise InvalidInput(f"options {' and '.join(starts)} exclude each other")
        return StreamOptions(
            mode=StreamMode(_one_of(values, "stream-mode", tuple(StreamMode))),
            from_latest=_one_of(values, "start", ("earliest", "latest")) == "latest",
            start_snapshot=number(values, "start-snapshot", minimum=1),
            start_ms=_moment(values.get("start-timestamp")),
            max_files=number(values, "max-files-per-batch", minimum=1),
            max_rows=number(values, "max-rows-per-batch", minimum=1),
            max_snapshots=number(values, "max-snapshots-per-batch", minimum=1),
            skip_changes=_one_of(values, "skip-changes", ("false", "true")) == "true",
            query_id=values.get("query-id"),
            checkpoint=values.get("checkpointlocation"),
        )

    @property
    def is_limited(self) -> bool:
        """Whether batches have a limit."""
        limits = (self.max_files, self.max_rows, self.max_snapshots)
        return any(limit is not None for limit in limits)


def _one_of(values: Mapping[str, str], key: str, allowed: tuple[str, ...]) -> str:
    text = values.get(key, allowed[0]).lower()
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
