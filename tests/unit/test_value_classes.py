"""The package's own decorator beside the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from frazil import value_classes

Decorator = Callable[..., Any]


class _Own:
    dataclass, field, replace = (
        staticmethod(value_classes.dataclass),
        staticmethod(value_classes.field),
        staticmethod(value_classes.replace),
    )


class _Standard:
    dataclass, field, replace = (
        staticmethod(dataclasses.dataclass),
        staticmethod(dataclasses.field),
        staticmethod(dataclasses.replace),
    )


def _classes(of: Any) -> dict[str, Any]:
    """The same classes of either decorator."""

    @of.dataclass(frozen=True, slots=True, kw_only=True)
    class Base:
        """A value."""

        count: int
        name: str = "none"
        tags: list[str] = of.field(default_factory=list)
        KIND: ClassVar[str] = "base"

        def __post_init__(self) -> None:
            if self.count < 0:
                raise ValueError("negative")

    @of.dataclass(frozen=True, slots=True, kw_only=True)
    class Derived(Base):
        name: str = "derived"
        extra: float = 0.5

    @of.dataclass(slots=True)
    class Open:
        left: int
        right: int = of.field(default=2, compare=False, repr=False)
        late: list[int] = of.field(init=False, default_factory=list)

    @of.dataclass(frozen=True, eq=False)
    class Plain:
        value: int = 3

    @of.dataclass(frozen=True, slots=True, kw_only=True)
    class Own:
        value: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    return {cls.__name__: cls for cls in (Base, Derived, Open, Plain, Own)}


CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Base", (), {"count": 1}),
    ("Base", (), {"count": 1, "name": "x", "tags": ["a"]}),
    ("Base", (), {"count": -1}),
    ("Base", (1,), {}),
    ("Base", (), {}),
    ("Base", (), {"count": 1, "other": 2}),
    ("Derived", (), {"count": 2}),
    ("Derived", (), {"count": 2, "extra": 1.5, "name": "y"}),
    ("Open", (1,), {}),
    ("Open", (1, 3), {}),
    ("Open", (1, 3, []), {}),
    ("Plain", (), {}),
    ("Plain", (4,), {}),
    ("Own", (), {"value": 1}),
]


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:
        return type(error), str(error)


def _text(value: Any) -> str:
    return repr(value).replace("<locals>", "")


@pytest.mark.parametrize(("name", "arguments", "named"), CALLS)
def test_a_class_behaves_as_one_of_the_standard_library(
    name: str, arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    assert _seen(_Own, name, arguments, named) == _seen(_Standard, name, arguments, named)


def _seen(of: Any, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Everything that can be seen of a class's value."""
    cls = _classes(of)[name]
    value = _outcome(lambda: cls(*arguments, **named))
    if isinstance(value, tuple):
        return value
    other = cls(*arguments, **named)
    fields = dataclasses.fields(value)
    first = fields[0].name
    return (
        _text(value),
        value == other,
        value != other,
        value == 1,
        _outcome(lambda: hash(value) == hash(other)),
        dataclasses.asdict(value),
        [(f.name, f.type, f.init, f.repr, f.compare, f.kw_only) for f in fields],
        [f.default is dataclasses.MISSING for f in fields],
        _text(of.replace(value, **{first: 5})),
        _outcome(lambda: of.replace(value, strange=1))[0],
        str(inspect.signature(cls)),
        cls.__match_args__,
        hasattr(value, "__dict__"),
        _text(copy.copy(value)),
        _text(copy.deepcopy(value)),
        _outcome(lambda: setattr(value, first, 8)),
        _outcome(lambda: delattr(value, first)),
    )


@value_classes.dataclass(frozen=True, slots=True, kw_only=True)
class _Pickled:
    name: str
    inner: tuple[_Pickled, ...] = ()


def test_a_frozen_class_is_slotted_and_takes_keywords_only() -> None:
    @value_classes.frozen
    class Point:
        x: int
        y: int = 0

    @value_classes.frozen(eq=False)
    class Place:
        x: int

    point = Point(x=1)
    assert (point, hash(point)) == (Point(x=1), hash(Point(x=1)))
    assert not hasattr(point, "__dict__")
    assert Place(x=1) != Place(x=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[call-arg]


def test_values_survive_a_pickle() -> None:
    value = _Pickled(name="a", inner=(_Pickled(name="b"),))
    restored = pickle.loads(pickle.dumps(value))
    assert restored == value
    assert restored is not value
    assert hash(restored) == hash(value)


def test_one_field_is_compared_as_the_standard_library_compares_it() -> None:
    """The same object equals itself there, even a NaN or an array."""

    @value_classes.dataclass(frozen=True, slots=True)
    class One:
        value: Any

    rows = np.array([1, 2])
    assert One(rows) == One(rows)
    nan = float("nan")
    assert One(nan) == One(nan)
    assert One(nan) != One(float("nan"))


def test_standard_and_own_classes_derive_from_each_other() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Standard:
        first: int

    @value_classes.dataclass(frozen=True, kw_only=True)
    class Own(Standard):
        second: list[int] = value_classes.field(default_factory=list)

    @value_classes.dataclass(frozen=True, kw_only=True)
    class Base:
        first: int = 4

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Derived(Base):
        second: int

    assert dataclasses.asdict(Own(first=1)) == {"first": 1, "second": []}
    assert dataclasses.asdict(Derived(second=2)) == {"first": 4, "second": 2}
    assert value_classes.replace(Own(first=1), second=[3]) == Own(first=1, second=[3])


def test_a_class_without_slots_may_call_its_base() -> None:
    @value_classes.dataclass(frozen=True)
    class Base:
        value: int

        def text(self) -> str:
            return str(self.value)

    @value_classes.dataclass(frozen=True)
    class Derived(Base):
        def text(self) -> str:
            return super().text() + "!"

    assert Derived(3).text() == "3!"


def test_a_mutable_default_is_refused() -> None:
    with pytest.raises(ValueError, match="mutable default for field names: use default_factory"):

        @value_classes.dataclass(slots=True)
        class Names:
            names: list[str] = []


def test_the_cause_of_a_refusal_is_the_same_class() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        _Pickled(name="a").name = "b"  # type: ignore[misc]


def test_an_init_of_its_own_and_an_order_are_kept() -> None:
    @value_classes.dataclass(frozen=True, order=True)
    class Ordered:
        value: int

    @value_classes.dataclass(slots=True, eq=False)
    class WithInit:
        value: int

        def __init__(self) -> None:
            self.value = 9

    assert Ordered(1) < Ordered(2)
    assert WithInit().value == 9
    with pytest.raises(TypeError):
        hash(_classes(_Own)["Open"](1))
