"""Clients and partitions made from several columns, which they see as `void`."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

import frazil
from frazil.serve.running import Running

SALES = pa.table(
    {
        "shop": pa.array([i % 20 for i in range(100)], pa.int32()),
        "product": ["tea" if i < 50 else "milk" for i in range(100)],
    }
)


def test_clients_read_and_change_the_partitioning_but_do_not_write(
    server: Running, catalog: frazil.Catalog
) -> None:
    table = catalog.create_table(
        "shop.sales", SALES.schema, partition_by=["bucket[8](shop, product)"]
    )
    table.append(SALES)
    seen = RestCatalog("c", uri=server.uri).load_table("shop.sales")
    assert str(seen.spec().fields[0].transform) == "void"
    # Of 20 shops, row i is in shop i % 20: shop 8 has milk in rows 68 and 88.
    assert seen.scan(row_filter="shop == 8 and product == 'milk'").to_arrow().num_rows == 2
    with pytest.raises(Exception, match="several columns together"):
        seen.append(SALES.slice(0, 1))
    with seen.update_spec() as update:
        update.add_field("shop", "identity", "shop")
    fields = table.refresh().spec.fields
    assert [str(part.transform) for part in fields] == ["bucket[8]", "identity"]
    assert table.scan("shop = 8 and product = 'milk'").count() == 2
    assert table.scan("shop = 8 and product = 'milk'").plan().files.num_rows == 1
