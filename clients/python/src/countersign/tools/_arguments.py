"""The arguments of a function call: those that are sent for approval, and those that only the function gets."""

from __future__ import annotations

import contextlib
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from countersign._names import Invalid
from countersign._plans import text
from countersign.errors import Json

# Names of the first parameter of a method.
_RECEIVERS = ("self", "cls")


class Arguments:
    """The parameters of a function."""

    def __init__(self, function: Callable[..., Any], local: frozenset[str]) -> None:
        self._signature = inspect.signature(function)
        names = list(self._signature.parameters)
        self._local = local
        self._receiver = names[0] if names and names[0] in _RECEIVERS else None
        # The class in whose body the function is defined, if it is a method.
        self._owner = (function.__module__, getattr(function, "__qualname__", "").rpartition(".")[0])
        unknown = local - set(names)
        if unknown:
            raise Invalid("local", f"the function has no parameter {', '.join(sorted(unknown))}")

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """Returns the call, with the defaults."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if name not in self._local}
        # A plain function may have a parameter of such a name too, and reviewers must see it.
        if self._receiver is not None and self._is_own(bound.arguments[self._receiver]):
            given.pop(self._receiver, None)
        for name in given:
            # `*args` is a tuple, and is sent as a list.
            if self._signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                given[name] = list(given[name])
        return Call(bound, {name: _copy(name, value) for name, value in given.items()})

    def _is_own(self, value: object) -> bool:
        """Returns whether a value is an object of the method's class, or the class."""
        kinds = [*type(value).__mro__, *(value.__mro__ if isinstance(value, type) else ())]
        return self._owner in [(it.__module__, it.__qualname__) for it in kinds]


class Call:
    """One call. `sent` is a copy, so that a change of an argument during the wait has no effect."""

    def __init__(self, bound: inspect.BoundArguments, sent: dict[str, Json]) -> None:
        self._bound, self.sent = bound, sent

    def run(self, function: Callable[..., Any]) -> Any:
        """Calls the function with the arguments that were sent. The approval must be of these."""
        self._bound.arguments.update(self.sent)
        return function(*self._bound.args, **self._bound.kwargs)


def _copy(name: str, given: object) -> Json:
    """Returns a copy, if JSON keeps the value and its type. Any other would reach the function as another one."""
    with contextlib.suppress(Invalid, RecursionError):
        copy = json.loads(text(given))
        if _is_kept(given, copy):
            return copy
    raise Invalid(
        name,
        "JSON does not keep the value and its type. Use None, bool, int, float, str, and lists and dicts of these, "
        "or name the parameter in `local`, so that it is not sent",
    )


def _is_kept(given: object, copy: Json) -> bool:
    """Returns whether a copy has the same values of the same types. A tuple becomes a list, and an enum its value."""
    pairs: list[tuple[Any, Json]] = [(given, copy)]
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other):
            return False
        if isinstance(other, dict):
            if one.keys() != other.keys() or any(type(key) is not str for key in one):
                return False
            pairs.extend((one[key], other[key]) for key in other)
        elif isinstance(other, list):
            if len(one) != len(other):
                return False
            pairs.extend(zip(one, other, strict=True))
        elif one != other:
            return False
    return True
