"""Branches: what a fork and a join say, and what several branches made of one state, as one.
Written from docs/specs/protocol.md (Branches, Joins) and sharing no code with the gateway.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from commitment import BRANCH, H, is_digest
from effect import ABSENT, Absent, escape
from strict_json import Json, canonical, same

STRATEGIES = ("union", "last_write", "vote", "confidence", "explicit")
BRANCHES_MAX = 32
Maybe = Json | Absent


def branch_thread(thread: Json, transition: Json, name: Json) -> str:
    """The thread that a branch has."""
    return "branch-" + H(BRANCH, canonical([thread, transition, name])).removeprefix("sha256:")[:32]


def is_fork(value: Json, thread: Json, is_name: object) -> bool:
    """What the statement of a branch's version 0 says of the head that it begins with."""
    if not isinstance(value, dict) or set(value) != {"name", "thread", "transition", "version"}:
        return False
    version = value["version"]
    return (
        _is_branch(value, is_name)
        and type(version) is int
        and version >= 0
        and value["thread"] != thread
        and branch_thread(value["thread"], value["transition"], value["name"]) == thread
    )


def is_join(value: Json, thread: Json, is_name: object) -> bool:
    """What the statement of a join says of its branches."""
    if not isinstance(value, dict) or set(value) != {"branches", "strategy"}:
        return False
    branches = value["branches"]
    if value["strategy"] not in STRATEGIES or not isinstance(branches, list):
        return False
    if not 1 <= len(branches) <= BRANCHES_MAX:
        return False
    whole = all(
        isinstance(it, dict) and set(it) == {"name", "thread", "transition"} and _is_branch(it, is_name)
        for it in branches
    )
    if not whole:
        return False
    names = [str(cast("dict[str, Json]", it)["name"]).encode() for it in branches]
    own = any(cast("dict[str, Json]", it)["thread"] == thread for it in branches)
    return not own and all(a < b for a, b in zip(names, names[1:], strict=False))


def _is_branch(value: dict[str, Json], is_name: object) -> bool:
    assert callable(is_name)
    name = value["name"]
    named = is_name(name) and isinstance(name, str) and len(name) <= 64
    return bool(named and is_name(value["thread"]) and is_digest(value["transition"]))


@dataclass(frozen=True)
class Branch:
    """One branch's state, and how sure it is, in millionths."""

    name: str
    state: Json
    confidence: int = 0


@dataclass
class Joined:
    """What came of a join: a state, or why there is none."""

    state: Json = None
    conflicts: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)


def join(
    base: Json, branches: Sequence[Branch], keyed: dict[str, str], strategy: str, resolve: Json = None
) -> Joined:
    """The branches are given in the order in which they are named."""
    settled: dict[str, Maybe] = {}
    for item in resolve if isinstance(resolve, list) else []:
        assert isinstance(item, dict)
        settled[str(item["path"])] = item.get("value", ABSENT)
    merge = _Merge(list(branches), keyed, strategy, settled)
    state = merge.at(base, [branch.state for branch in branches], "")
    if merge.conflicts:
        return Joined(conflicts=sorted(merge.conflicts, key=lambda at: at.encode()))
    idle = sorted(set(settled) - merge.used)
    return Joined(idle=idle) if idle else Joined(state=cast("Json", state))


