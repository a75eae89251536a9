"""`frazil.spark.iceberg_session` under Spark 4.1. Runs in the virtual environment of that Spark.

python one_line.py <warehouse> <jar> <site packages of this project>
"""

from __future__ import annotations

import json
import sys

sys.path.append(sys.argv[3])

import frazil
from frazil.spark import iceberg_session

catalog = frazil.connect(sys.argv[1])
catalog.create_namespace("shop")
settings = {"spark.ui.enabled": "false", "spark.log.level": "OFF", "spark.master": "local[1]"}
spark = iceberg_session(catalog, jars=sys.argv[2], settings=settings)
spark.sql("CREATE TABLE frazil.shop.orders AS SELECT id FROM range(3)")
spark.sql(
    "MERGE INTO frazil.shop.orders t USING (SELECT 1L AS id UNION SELECT 7L) s ON t.id = s.id "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *"
)
rows = catalog["shop.orders"].scan().to_arrow()["id"].to_pylist()
print(json.dumps(sorted(rows)))
