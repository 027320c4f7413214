"""The forms of a page, as a browser without scripts sends them."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Form:
    """The address and the fields of a form."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)


def forms(page: str) -> list[Form]:
    """Returns every form of a page, in order."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[Form] = []
        self._form: Form | None = None
        self._area: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = Form(said.get("action", ""))
            self.found.append(self._form)
        elif self._form is None or "name" not in said:
            return
        elif tag == "textarea":
            self._area = said["name"]
            self._form.fields[self._area] = ""
        elif tag == "input" and said.get("type") not in ("checkbox", "radio", "submit"):
            self._form.fields[said["name"]] = said.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._form is not None and self._area is not None:
            self._form.fields[self._area] += data.removeprefix("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None
        elif tag == "form":
            self._form = None
