"""Links between pages lead somewhere, and no page names a machine."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, ROOT, Page, pages

_OUTSIDE = ("http://", "https://", "mailto:")
_MACHINE = re.compile(r"(?<![\w.:/])(?:/home/|/root/|/Users/|/work/|/tmp/|file:///|[A-Z]:\\)")


def _ids(page: Page) -> str:
    return page.name


@pytest.mark.parametrize("page", pages(), ids=_ids)
def test_every_link_leads_to_a_file_and_a_heading(page: Page) -> None:
    broken = []
    for line, target in page.links():
        if target.startswith(_OUTSIDE):
            continue
        file, _, anchor = target.partition("#")
        path = (page.path.parent / file).resolve() if file else page.path
        if not path.exists():
            broken.append(f"{page.name}:{line}: no file {target}")
        elif anchor and path.suffix == ".md" and anchor not in Page.read(path).anchors():
            broken.append(f"{page.name}:{line}: no heading #{anchor} in {path.name}")
    assert broken == []


@pytest.mark.parametrize("page", pages(), ids=_ids)
def test_no_page_names_a_place_on_one_machine(page: Page) -> None:
    found = [
        f"{page.name}:{number}: {line.strip()}"
        for number, line in enumerate(page.path.read_text(encoding="utf-8").splitlines(), 1)
        if _MACHINE.search(line)
    ]
    assert found == []


def test_pages_of_the_site_link_only_to_pages_of_the_site() -> None:
    outside = []
    for page in pages():
        if not page.path.is_relative_to(DOCS):
            continue
        for line, target in page.links():
            file = target.partition("#")[0]
            if not file or target.startswith(_OUTSIDE):
                continue
            if not _within_docs((page.path.parent / file).resolve()):
                outside.append(f"{page.name}:{line}: {target}")
    assert outside == []


def _within_docs(path: Path) -> bool:
    return path.is_relative_to(DOCS)


@pytest.mark.parametrize("page", pages(), ids=_ids)
def test_no_page_holds_two_versions_of_one_passage(page: Page) -> None:
    lines = page.path.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith(("<<<<<<<", ">>>>>>>"))] == []


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_entrance_leads_to_every_page(page: str) -> None:
    entrance = ROOT / page
    targets = {
        (entrance.parent / target.partition("#")[0]).resolve()
        for _, target in Page.read(entrance).links()
        if not target.startswith(_OUTSIDE)
    }
    listed = re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert [name for name in listed if DOCS / name not in {*targets, DOCS / "index.md"}] == []


def test_the_page_on_installing_lists_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (DOCS / "start" / "install.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE))
    assert listed == set(project["optional-dependencies"]) - {"dev"}
