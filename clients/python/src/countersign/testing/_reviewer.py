"""A reviewer who decides on the real pages, with their forms, nonces and digests."""

from __future__ import annotations

from types import TracebackType
from typing import Literal

import httpx

from countersign.answers import Held, Review, ReviewLink
from countersign.resources import Interrupt

from ._forms import Form, forms

Verdict = Literal["approve", "deny"]
# A held proposal, an interrupt, or the id or address of a review.
Asked = Held | Review | ReviewLink | Interrupt | str
# The number of digits that a stage with typed confirmation requires.
TYPED_DIGITS = 6


class NotCounted(Exception):
    """The gateway refused the vote or the sign-in. Its page says why."""


class Reviewer:
    """A reviewer who is signed in, for tests only."""

    def __init__(self, site: str, name: str, password: str) -> None:
        self.name = name
        self._http = httpx.Client(base_url=site, headers={"Origin": site}, trust_env=False, timeout=30.0)
        try:
            self._sign_in(password)
        except BaseException:
            self._http.close()
            raise

    def approve(self, held: Asked, *, comment: str = "") -> None:
        """Approves a held proposal, an interrupt, or a review by its id or address."""
        self.vote(held, "approve", comment=comment)

    def deny(self, held: Asked, *, comment: str = "") -> None:
        """Denies it."""
        self.vote(held, "deny", comment=comment)

    def vote(
        self,
        held: Asked,
        verdict: Verdict,
        *,
        comment: str = "",
        knows_outcome: bool = False,
    ) -> None:
        """Loads the page, votes, and confirms on the second page.

        `knows_outcome` ticks the box for an earlier write with an unknown outcome.
        """
        path = _path(held)
        first = self._form(path, self._http.get(path), "/decision")
        if isinstance(held, Held) and first.fields.get("digest") != held.transition:
            raise NotCounted("the page shows another digest")
        ticked = {"outcome_unknown": "yes"} if knows_outcome else {}
        sent = {**first.fields, **ticked, "verdict": verdict, "comment": comment}
        again = self._form(path, self._http.post(first.action, data=sent), "/decision")
        if "typed" in again.fields:
            again.fields["typed"] = again.fields["digest"][-TYPED_DIGITS:]
        self._see_other(self._http.post(again.action, data=again.fields))

    def _sign_in(self, password: str) -> None:
        form = self._form("/sign-in", self._http.get("/sign-in"), "/sign-in")
        self._see_other(self._http.post(form.action, data={**form.fields, "username": self.name, "password": password}))

    def _form(self, path: str, page: httpx.Response, action: str) -> Form:
        found = next((it for it in forms(page.text) if it.action.endswith(action)), None)
        if page.status_code != httpx.codes.OK or found is None:
            raise NotCounted(f"{path}: {page.status_code} and no form for {self.name}{_said(page)}")
        return found

    def _see_other(self, page: httpx.Response) -> None:
        if page.status_code != httpx.codes.SEE_OTHER:
            raise NotCounted(f"{page.request.url.path}: {page.status_code} for {self.name}{_said(page)}")

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()

    def __enter__(self) -> Reviewer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _path(asked: Asked) -> str:
    if isinstance(asked, Held):
        asked = asked.review
    if not isinstance(asked, str):
        asked = asked.url
    *_, folder, name = ("reviews/" + asked if "/" not in asked else asked).split("/")
    return f"/{folder}/{name}"


def _said(page: httpx.Response) -> str:
    """Returns the problem that the page shows, if it shows one."""
    mark = 'role="alert"'
    after = page.text.partition(mark)[2].partition(">")[2].partition("<")[0].strip()
    return f": {after}" if after else ""
