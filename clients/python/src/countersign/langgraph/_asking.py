"""What people are asked while a run stands still, and what a resume is worth: it says which question it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.types import interrupt

from countersign import _calls, _waiting
from countersign._plans import Core, Plan
from countersign.answers import Decision, Held
from countersign.errors import CountersignError, UnexpectedAnswer

# Each resume that is about something else is one more question of the node's. Nobody answers wrongly that often.
ANSWERS_MAX = 1000
KIND = "state_transition_review"


@dataclass(frozen=True)
class Question:
    """A held transition, as a run stops with it. The diff has what this token's node may see."""

    thread: str
    transition: str
    diff: tuple[dict[str, Any], ...]
    review: dict[str, Any] | None

    @classmethod
    def of_held(cls, thread: str, held: Held) -> Question:
        """The question of a proposal that was held."""
        review = held.review
        return cls(
            thread,
            held.transition,
            held.diff,
            {"id": review.id, "url": review.url, "expires_at": review.expires_at.isoformat()},
        )

    def value(self) -> dict[str, Any]:
        """What whoever runs the graph is shown, and what an endpoint of the kind `langgraph` looks for."""
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
    """A run was resumed again and again with what is not about its question."""


def question_about(core: Core, thread: str, transition: str) -> Plan[Question]:
    """The question about a transition that is known by its digest alone; of another thread it is none."""
    found = yield from _calls.transition(core, transition)
    if found.thread != thread:
        raise UnexpectedAnswer("the transition that is waited for is of another thread")
    return Question(thread, transition, found.diff, None)


def decided(core: Core, question: Question) -> Plan[Decision]:
    """Stops the run until it is resumed with this question's digest and the gateway says how the review ended.

    Whatever else a resume says is not looked at. One that comes too early, or is about something else, stops the run
    again. A rewrite by a reviewer is a question of its own.
    """
    for _ in range(ANSWERS_MAX):
        if digest_in(interrupt(question.value())) != question.transition:
            continue
        transition, found = yield from _waiting.followed(core, question.transition)
        if found is not None:
            return found
        if transition != question.transition:
            question = yield from question_about(core, question.thread, transition)
    raise AnsweredTooOften(f"more than {ANSWERS_MAX} answers were about something else")


def digest_in(answer: object) -> object:
    """The one thing that is taken from a resume."""
    return answer.get("transition_digest") if isinstance(answer, Mapping) else answer
