"""Maintenance of large tables as Spark jobs: rewriting files, converting deletes, removing
orphans."""

from frazil.spark.jobs.convert_equality_deletes import Converted, convert_equality_deletes
from frazil.spark.jobs.plan_distributed import plan_distributed
from frazil.spark.jobs.remove_orphan_files import remove_orphan_files
from frazil.spark.jobs.rewrite_data_files import Rewritten, rewrite_data_files
from frazil.spark.jobs.rewrite_leaves import RewrittenManifests, rewrite_manifests

__all__ = [
    "Converted",
    "Rewritten",
    "RewrittenManifests",
    "convert_equality_deletes",
    "plan_distributed",
    "remove_orphan_files",
    "rewrite_data_files",
    "rewrite_manifests",
]
