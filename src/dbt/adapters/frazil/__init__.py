"""dbt on Frazil: `type: frazil` in a profile. Runs in dbt's process; no server is needed."""

from dbt.adapters.base import AdapterPlugin

from dbt.adapters.frazil.connections import FrazilCredentials
from dbt.adapters.frazil.impl import FrazilAdapter
from dbt.include import frazil

Plugin = AdapterPlugin(
    adapter=FrazilAdapter, credentials=FrazilCredentials, include_path=frazil.PACKAGE_PATH
)
