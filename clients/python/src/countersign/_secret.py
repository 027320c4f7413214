"""A token that does not print and cannot be pickled."""

from __future__ import annotations

import re
from typing import NoReturn

from ._names import Invalid

_FORM = re.compile(r"[A-Za-z0-9._~+/=-]{1,512}", re.ASCII)


class Secret:
    """A value that must not appear in a log, an error, a traceback's variables or a pickled state."""

    __slots__ = ("_text",)

    def __init__(self, text: object) -> None:
        # Raising here would show the text as a variable in an error report.
        self._text = text

    def checked(self) -> Secret:
        """Returns the secret, if a header can carry it."""
        if not isinstance(self._text, str) or _FORM.fullmatch(self._text) is None:
            if self._text == "":
                raise Invalid("token", "is empty: is the variable set?")
            # The text is not repeated, because a wrong value may be another secret.
            raise Invalid("token", "a token has 1 to 512 characters of A-Z a-z 0-9 . _ ~ + / = -")
        return self

    def reveal(self) -> str:
        """Returns the text, for the one header that carries it."""
        return str(self._text)

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __reduce__(self) -> NoReturn:
        raise TypeError("a token is not pickled: make the client where it is used")
