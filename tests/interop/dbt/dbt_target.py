"""A plugin for dbt's own tests of adapters: the profile, and the tests that are left out."""

from __future__ import annotations

from typing import Any

import pytest

LEFT_OUT = {
    "TestDocsGenerate": "expects the owner of each table, a user of the profile",
    "TestDocsGenReferences": "expects the owner of each table, a user of the profile",
    "TestCachingUppercaseModel": "names are case-sensitive",
    "TestSimpleCopyBase::test_simple_copy_with_materialized_views": "no materialized views",
    "TestEmptyModelsArentRun": "reads PostgreSQL's information_schema",
    "TestSimpleCopyUppercase": "connects to PostgreSQL",
    "Grants::": "a catalog has no grants",
    "TestTypeInt": "integers of seeds are BIGINT",
    "TestDateSpine": "adds an interval to a text",
    "TestGetIntervalsBetween": "dates in the American order",
    "TestCurrentTimestamps": "compares with the words of PostgreSQL",
    "TestSnapshot::test_new_column_captured_by_snapshot": "DEFAULT NULL in the test's own SQL",
    "TestSeedWithWrongDelimiter": "columns may have any name",
    "TestSimpleSeedEnabledViaConfig": "DROP SCHEMA CASCADE in the test's own SQL",
    "TestSimpleSeedColumnOverride": "expects the names that PostgreSQL gives types",
    "::test__constraints_ddl": "compares the adapter's SQL with that of PostgreSQL",
    "::test__model_constraints_ddl": "compares the adapter's SQL with that of PostgreSQL",
    "::test__constraints_enforcement_rollback": "expects messages of PostgreSQL",
    "TestEphemeralMulti": "compares the adapter's SQL with that of PostgreSQL",
    "TestEphemeralNested": "compares the adapter's SQL with that of PostgreSQL",
    # What the adapter does not do, or does differently.
    "TestDateDiff": "three cases differ from dbt's; the cause is not known",
    "::test__constraints_wrong_column_data_types": "fails; not examined",
    "::test__constraints_correct_column_data_types": "fails; not examined",
    "TestSeedSpecificFormats": "a schema with a table that has dots in its name is not dropped",
    "ContractSqlHeader": "SET is not a statement of Frazil",
    "TestPrePostModelHooks::": "dbt sends COMMIT before hooks outside of transactions",
    "TestPrePostModelHooksUnderscores::": "dbt sends COMMIT before hooks outside of transactions",
    "TestPrePostModelHooksInConfigWithCount::": "dbt sends COMMIT before such hooks",
    "TestBasicSeedTests::test_simple_seed_full_refresh_flag": "views on a dropped table stay",
    "TestSeedConfigFullRefreshOn::": "views on a dropped table stay",
    # Names of PostgreSQL's test database.
    "TestHookRefs::": "expects the database dbt",
    "TestPrePostModelHooksInConfig::": "expects the database dbt",
    "TestPrePostModelHooksInConfigKwargs::": "expects the database dbt",
    "TestPrePostRunHooks::": "expects the database dbt",
}
"""Parts of the names of tests, and why they are left out."""


@pytest.fixture(scope="class")
def dbt_profile_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A catalog in a folder of the class."""
    folder = tmp_path_factory.mktemp("warehouse")
    return {"type": "frazil", "threads": 4, "catalog": str(folder / "warehouse")}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are listed."""
    left_out = [item for item in items if any(part in item.nodeid for part in LEFT_OUT)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
