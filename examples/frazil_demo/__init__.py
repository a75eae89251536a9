"""The whole story on a small shop, as `frazil demo` tells it."""

from frazil_demo.story import Story, run_demo

__all__ = ["Story", "run_demo"]
