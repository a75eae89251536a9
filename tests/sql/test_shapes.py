"""Geometries and geographies in filters and queries: boxes prune, rows are judged exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import shapely

import frazil
from frazil import extras
from frazil.errors import InvalidInput, Unsupported
from frazil.iceberg import types as ice
from frazil.iceberg.schema import Schema
from tests.support.wkb import line, point

SCHEMA = Schema(
    ice.NestedField(1, "id", ice.LongType()),
    ice.NestedField(2, "geom", ice.GeometryType()),
    ice.NestedField(3, "place", ice.GeographyType()),
)
FILES, ROWS = 30, 20


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """Segments and points in 30 squares from west to east, ten units apart, south of y = 10."""
    generator = np.random.default_rng(7)
    at = np.repeat(np.arange(FILES) * 10.0, ROWS)
    xs, ys = at + generator.uniform(0, 8, len(at)), generator.uniform(0, 10, len(at))
    geoms = [
        point(x, y) if number % 3 else line((x, y), (x + 1, 10 - y))
        for number, (x, y) in enumerate(zip(xs, ys, strict=True))
    ]
    places = [point((x + 36 + 180) % 360 - 180, y) for x, y in zip(xs, ys, strict=True)]
    return pa.table({"id": np.arange(len(at)), "geom": geoms, "place": places})


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory, rows: pa.Table) -> frazil.Catalog:
    """The rows, a file for each square, in leaves of eight files and a root."""
    catalog = frazil.connect(tmp_path_factory.mktemp("shapes"))
    properties = {"write.root.max-data-entries": "8", "write.leaf.target-entries": "8"}
    table = catalog.create_table("geo.shapes", SCHEMA, properties=properties)
    for start in range(0, rows.num_rows, ROWS):
        table.append(rows.slice(start, ROWS))
    return catalog


def ids(catalog: frazil.Catalog, where: str) -> list[int]:
    """Rows that match, the same from a scan and from SQL."""
    scanned = catalog.load_table("geo.shapes").scan(where).to_arrow()["id"].to_pylist()
    queried = catalog.sql(f"SELECT id FROM geo.shapes WHERE {where}").to_arrow()["id"].to_pylist()
    assert sorted(scanned) == sorted(queried)
    return sorted(scanned)


def test_a_window_is_pruned_at_root_leaf_and_file(catalog: frazil.Catalog) -> None:
    table = catalog.load_table("geo.shapes")
    report = table.scan("ST_Intersects(geom, ST_MakeEnvelope(100, 0, 102, 9))").plan().report
    assert report.files == 1
    assert report.leaves.manifests_read == 1  # the root left out the other leaves
    assert report.root.pruned_by_bounds > 0
    assert report.leaves.pruned_by_bounds > 0
    (explained,) = [
        line
        for line in str(
            catalog.sql("EXPLAIN SELECT id FROM geo.shapes WHERE bbox(geom,100,0,102,9)")
        ).splitlines()
        if "→" in line
    ]
    assert "1 file" in explained


@pytest.mark.parametrize("name", ["intersects", "within", "contains"])
@pytest.mark.parametrize("seed", range(6))
def test_exact_predicates_find_the_rows_that_shapely_finds(
    catalog: frazil.Catalog, rows: pa.Table, name: str, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    corners = generator.uniform((-5, -2), (300, 12), (4, 2)).round(3)
    corners[:, 0] = corners[0, 0] + (corners[:, 0] % 40)
    area = shapely.convex_hull(shapely.multipoints(corners))
    geoms = shapely.from_wkb(np.array(rows["geom"].to_pylist(), object))
    expected = np.flatnonzero(getattr(shapely, name)(geoms, area)).tolist()
    assert ids(catalog, f"ST_{name}(geom, '{area.wkt}')") == expected
    turned = np.flatnonzero(getattr(shapely, name)(area, geoms)).tolist()
    assert ids(catalog, f"ST_{name}('{area.wkt}', geom)") == turned
    assert expected or turned or name == "contains"


def test_windows_find_the_rows_whose_boxes_reach_into_them(
    catalog: frazil.Catalog, rows: pa.Table
) -> None:
    bounds = shapely.bounds(shapely.from_wkb(np.array(rows["geom"].to_pylist(), object)))
    for west, south, east, north in (
        (103.5, 2, 127, 4),
        (0, 0, 3, 3),
        (-9, 0, -1, 9),
        (299, 0, 1e9, 9),
    ):
        expected = np.flatnonzero(
            (bounds[:, 0] <= east)
            & (bounds[:, 2] >= west)
            & (bounds[:, 1] <= north)
            & (bounds[:, 3] >= south)
        ).tolist()
        assert ids(catalog, f"bbox(geom, {west}, {south}, {east}, {north})") == expected
        envelope = f"ST_MakeEnvelope({west}, {south}, {east}, {north})"
        assert ids(catalog, f"geom::GEOMETRY && {envelope}") == expected
        assert ids(catalog, f"ST_Intersects_Extent({envelope}, geom)") == expected


def test_geographies_across_the_antimeridian(catalog: frazil.Catalog, rows: pa.Table) -> None:
    xs = shapely.get_x(shapely.from_wkb(np.array(rows["place"].to_pylist(), object)))
    assert ((xs > 170) | (xs < -170)).any()
    expected = np.flatnonzero((xs >= 179) | (xs <= -178)).tolist()
    where = "bbox(place, 179, -90, -178, 90)"
    assert expected
    assert ids(catalog, where) == expected
    assert catalog.load_table("geo.shapes").scan(where).plan().report.files <= 2


def test_rows_are_changed_by_what_their_shapes_are(tmp_path: Path, rows: pa.Table) -> None:
    catalog = frazil.connect(tmp_path)
    table = catalog.create_table("geo.shapes", SCHEMA)
    table.append(rows.slice(0, 2 * ROWS))
    table.delete("bbox(geom, 0, 0, 5, 10)")
    catalog.sql("UPDATE geo.shapes SET id = -1 WHERE ST_Within(geom, ST_MakeEnvelope(5, 0, 9, 10))")
    catalog.sql("DELETE FROM geo.shapes WHERE id >= 0 AND bbox(geom, 10, 0, 99, 10)")
    geoms = shapely.from_wkb(np.array(rows["geom"].to_pylist()[: 2 * ROWS], object))
    outside = ~shapely.intersects(shapely.envelope(geoms), shapely.box(0, 0, 5, 10))
    inside = outside & shapely.within(geoms, shapely.box(5, 0, 9, 10))
    left = table.scan().to_arrow()["id"].to_pylist()
    assert left.count(-1) == inside.sum() > 0
    assert set(left) - {-1} <= set(np.flatnonzero(outside & ~inside).tolist())


def test_exact_predicates_are_refused_by_name_without_shapely(
    catalog: frazil.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    where = "ST_Within(geom, ST_MakeEnvelope(0, 0, 1, 1))"
    message = r"ST_WITHIN needs shapely, which is not installed: pip install 'frazil\[shapes\]'"
    with pytest.raises(Unsupported, match=message):
        catalog.load_table("geo.shapes").scan(where).to_arrow()
    with pytest.raises(Unsupported, match=message):
        catalog.sql(f"SELECT 1 FROM geo.shapes WHERE {where}").to_arrow()
    assert len(ids(catalog, "bbox(geom, 0, 0, 9, 10)")) == ROWS


def test_what_is_not_a_shape_is_refused(catalog: frazil.Catalog) -> None:
    table = catalog.load_table("geo.shapes")
    with pytest.raises(InvalidInput, match="parse geometry"):
        table.scan("ST_Intersects(geom, 'nowhere')").to_arrow()
    with pytest.raises(InvalidInput, match="st_area"):
        table.scan("ST_Area(geom) > 1").to_arrow()
