"""A statement: all facts of a transition, with null for a member that does not apply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from countersign._protocol._forms import Count, Digest, Malformed, Moment, Name, Ordinal, exactly
from countersign._protocol._json import Json

from ._branches import Fork, Join


@dataclass(frozen=True)
class Statement:
    """The object whose hash is a transition's digest. `before` and `after` are the roots `from` and `to`."""

    type: Literal["create", "fork", "propose", "edit", "reaffirm", "rollback", "join", "confirm"]
    flow: Name
    thread: Name
    policy: Digest
    version: Count
    parent: Digest | None
    node: Name | None
    principal: Name
    proposal: Name
    attempt: Ordinal | None
    before: Digest = field(metadata={"wire": "from"})
    after: Digest = field(metadata={"wire": "to"})
    tool: Any
    usage: Any
    rationale: Digest | None
    supersedes: Digest | None
    restores: Digest | None
    write_id: Name | None
    proposed_at: Moment
    fork: Fork | None = None
    join: Join | None = None

    def __post_init__(self) -> None:
        first = self.type in ("create", "fork")
        alone = {
            "version 0": (self.version == 0, first),
            "no parent": (self.parent is None, first),
            "no node": (self.node is None, self.type == "create"),
            "no attempt": (self.attempt is None, self.type in ("create", "fork", "confirm")),
            "fork": (self.fork is not None, self.type == "fork"),
            "join": (self.join is not None, self.type == "join"),
            "supersedes": (self.supersedes is not None, self.type == "edit"),
            "restores": (self.restores is not None, self.type == "rollback"),
            "write_id": (self.write_id is not None, self.type == "confirm"),
        }
        for what, (has, should) in alone.items():
            if has != should:
                raise Malformed(f"{what} does not fit a {self.type}")
        if self.fork is not None:
            self.fork.check(self.thread)
        if self.join is not None:
            self.join.check(self.thread)
        if self.attempt == 0:
            raise Malformed("attempts count from 1")
        if self.type == "reaffirm" and self.before != self.after:
            raise Malformed("a reaffirmation cannot change the root")


def statement(said: Json) -> Statement:
    """Reads a statement as it was sent, or raises `Refused`."""
    return exactly(Statement, said, "statement")
