"""Interrupts of a run for a review. A resume only says which review it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.types import interrupt

from countersign import _calls, _waiting
from countersign._plans import Core, Plan
from countersign.answers import Decision, Held
from countersign.errors import CountersignError, UnexpectedAnswer

# Each wrong resume adds a question to the node. The limit ends a loop of wrong resumes.
ANSWERS_MAX = 1000
KIND = "state_transition_review"


@dataclass(frozen=True)
class Question:
    """A held transition, as the value of an interrupt. The diff is the part that this token's node may see."""

    thread: str
    transition: str
    diff: tuple[dict[str, Any], ...]
    review: dict[str, Any] | None

    @classmethod
    def of_held(cls, thread: str, held: Held) -> Question:
        """Returns the question for a held proposal."""
        review = held.review
        return cls(
            thread,
            held.transition,
            held.diff,
            {"id": review.id, "url": review.url, "expires_at": review.expires_at.isoformat()},
        )

    def value(self) -> dict[str, Any]:
        """Returns the value that the graph's user sees, and that an endpoint of the kind `langgraph` looks for."""
        keys = {str(it["pointer"]).split("/")[1] for it in self.diff if str(it.get("pointer", "")).startswith("/")}
        return {
            "kind": KIND,
            "thread": self.thread,
            "transition_digest": self.transition,
            "changed_keys": sorted(keys),
            "redacted_diff": list(self.diff),
            "review": self.review,
        }


class AnsweredTooOften(CountersignError):
    """A run was resumed too often with values that are not about its question."""


def question_about(core: Core, thread: str, transition: str) -> Plan[Question]:
    """Returns the question for a transition that is known by its digest alone, if it belongs to this thread."""
    found = yield from _calls.transition(core, transition)
    if found.thread != thread:
        raise UnexpectedAnswer("the awaited transition belongs to another thread")
    return Question(thread, transition, found.diff, None)


def decided(core: Core, question: Question) -> Plan[Decision]:
    """Stops the run until a resume has this question's digest and the gateway reports the decision.

    Everything else in a resume is ignored. A resume that is too early, or about something else, stops the run again. An
    edit by a reviewer is a question of its own.
    """
    for _ in range(ANSWERS_MAX):
        if digest_in(interrupt(question.value())) != question.transition:
            continue
        transition, found = yield from _waiting.followed(core, question.transition)
        if found is not None:
            return found
        if transition != question.transition:
            question = yield from question_about(core, question.thread, transition)
    raise AnsweredTooOften(f"more than {ANSWERS_MAX} resumes were about another review")


def digest_in(answer: object) -> object:
    """Returns the digest, the only part of a resume that is used."""
    return answer.get("transition_digest") if isinstance(answer, Mapping) else answer
