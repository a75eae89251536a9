"""Expressions of pyarrow.compute, read from the record batch that pickles them.

The batch's columns are the literals and options. The tree is in the metadata of its schema, as a
list of pairs: `call` … `end` around arguments, `field_ref`, `literal`, `options`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from frazil.filter.frames import terms as t
from frazil.iceberg.expressions import Op
from frazil.value_classes import dataclass

_COMPARISONS: Final = {
    "equal": Op.EQ,
    "not_equal": Op.NE,
    "less": Op.LT,
    "less_equal": Op.LE,
    "greater": Op.GT,
    "greater_equal": Op.GE,
}
_TEXT: Final = {
    "starts_with": "starts_with",
    "ends_with": "ends_with",
    "match_substring": "contains",
}
_WITH_NULLS, _WITHOUT_NULLS = 0, 1
"""How `is_in` takes nulls: like any value, or never."""


@dataclass(frozen=True, slots=True)
class _Call:
    function: str
    arguments: tuple[_Call | t.Operand, ...]
    options: dict[str, Any]


def arrow_term(expression: Any) -> t.Term:
    """The condition that the expression says."""
    try:
        _, (pickled, *_) = expression.__reduce__()
    except pa.ArrowException as error:
        raise t.refusal(f"{expression} ({error})", t.Logic.ARROW, "name columns by name") from None
    with pa.ipc.open_file(pa.BufferReader(pickled)) as file:
        batch = file.get_batch(0)
    return _term(_Reader(_pairs(batch.schema), batch).node())


def _pairs(schema: pa.Schema) -> list[tuple[str, str]]:
    """The metadata of a schema in order, with keys that occur twice; a dictionary loses them.

    Read from the C data interface: a count, then lengths and bytes.
    """
    capsule = schema.__arrow_c_schema__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    fields = (ctypes.c_void_p * 3).from_address(pointer_of(capsule, b"arrow_schema"))
    at = fields[2]  # after format and name
    if at is None:
        return []

    def number() -> int:
        nonlocal at
        at += 4
        return ctypes.c_int32.from_address(at - 4).value

    def text() -> str:
        nonlocal at
        length = number()
        at += length
        return ctypes.string_at(at - length, length).decode()

    return [(text(), text()) for _ in range(number())]


class _Reader:
    def __init__(self, pairs: list[tuple[str, str]], batch: pa.RecordBatch) -> None:
        self._pairs = pairs
        self._batch = batch
        self._at = 0

    def node(self) -> _Call | t.Operand:
        key, value = self._take()
        match key:
            case "literal":
                return t.Const(self._value(int(value)))
            case "field_ref":
                return t.Col((value,))
            case "nested_field_ref":
                return t.Col(tuple(self._take()[1] for _ in range(int(value))))
            case "call":
                return self._call(value)
        raise t.refusal(f"a part {key!r}", t.Logic.ARROW)

    def _call(self, function: str) -> _Call:
        arguments: list[_Call | t.Operand] = []
        options: dict[str, Any] = {}
        while self._pairs[self._at][0] != "end":
            if self._pairs[self._at][0] == "options":
                options = self._value(int(self._take()[1]))
            else:
                arguments.append(self.node())
        self._take()
        return _Call(function, tuple(arguments), options)

    def _take(self) -> tuple[str, str]:
        self._at += 1
        return self._pairs[self._at - 1]

    def _value(self, index: int) -> Any:
        try:
            return self._batch.column(index)[0].as_py()
        except (ValueError, ImportError) as error:  # nanoseconds without pandas
            kind = self._batch.schema.types[index]
            raise t.refusal(f"a value of type {kind} ({error})", t.Logic.ARROW) from None


def _term(node: _Call | t.Operand) -> t.Term:
    if not isinstance(node, _Call):
        return node
    name, arguments = node.function, node.arguments
    if name in _COMPARISONS:
        left, right = map(_operand, arguments)
        return t.Compared(_COMPARISONS[name], left, right)
    if name in _TEXT:
        if node.options["ignore_case"]:
            raise t.refusal(f"{name} with ignore_case", t.Logic.ARROW)
        place: Any = _TEXT[name]
        return t.HasText(_column(arguments[0]), place, node.options["pattern"])
    make = _FUNCTIONS.get(name)
    if make is None:
        raise t.refusal(f"the function {name}", t.Logic.ARROW)
    return make(node)


def _is_in(node: _Call) -> t.Term:
    values, nulls = node.options["value_set"], node.options["null_matching_behavior"]
    if nulls not in (_WITH_NULLS, _WITHOUT_NULLS):
        raise t.refusal("is_in with this null_matching_behavior", t.Logic.ARROW)
    if nulls == _WITHOUT_NULLS:
        values = [value for value in values if value is not None]
    return t.OneOf(_column(node.arguments[0]), tuple(values), null_is_value=True)


_FUNCTIONS: Final[dict[str, Callable[[_Call], t.Term]]] = {
    "and_kleene": lambda node: t.All(tuple(map(_term, node.arguments))),
    "or_kleene": lambda node: t.AnyOf(tuple(map(_term, node.arguments))),
    "xor": lambda node: t.either_not_both(*map(_term, node.arguments)),
    "invert": lambda node: t.Opposite(_term(node.arguments[0])),
    "is_null": lambda node: t.Missing(_column(node.arguments[0]), node.options["nan_is_null"]),
    "is_valid": lambda node: t.Opposite(t.Missing(_column(node.arguments[0]))),
    "is_nan": lambda node: t.NotNumber(_column(node.arguments[0])),
    "is_in": _is_in,
}


def _operand(node: _Call | t.Operand) -> t.Operand:
    if isinstance(node, _Call):
        raise t.refusal(f"the function {node.function} in a comparison", t.Logic.ARROW)
    return node


def _column(node: _Call | t.Operand) -> t.Col:
    if not isinstance(node, t.Col):
        what = f"the function {node.function}" if isinstance(node, _Call) else repr(node.value)
        raise t.refusal(f"{what} where a column is expected", t.Logic.ARROW)
    return node
