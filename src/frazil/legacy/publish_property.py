"""The property that asks for a publication after every commit; it is looked at after each."""

from typing import Final

FORMAT_PROPERTY: Final = "publish.format-version"
