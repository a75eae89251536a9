"""The property that turns on publishing, apart from the code that publishes."""

from typing import Final

FORMAT_PROPERTY: Final = "publish.format-version"
