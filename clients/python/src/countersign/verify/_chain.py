"""Checks a thread's chain from version 0: every link, signature and gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from countersign._protocol._claims import ApprovedGate, Entry, Receipt, WrittenGate
from countersign._protocol._forms import is_digest, members_of
from countersign._protocol._json import Json
from countersign._protocol._refused import Refused, must

from ._expected import ANY, Whatever, expects
from ._hashes import transition_digest
from ._keys import Keys
from ._openings import Difference, check_opening
from ._statement import Statement, statement
from ._tokens import check_entry, check_receipt

ALWAYS_HELD = ("edit", "reaffirm", "rollback")


@dataclass(frozen=True)
class Link:
    """One version: its statement, its signed entry, and, with an opening, its changes."""

    transition: str
    statement: Statement
    entry: Entry
    difference: Difference | None


@dataclass(frozen=True)
class Chain:
    """A valid chain. It cannot show whether later versions were withheld."""

    issuer: str
    thread: str
    links: tuple[Link, ...]

    def link(self, transition: str) -> Link:
        """Returns the version of a transition."""
        found = next((it for it in self.links if it.transition == transition), None)
        if found is None:
            raise Refused("unknown_transition", "not a transition of this chain")
        return found

    def receipt(self, token: object, keys: Keys) -> Receipt:
        """Checks that a receipt approved a transition of this chain."""
        found = check_receipt(token, keys, issuer=self.issuer, thread=self.thread, transition=ANY, audience=ANY, at=ANY)
        link = self.link(found.transition)
        said = link.statement
        for name, of_receipt, stated in (
            ("flow", found.flow, said.flow),
            ("policy", found.policy, said.policy),
            ("version", found.version, said.version),
            ("parent", found.parent, said.parent),
            ("to", found.to, said.after),
        ):
            must(of_receipt == stated, f"{name}_mismatch", f"receipt and statement differ in {name}")
        gate = link.entry.gate
        approved = isinstance(gate, ApprovedGate) and gate.receipt == found.jti
        must(approved, "receipt_mismatch", "the entry was not approved by this receipt")
        return found


def check_chain(entries: Sequence[Json], keys: Keys, *, issuer: str | Whatever, thread: str | Whatever) -> Chain:
    """Checks a whole chain, as `Client.chain` returns it or as stored JSON: `{version, transition, statement,
    entry}` of each version, with `opening` if the reader may see it. State gateway and thread, because another one's
    chain is valid too."""
    must(isinstance(entries, list | tuple) and len(entries) > 0, "chain", "no entries")
    links: list[Link] = []
    for version, item in enumerate(entries):
        members = members_of(item)
        link = _link(members, version, keys)
        _follows(link, links)
        links.append(replace(link, difference=_difference(members.get("opening"), link.statement)))
    chain = Chain(links[0].entry.iss, links[0].statement.thread, tuple(links))
    expects("issuer", issuer, chain.issuer, "issuer_mismatch")
    expects("thread", thread, chain.thread, "thread_mismatch")
    return chain


def _link(item: Json, version: int, keys: Keys) -> Link:
    """Checks a version by itself: its statement is whole, and its entry is signed over that statement."""
    whole = isinstance(item, dict) and {"version", "transition", "statement", "entry"} <= set(item)
    must(whole, "chain", f"version {version} lacks something")
    number = item["version"]
    must(type(number) is int and number == version, "chain", f"version {version} is missing or moved")
    typed = is_digest(item["transition"]) and isinstance(item["entry"], str) and item["statement"] is not None
    must(typed, "chain", f"version {version} has a member of another type")
    said = statement(item["statement"])
    must(transition_digest(item["statement"]) == item["transition"], "digest_mismatch", "another digest")
    entry = check_entry(item["entry"], keys, issuer=ANY, transition=item["transition"])
    must(said.version == version, "version_mismatch", "the statement is of another version")
    for name in ("version", "thread", "parent", "policy"):
        must(getattr(entry, name) == getattr(said, name), f"{name}_mismatch", f"entry and statement differ in {name}")
    link = Link(item["transition"], said, entry, None)
    _gate_fits(link)
    return link


def _difference(opening: Json, said: Statement) -> Difference | None:
    if opening is None:
        return None
    return check_opening(opening, said.before, said.after)


def _gate_fits(link: Link) -> None:
    """Checks the gate of an entry against its statement."""
    said, gate = link.statement, link.entry.gate
    must((gate.kind == "written") == (said.type == "confirm"), "gate", "exactly a confirm is written")
    must(said.type != "fork" or gate.kind == "auto", "gate", "a fork cannot be held")
    must(said.type not in ALWAYS_HELD or gate.kind != "auto", "gate", f"a {said.type} is always held")
    must(not isinstance(gate, WrittenGate) or gate.write_id == said.write_id, "gate", "another write")
    must(gate.kind != "observed" or link.entry.owes, "owes", "an observed entry requires its own approval")


def _follows(link: Link, links: list[Link]) -> None:
    """Checks a link against those before it."""
    before = links[-1] if links else None
    said, gate = link.statement, link.entry.gate
    if before is not None:
        last = before.statement
        must(said.parent == before.transition, "parent_mismatch", "not made on the version before")
        must(said.before == last.after, "root_mismatch", "does not begin with the state before")
        must(said.thread == last.thread, "thread_mismatch", "another thread")
        must(said.flow == last.flow, "flow_mismatch", "another flow")
        must(link.entry.iss == before.entry.iss, "issuer_mismatch", "another issuer")
        settled = not before.entry.owes or gate.kind == "approved"
        must(link.entry.owes or settled, "owes", "the entry does not require the approval that it needs")
    if said.type == "rollback":
        restored = any(it.transition == said.restores for it in links)
        must(restored, "unknown_transition", "restores what was never there")
    if isinstance(gate, WrittenGate):
        approved = before.entry.gate if before else None
        needed = approved.receipt if isinstance(approved, ApprovedGate) else None
        must(gate.receipt == needed, "gate", "written under another receipt, or without the one it needs")
