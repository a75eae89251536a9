"""Values are checked where they come in: at the public methods, against the types they declare.

`check_arguments` wraps the public methods of a class, `checked` one function. A value of another
type than the annotation says is refused with an `InvalidInput` that names the parameter, before
anything is done with it. Lone surrogates are refused in text. What a value means (a column that is
not there, a limit below zero) is checked by what uses it.

Classes are compared by name, so that checking imports nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime, timedelta
from functools import wraps
from itertools import zip_longest
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

from frazil.errors import InvalidInput

_CO_VARARGS = 0x04  # as `inspect` has it, whose import compiles and loads a Python parser
P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

Check = Callable[[Any], bool]

ALIASES = {
    "AsOf": "int | str | date | datetime | Snapshot",
    "Moment": "int | str | date | datetime | timedelta",
    "TableName": "str | Sequence[str] | Identifier",
    "NamespaceName": "str | Sequence[str]",
    "ColumnPath": "str | Sequence[str]",
    "Matching": "str | BooleanExpression | frazil.Expression | polars.Expr | pc.Expression",
    "Where": "Matching | None",
    "Condition": "str | Expression | None",
    "When": "Any",
    "TypeLike": "str | IcebergType | DataType",
    "AnySchema": "Schema",
    "AnySpec": "PartitionSpec",
    "AnyOrder": "SortOrder",
}
MEANINGS = {
    "str": "text",
    "int": "a whole number",
    "bool": "True or False",
    "None": "None",
    "Sequence[str]": "a list of strings",
    "tuple[str, ...]": "a list of strings",
    "Sequence[Any]": "a list",
    "Sequence[int]": "a list of whole numbers",
    "Collection[int]": "a list of whole numbers",
    "Mapping[str, str]": "a dictionary of strings",
    "Mapping[str, Any]": "a dictionary by column name",
    "BooleanExpression": "a PyIceberg expression",
    "IcebergType": "a PyIceberg type",
    "DataType": "an Arrow type",
    "Expression": "an expression made by frazil.expr",
    "frazil.Expression": "an expression made by frazil.expr",
    "polars.Expr": "an expression of polars",
    "pc.Expression": "pyarrow or pandas",
    "Engine": "an engine",
    "Access": "what knows the owners of tokens, such as a TokenFile",
    "Callable[[str], None]": "a function",
    "os.PathLike[str]": "a path",
    "date": "a date",
    "datetime": "a time",
    "timedelta": "an age (timedelta)",
}
_MAX_INT = 1 << 63


def is_text(value: Any) -> bool:
    """Whether a value is text that has a UTF-8 form."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number of 64 bits; bool is not accepted."""
    if isinstance(value, bool):
        return False
    if not isinstance(value, int):
        value = value.item() if getattr(value, "ndim", None) == 0 else None
        if not isinstance(value, int) or isinstance(value, bool):
            return False
    return -_MAX_INT <= value < _MAX_INT


def _are(kind: Check) -> Check:
    def check(value: Any) -> bool:
        is_many = isinstance(value, Sequence | Set) or bool(getattr(value, "ndim", 0))
        return is_many and not isinstance(value, str | bytes) and all(kind(item) for item in value)

    return check


def _maps_to(kind: Check) -> Check:
    def check(value: Any) -> bool:
        return isinstance(value, Mapping) and all(
            is_text(key) and kind(item) for key, item in value.items()
        )

    return check


_CHECKS: dict[str, Check] = {
    "str": is_text,
    "int": is_whole,
    "bool": lambda value: isinstance(value, bool),
    "None": lambda value: value is None,
    "Any": lambda value: True,
    "Rows": lambda value: True,
    "Progress": callable,
    "Callable[[RowEditor], Change]": callable,
    "Engine": lambda value: hasattr(value, "matching"),
    "Access": lambda value: callable(getattr(value, "principal", None)),
    "Callable[[str], None]": callable,
    "Sequence[str]": _are(is_text),
    "tuple[str, ...]": _are(is_text),
    "Sequence[Any]": _are(lambda value: True),
    "Sequence[int]": _are(is_whole),
    "Collection[int]": _are(is_whole),
    "Mapping[str, str]": _maps_to(is_text),
    "Mapping[str, Any]": _maps_to(lambda value: True),
    "os.PathLike[str]": lambda value: isinstance(value, os.PathLike) and is_text(os.fspath(value)),
    "date": lambda value: isinstance(value, date),
    "datetime": lambda value: isinstance(value, datetime),
    "timedelta": lambda value: isinstance(value, timedelta),
    "MetadataUpdate": lambda value: hasattr(value, "apply"),
}