@dataclass
class _Merge:
    branches: list[Branch]
    keyed: dict[str, str]
    strategy: str
    settled: dict[str, Maybe]
    conflicts: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def at(self, base: Maybe, sides: list[Maybe], pointer: str) -> Maybe:
        claims: list[tuple[Maybe, list[int]]] = []
        for index, side in enumerate(sides):
            if _equal(side, base):
                continue
            for value, who in claims:
                if _equal(value, side):
                    who.append(index)
                    break
            else:
                claims.append((side, [index]))
        if not claims:
            return base
        if len(claims) == 1:
            return claims[0][0]
        changed = [value for value, _ in claims]
        if all(isinstance(it, dict) for it in changed) and isinstance(base, dict | Absent):
            return self._members(base, sides, pointer)
        if all(isinstance(it, list) for it in changed) and isinstance(base, list | Absent):
            merged = self._list(base, sides, pointer)
            if merged is not None:
                return merged
        return self._settle(base, claims, pointer)

    def _members(self, base: Maybe, sides: list[Maybe], pointer: str) -> Json:
        found: dict[str, Json] = {}
        all_of_them = [it for it in [base, *sides] if isinstance(it, dict)]
        for key in sorted({key for it in all_of_them for key in it}):
            value = self.at(_get(base, key), [_get(it, key) for it in sides], f"{pointer}/{escape(key)}")
            if not isinstance(value, Absent):
                found[key] = value
        return found

    def _list(self, base: Maybe, sides: list[Maybe], pointer: str) -> Json | None:
        if pointer in self.keyed:
            order = self._keys(base, sides, self.keyed[pointer])
            if order is not None:
                return self._items(base, sides, order, pointer)
        lengths = {len(it) for it in sides if isinstance(it, list)}
        if not isinstance(base, list) or lengths | {len(base)} != {len(base)}:
            return None
        places = [[index] * (len(sides) + 1) for index in range(len(base))]
        return self._items(base, sides, cast("list[list[int | None]]", places), pointer)

    def _keys(self, base: Maybe, sides: list[Maybe], key: str) -> list[list[int | None]] | None:
        """Where each item is in the list before and in each branch's; None if that cannot be told."""
        lists = [_places(it, key) for it in [base, *sides]]
        if any(it is None for it in lists):
            return None
        before, *others = cast("list[dict[str, int]]", lists)
        for of_side in others:
            kept = [before[it] for it in of_side if it in before]
            if kept != sorted(kept):
                return None
        order = list(before)
        for index in sorted(range(len(sides)), key=lambda it: self.branches[it].name.encode()):
            order += [it for it in others[index] if it not in order]
        return [[it.get(name) for it in [before, *others]] for name in order]

    def _items(
        self, base: Maybe, sides: list[Maybe], order: list[list[int | None]], pointer: str
    ) -> Json:
        items: list[Json] = []
        for index, (was, *now) in enumerate(order):
            of_sides = [_item(side, place) for side, place in zip(sides, now, strict=True)]
            value = self.at(_item(base, was), of_sides, f"{pointer}/{index}")
            if not isinstance(value, Absent):
                items.append(value)
        return items

    def _settle(self, base: Maybe, claims: list[tuple[Maybe, list[int]]], pointer: str) -> Maybe:
        if self.strategy == "explicit" and pointer in self.settled:
            self.used.add(pointer)
            return self.settled[pointer]
        if self.strategy in ("union", "explicit"):
            self.conflicts.append(pointer)
            return base
        if self.strategy == "last_write":
            return max(claims, key=lambda it: it[1][-1])[0]
        weigh = (lambda it: 1) if self.strategy == "vote" else (lambda it: self.branches[it].confidence)
        # The claims stand by who has them first, and of equals `max` takes the first.
        return max(claims, key=lambda it: sum(map(weigh, it[1])))[0]


def _places(items: Maybe, key: str) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for index, item in enumerate(items if isinstance(items, list) else []):
        value = item.get(key) if isinstance(item, dict) else None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        name = unicodedata.normalize("NFC", canonical(value).decode())
        if name in found:
            return None
        found[name] = index
    return found


def _get(value: Maybe, key: str) -> Maybe:
    return value.get(key, ABSENT) if isinstance(value, dict) else ABSENT


def _item(value: Maybe, place: int | None) -> Maybe:
    return value[place] if isinstance(value, list) and place is not None else ABSENT


def _equal(one: Maybe, other: Maybe) -> bool:
    if isinstance(one, Absent) or isinstance(other, Absent):
        return isinstance(one, Absent) and isinstance(other, Absent)
    return same(one, other)
