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
_RECEIVERS = frozenset({"self", "cls"})


class Arguments:
    """The parameters of a function."""

    def __init__(self, function: Callable[..., Any], local: frozenset[str]) -> None:
        self._signature = inspect.signature(function)
        names = list(self._signature.parameters)
        self._local = local | (_RECEIVERS & set(names[:1]))
        unknown = local - set(names)
        if unknown:
            raise Invalid("local", f"the function has no parameter {', '.join(sorted(unknown))}")

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """Returns the call, with the defaults."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if name not in self._local}
        for name in given:
            # `*args` is a tuple, and is sent as a list.
            if self._signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                given[name] = list(given[name])
        return Call(bound, {name: _copy(name, value) for name, value in given.items()})


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
