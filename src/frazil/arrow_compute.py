"""The functions of `pyarrow.compute`, each made when it is first used.

Importing `pyarrow.compute` writes signatures and texts for three hundred functions, a tenth of a
first plan's time. What is called here are the same compiled functions, with the same options.
Methods of arrays and tables (`cast`, `take`, `filter`, `is_null`) import `pyarrow.compute`, too:
where a new process comes by first, these functions take their place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import _compute

if TYPE_CHECKING:
    from pyarrow.compute import Expression as Expression

_NAMES = {"and_": "and", "or_": "or"}
"""What pyarrow calls differently in Python."""
_IN_PYTHON = frozenset({"index", "random", "top_k_unstable", "bottom_k_unstable"})
"""Functions that pyarrow wrote in Python, and that are not written here."""

call_function = _compute.call_function


def cast(values: Any, target_type: pa.DataType, *, safe: bool = True) -> Any:
    """The values as another type."""
    options = _compute.CastOptions
    chosen = options.safe(target_type) if safe else options.unsafe(target_type)
    return call_function("cast", [values], chosen)


def take(values: Any, indices: Any) -> Any:
    """The values at these positions, of an array, a batch or a table."""
    return call_function("take", [values, indices], _compute.TakeOptions(boundscheck=True))


def fill_null(values: Any, fill_value: Any) -> Any:
    """The values, and another one in place of null."""
    if not isinstance(fill_value, pa.Scalar | pa.Array | pa.ChunkedArray):
        fill_value = pa.scalar(fill_value, values.type)
    elif fill_value.type != values.type:
        fill_value = cast(fill_value, values.type)
    return call_function("coalesce", [values, fill_value])


def filter(values: Any, mask: Any) -> Any:
    """The values where the mask is true, of an array, a batch or a table."""
    return call_function("filter", [values, mask], _compute.FilterOptions("drop"))


def field(*path: str) -> Any:
    """A column in an expression."""
    expression = _compute.Expression
    return expression._field(*path) if len(path) == 1 else expression._nested_field(path)


def scalar(value: Any) -> Any:
    """A value in an expression."""
    return _compute.Expression._scalar(value)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _named(name)


@cache  # and not in the module, where `any` and `min` would hide Python's
def _named(name: str) -> Any:
    if name in _IN_PYTHON:
        return _of_pyarrow(name)
    if hasattr(_compute, name):  # a class of options, or of expressions
        return getattr(_compute, name)
    try:
        return _function(_NAMES.get(name, name), name)
    except KeyError:
        raise AttributeError(f"pyarrow.compute has no {name!r}") from None


def _of_pyarrow(name: str) -> Any:
    import pyarrow.compute

    return getattr(pyarrow.compute, name)


def _function(registered: str, name: str) -> Callable[..., Any]:
    """A compiled function, called as the one of pyarrow.compute is."""
    function = _compute.get_function(registered)
    arity = function.arity
    options_name = function._doc.options_class
    options_class = getattr(_compute, options_name) if options_name else None

    def call(*arguments: Any, options: Any = None, **settings: Any) -> Any:
        values, given = list(arguments), []
        if arity is not Ellipsis:
            values, given = values[:arity], values[arity:]
        if given or settings:
            if options_class is None or options is not None:
                raise TypeError(f"{name}() has no such options: {given or settings}")
            options = options_class(*given, **settings)
        if any(isinstance(value, _compute.Expression) for value in values):
            return _compute.Expression._call(registered, values, options)
        return function.call(values, options)

    call.__name__ = call.__qualname__ = name
    return call
