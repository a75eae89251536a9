"""dlt with the configuration of its guide, which is run as it is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

import frazil
from frazil import serve
from tests.docs.pages import DOCS, Page
from tests.interop.engines.engine import DLT, run_program, sound

pytestmark = pytest.mark.peers
GUIDE = DOCS / "guides" / "dlt.md"


def test_the_guide_s_pipeline_appends_replaces_and_upserts(tmp_path: Path) -> None:
    warehouse = tmp_path / "dlt-warehouse"
    blocks = {block.code.partition("\n")[0]: block.code for block in Page.read(GUIDE).blocks}
    with frazil.connect(warehouse, create=True) as catalog, serve.start(catalog) as server:
        settings = blocks["# .dlt/config.toml"]
        for printed, here in (
            ("http://127.0.0.1:8181", server.uri),
            ('"dlt-warehouse"', f'"{warehouse}"'),
        ):
            assert printed in settings
            settings = settings.replace(printed, here)
        (tmp_path / ".dlt").mkdir()
        (tmp_path / ".dlt" / "config.toml").write_text(settings)
        (tmp_path / "pipeline.py").write_text(blocks["# pipeline.py"])
        run_program(DLT, tmp_path / "pipeline.py", folder=tmp_path)
        rows = {
            name: [row[:-2] for row in sound(catalog, f"shop.{name}")]
            for name in ("orders", "events", "rates")
        }
        assert rows == {
            "orders": [(1, "new"), (2, "sent"), (3, "new")],
            "events": [(1,), (2,)],
            "rates": [(2.5,)],
        }
