"""Files and folders that the pages for contributors name are there."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS, ROOT

SOURCE = ROOT / "src" / "frazil"
_MODULE = re.compile(r"`([a-z0-9_]+(?:/[a-z0-9_]+)*\.py)`")
_FILE = re.compile(r"`((?:src|tests|tools|docs)/[\w/.-]+|[A-Z]+\.md)`")


def test_files_named_in_contributing_are_there() -> None:
    named = _FILE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(named) > 25
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    "kind", ["A statement", "An endpoint", "A property", "A field", "An engine"]
)
def test_whatever_is_added_takes_five_steps_with_files(kind: str) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    steps = text.partition(f"**{kind}")[2].partition("**")[2].partition("\n**")[0]
    steps = steps.partition("\n## ")[0]
    assert re.findall(r"^(\d)\. ", steps, flags=re.MULTILINE) == list("12345")
    assert len(_FILE.findall(steps)) >= 4


def test_modules_named_in_the_tour_are_there() -> None:
    named = _MODULE.findall((DOCS / "tour.md").read_text(encoding="utf-8"))
    assert len(named) > 60
    assert [name for name in named if not (SOURCE / name).exists()] == []


def test_the_list_of_folders_is_that_of_the_source() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    lines = page.partition("```\n")[2].partition("```")[0].splitlines()
    drawn: dict[str, set[str]] = {}
    packages: list[str] = []
    for line in lines:
        if not line.startswith(" "):
            head = re.match(r"\w+(?: \| \w+)*", line)
            assert head is not None
            packages = head[0].split(" | ")
            drawn |= {package: set() for package in packages}
        elif "·" in line or line.strip().isidentifier():
            folders = [set(part.split(" · ")) for part in line.strip().split(" | ")]
            owners = [package for package in packages if _folders(package)]
            drawn |= dict(zip(owners, folders, strict=True))
    source = {
        path.stem
        for path in SOURCE.iterdir()
        if not path.stem.startswith("_") and _is_code(path.name)
    }
    assert drawn == {package: _folders(package) for package in source}


def _is_code(name: str) -> bool:
    return name.endswith(".py") or (SOURCE / name / "__init__.py").exists()


def _folders(package: str) -> set[str]:
    return {path.parent.name for path in SOURCE.glob(f"{package}/*/__init__.py")}
