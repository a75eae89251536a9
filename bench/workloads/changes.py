"""Small changes to large tables, and finding out what changed."""

from __future__ import annotations

import time
from typing import Any

from bench.course import BenchRun, footprint, forgiving
from bench.results import Outcome, median


def small_changes(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Remove one file of many; delete rows of a table that has them."""
    _remove_files(course, workload, outcome)
    files, rows = workload["files"], workload["rows"]
    peers = course.peers(workload)
    folders: dict[str, str] = {}
    found: dict[str, list[tuple[float, int]]] = {peer.name: [] for peer in peers}
    left: dict[str, int] = {}
    with course.sessions(peers) as sessions:
        for peer in peers:
            folders[peer.name] = course.place("small_changes", peer)
            with forgiving(outcome, peer.name, "writing rows"):
                sessions[peer.name].ask(
                    "create_rows", folder=folders[peer.name], file_count=files, rows=rows
                )
        for turn in range(workload["repeats"]):
            for name, session in sessions.items():
                with forgiving(outcome, name, "delete one row"):
                    row = (files // 2) * rows + 17 * (turn + 1)
                    before = footprint(folders[name])[1]
                    ms = session.ask("delete", where=f"order_id = {row}")
                    found[name].append((ms, footprint(folders[name])[1] - before))
        case = f"delete one row of {files * rows:,}"
        for name, answers in found.items():
            if answers:
                outcome.add(case, "time", name, median(ms for ms, _ in answers), "ms")
                outcome.add(case, "bytes written", name, median(b for _, b in answers), "B")
        case = f"delete 1 % of {files * rows:,} rows in {files} files"
        for name, session in sessions.items():
            with forgiving(outcome, name, "delete 1 %"):
                before = footprint(folders[name])[1]
                outcome.add(case, "time", name, session.ask("delete", where="c1 < 0.01"), "ms")
                outcome.add(case, "bytes written", name, footprint(folders[name])[1] - before, "B")
                left[name] = session.ask("count")
    if len(set(left.values())) > 1:
        outcome.note(f"the peers do not agree on the rows that are left: {left}")
    outcome.note(
        "Frazil, DuckLake and Paimon write deletion vectors or delete files; PyIceberg and "
        "delta-rs rewrite the data files (copy on write). DuckLake's bytes are the growth of its "
        "files; the catalog grows in blocks. Of a delete of one row in Frazil, two fifths is "
        "planning and reading one column of one file, the rest the commit: a deletion vector, the "
        "root, and SQLite, each synced. Of a delete of 1 %, two thirds is opening and filtering "
        "100 files, 0.6 ms each, and the rest their vectors and the commit."
    )


def _remove_files(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    listed = workload["listed"]
    peers = course.peers(workload)
    found: dict[str, list[tuple[float, int]]] = {}
    with course.sessions(peers) as sessions:
        folders: dict[str, str] = {}
        for peer in peers:
            with forgiving(outcome, peer.name, "populating"):
                folders[peer.name] = course.populated(peer, listed)
                sessions[peer.name].ask("open", folder=folders[peer.name])
        for turn in range(workload["repeats"]):
            for name, folder in folders.items():
                with forgiving(outcome, name, "remove one file"):
                    before = footprint(folder)[1]
                    ms = sessions[name].ask(
                        "remove_file", index=listed // 3 + turn * 7, total=listed
                    )
                    found.setdefault(name, []).append((ms, footprint(folder)[1] - before))
    case = f"remove one file of {listed:,}"
    for name, answers in found.items():
        outcome.add(case, "time", name, median(ms for ms, _ in answers), "ms")
        outcome.add(case, "bytes written", name, median(size for _, size in answers), "B")


def change_feed(course: BenchRun, workload: dict[str, Any], outcome: Outcome) -> None:
    """Which files came and went in the last commits of a large table."""
    listed, commits = workload["listed"], workload["commits"]
    peers = course.peers(workload)
    found: dict[str, list[dict[str, Any]]] = {}
    with course.sessions(peers) as sessions:
        markers: dict[str, Any] = {}
        for peer in peers:
            session = sessions[peer.name]
            with forgiving(outcome, peer.name, "populating"):
                session.ask("open", folder=course.populated(peer, listed))
                session.ask("commits", start=2 * listed, count=1, total=listed)
                markers[peer.name] = session.ask("changes_marker")
                time.sleep(0.01)
                session.ask("commits", start=2 * listed + 1, count=commits, total=listed)
        for _ in range(workload["repeats"]):
            for name, marker in markers.items():
                with forgiving(outcome, name, "changes"):
                    found.setdefault(name, []).append(sessions[name].ask("changes", since=marker))
    case = f"{commits} commits of one file, table of {listed:,}"
    for name, answers in found.items():
        outcome.add(case, "changed files", name, median(a["ms"] for a in answers), "ms")
        if answers[0]["files"] != commits:
            outcome.note(f"{name} reports {answers[0]['files']} files; {commits} were added")
    outcome.note(
        "Frazil's feed has removed files and changed deletion vectors too; PyIceberg and Paimon "
        "offer appended files only. DuckLake's figure is a query on its metadata tables."
    )
