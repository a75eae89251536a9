"""Generated examples: the same ones in every run of the tests, new ones in `make search`.

A change is judged by examples that do not depend on luck; the search goes on looking for others.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fixed", derandomize=True)
settings.register_profile("search", derandomize=False, print_blob=True)
settings.load_profile("fixed")
