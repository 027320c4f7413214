"""The arguments of a function call: those that are sent for approval, and those that only the function gets."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from countersign._names import Invalid
from countersign._plans import text
from countersign._reading import parse
from countersign._same import same
from countersign.errors import Json

# Names of the first parameter of a method.
_RECEIVERS = frozenset({"self", "cls"})


class Arguments:
    """The parameters of a function."""

    def __init__(self, function: Callable[..., Any], local: Iterable[str]) -> None:
        self._signature = inspect.signature(function)
        names = list(self._signature.parameters)
        self._local = frozenset(local) | (_RECEIVERS & set(names[:1]))
        unknown = frozenset(local) - set(names)
        if unknown:
            raise Invalid("local", f"the function has no parameter {', '.join(sorted(unknown))}")

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """Returns the call, with the defaults."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if name not in self._local}
        return Call(bound, _json(given))


class Call:
    """One call. `sent` is a copy, so that a change of an argument during the wait has no effect."""

    def __init__(self, bound: inspect.BoundArguments, sent: dict[str, Json]) -> None:
        self._bound, self.sent = bound, sent

    def run(self, function: Callable[..., Any], approved: Mapping[str, Json]) -> Any:
        """Calls the function with the approved arguments."""
        self._bound.arguments.update(approved)
        return function(*self._bound.args, **self._bound.kwargs)


def _json(given: dict[str, Any]) -> dict[str, Json]:
    """Returns a copy, if each argument is a JSON value. Any other value would reach the function as another one."""
    # `*args` is a tuple, and is sent as a list.
    values = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    copy: dict[str, Json] = parse(text(values))
    for name, value in copy.items():
        if not same(value, values[name]):
            raise Invalid(
                name, "not a JSON value. Convert it, or name the parameter in `local`, so that it is not sent"
            )
    return copy