def is_known(part: str) -> bool:
    """Whether values can be checked against a part of an annotation: a known one, or a class."""
    return part in _CHECKS or part.replace(".", "").isidentifier()


def _named(name: str) -> Check:
    """Whether a value is of a class of this name."""
    last = name.rsplit(".", 1)[-1]
    return lambda value: any(base.__name__ == last for base in type(value).__mro__)


def alternatives(annotation: str) -> list[str]:
    """The parts of a union, with aliases spelled out."""
    names: list[str] = []
    depth, start = 0, 0
    for at, character in enumerate(f"{annotation}|"):
        depth += (character == "[") - (character == "]")
        if character == "|" and depth == 0:
            part = annotation[start:at].strip()
            start = at + 1
            names += alternatives(ALIASES[part]) if part in ALIASES else [part]
    return names


def _check_of(annotation: str) -> Check | None:
    parts = alternatives(annotation)
    if "Any" in parts or "Rows" in parts or not all(is_known(part) for part in parts):
        return None
    checks = [_CHECKS.get(part) or _named(part) for part in parts]
    return lambda value: any(check(value) for check in checks)


def short_repr(value: Any) -> str:
    """A value in a message: its `repr`, cut; a value that has none is named by its class."""
    try:
        text = ascii(value) if isinstance(value, str) and not is_text(value) else repr(value)
    except Exception:  # the value's own code
        text = _one(type(value).__name__)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _one(kind: str) -> str:
    return f"{'an' if kind[:1] in 'AEIOU' else 'a'} {kind}"


def _refusal(name: str, value: Any, annotation: str) -> InvalidInput:
    parts = [MEANINGS.get(part) or _one(part) for part in alternatives(annotation)]
    expected = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
    return InvalidInput(f"{name} is {short_repr(value)}; expected {expected}")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, which refuses arguments of other types than it declares."""
    # Names come from the code object, which costs less at import than `inspect.signature`.
    code = cast(FunctionType, function).__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[:count]
    many = code.co_varnames[count] if code.co_flags & _CO_VARARGS else None
    rules: dict[str, tuple[Check, str]] = {}
    for name, annotation in function.__annotations__.items():
        rule = _check_of(annotation) if name != "return" else None
        if rule is not None:
            rules[name] = (rule, annotation)
    if not rules:
        return function
    rest = next((rule for name, rule in rules.items() if name not in (*names, many)), None)
    positional = names[: code.co_argcount]

    def check(name: str, value: Any, rule: tuple[Check, str] | None) -> Any:
        if rule is None:
            return value
        if not rule[0](value):
            raise _refusal(name, value, rule[1])
        return value.tolist() if hasattr(type(value), "ndim") else value  # NumPy's

    @wraps(function)
    def entered(*args: P.args, **kwargs: P.kwargs) -> R:
        arguments = [
            check(name, value, rules.get(name))
            for name, value in zip_longest(positional[: len(args)], args, fillvalue=many or "")
        ]
        by_name = dict(kwargs)
        for name, value in kwargs.items():
            if name in names:
                by_name[name] = check(name, value, rules.get(name))
            elif rest is not None and not rest[0](value):  # may be a secret: not shown
                raise InvalidInput(f"{name} is a {type(value).__name__}; expected text")
        return cast(R, cast(Any, function)(*arguments, **by_name))

    return entered


def check_arguments(kind: type[C]) -> type[C]:
    """The class with its own public methods checked."""
    for name, member in list(vars(kind).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(kind, name, checked(member))
    return kind


__all__ = [
    "alternatives",
    "check_arguments",
    "checked",
    "is_known",
    "is_text",
    "is_whole",
    "short_repr",
]
