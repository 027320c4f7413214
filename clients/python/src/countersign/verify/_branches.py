"""Branches in a statement: the origin of a fork, and the branches of a join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from countersign._protocol._forms import Count, Digest, Malformed, Name
from countersign._protocol._json import canonical

from ._tagged import tagged

NAME_CHARS_MAX = 64
BRANCHES_MAX = 32


def branch_thread(thread: str, transition: str, name: str) -> str:
    """Returns the thread of a branch with this name, of that head."""
    digest = tagged("countersign.branch.v1", canonical([thread, transition, name]))
    return "branch-" + digest.removeprefix("sha256:")[:32]


@dataclass(frozen=True)
class Fork:
    """The branch's name, and the head that it starts with."""

    name: Name
    thread: Name
    transition: Digest
    version: Count

    def check(self, own: str) -> None:
        """Checks that the branch's thread follows from its origin."""
        _named(self.name)
        if own == self.thread or own != branch_thread(self.thread, self.transition, self.name):
            raise Malformed("the thread is not the one of this branch")


@dataclass(frozen=True)
class JoinedBranch:
    """A branch in a join, with its own head."""

    name: Name
    thread: Name
    transition: Digest


@dataclass(frozen=True)
class Join:
    """The branches, by name, and how their conflicts were settled."""

    branches: tuple[JoinedBranch, ...]
    strategy: Literal["union", "last_write", "vote", "confidence", "explicit"]

    def check(self, own: str) -> None:
        """Checks that each branch is named once, in order, and none is the thread itself."""
        if not 1 <= len(self.branches) <= BRANCHES_MAX:
            raise Malformed("a join names 1 to 32 branches")
        for branch in self.branches:
            _named(branch.name)
        listed = [it.name for it in self.branches]
        if listed != sorted(set(listed)) or any(it.thread == own for it in self.branches):
            raise Malformed("each branch is named once, and none is the thread itself")


def _named(name: str) -> None:
    if len(name) > NAME_CHARS_MAX:
        raise Malformed("a branch's name has at most 64 characters")
