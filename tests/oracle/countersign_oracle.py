"""An auditor's view of Countersign, written from docs/specs/protocol.md alone and sharing no code with
the gateway: statements and their digests, the policy digest, a proposal's identity, the chain
with its entries, a receipt in its chain, and what each transition changed.

Canonical JSON is in strict_json, patches and diffs in effect, trees and openings in commitment,
tokens in signed; this file puts them together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from commitment import PATCH, POLICY, PROPOSAL, STEP, TRANSITION
from commitment import Completeness, H, check_opening, is_digest, keyed
from joining import is_fork, is_join
from signed import ENTRY, RECEIPT, Jwks, check_token, is_name, is_ordinal, is_time
from strict_json import Json, Refused, canonical, same

TYPES = ("create", "fork", "propose", "edit", "reaffirm", "rollback", "join", "confirm")
STATEMENT_KEYS = {
    "type", "flow", "policy", "thread", "version", "parent", "node", "principal", "proposal",
    "attempt", "from", "to", "tool", "usage", "rationale", "supersedes", "restores", "write_id",
    "proposed_at",
}  # fmt: skip
Object = dict[str, Json]


def policy_digest(policy: str, schemas: dict[str, str]) -> str:
    return H(POLICY, canonical({"policy": policy, "schemas": dict(schemas)}))


def patch_hash(secret: bytes, patch: Json) -> str:
    return keyed(secret, PATCH, canonical(patch))


def proposal_identity(secret: bytes, proposal: Object, patch: Json) -> str:
    """What asking twice is recognised by."""
    named = [proposal[key] for key in ("thread", "parent", "node", "principal", "type", "format")]
    step = [proposal["step"]] if "step" in proposal else []
    asked = [patch_hash(secret, patch), proposal["attempt"], *_tool(proposal), *step]
    return keyed(secret, PROPOSAL, canonical([*named, *asked]))


def step_content(secret: bytes, proposal: Object, patch: Json) -> str:
    """What a step asks for, on whatever head and whoever asks."""
    asked = [proposal["type"], proposal["format"], patch_hash(secret, patch), proposal["attempt"]]
    return keyed(secret, STEP, canonical([*asked, *_tool(proposal)]))


def _tool(proposal: Object) -> list[Json]:
    return [proposal["tool"]] if "tool" in proposal else []


def transition_digest(statement: Json) -> str:
    return H(TRANSITION, canonical(check_statement(statement)))


def check_statement(statement: Json) -> Object:
    """A statement's form: all keys, always; null where something does not apply."""
    kind = statement.get("type") if isinstance(statement, dict) else None
    own = {kind} if kind in ("fork", "join") else set()
    if not isinstance(statement, dict) or set(statement) != STATEMENT_KEYS | own:
        raise Refused("statement", "not exactly the keys of a statement")
    created = kind in ("create", "fork")
    wanted: dict[str, Callable[[Json], bool]] = {
        "type": lambda value: value in TYPES,
        "version": lambda value: type(value) is int and (value == 0 if created else value > 0),
        "attempt": is_null if kind in ("create", "fork", "confirm") else is_try,
        "proposed_at": is_time,
        "rationale": lambda value: value is None or is_digest(value),
        "parent": is_null if created else is_digest,
        "node": is_null if kind == "create" else is_name,
        "supersedes": is_digest if kind == "edit" else is_null,
        "restores": is_digest if kind == "rollback" else is_null,
        "write_id": is_name if kind == "confirm" else is_null,
        **dict.fromkeys(("policy", "from", "to"), is_digest),
        **dict.fromkeys(("flow", "thread", "principal", "proposal"), is_name),
    }
    for key, check in wanted.items():
        _say(check(statement[key]), "statement", f"{key} is not what it should be in a {kind}")
    if kind == "fork":
        said = is_fork(statement["fork"], statement["thread"], is_name)
        _say(said, "statement", "a fork does not say which head it is of")
    if kind == "join":
        said = is_join(statement["join"], statement["thread"], is_name)
        _say(said, "statement", "a join does not say what it joins")
    if kind == "reaffirm":
        _say(statement["from"] == statement["to"], "statement", "a reaffirmation changes nothing")
    return statement


def is_try(value: Json) -> bool:
    return is_ordinal(value) and value != 0


def is_null(value: Json) -> bool:
    return value is None


def _say(holds: bool, code: str, detail: str) -> None:
    if not holds:
        raise Refused(code, detail)


@dataclass
class Audit:
    """What a chain was found to say."""

    thread: str = ""
    iss: str = ""
    transitions: list[tuple[Object, Object]] = field(default_factory=list)
    diffs: dict[int, Completeness] = field(default_factory=dict)
    first: int = 0

    def by_digest(self, digest: Json) -> tuple[Object, Object]:
        for statement, entry in self.transitions:
            if entry["transition"] == digest:
                return statement, entry
        raise Refused("unknown_transition", "not a transition of this chain")


def check_chain(entries: Json, jwks: Jwks, first: int = 0) -> Audit:
    """Every link of a chain from version 0 on (of an archive, from its first): numbers, digests,
    parents, roots, signatures, gates, and (where an opening is given) that both roots follow."""
    audit = Audit(first=first)
    if not isinstance(entries, list) or not entries:
        raise Refused("chain", "no entries")
    for version, item in enumerate(entries, first):
        _say(isinstance(item, dict), "chain", "an entry is an object")
        assert isinstance(item, dict)
        missing = {"version", "transition", "statement", "entry"} - set(item)
        _say(not missing, "chain", f"version {version} lacks {missing}")
        _say(same(item["version"], version), "chain", f"version {version} is missing or moved")
        try:
            _check_link(item, audit, jwks)
        except Refused as why:
            raise Refused(why.code, f"version {version}: {why}") from why
    return audit


def _check_link(item: Object, audit: Audit, jwks: Jwks) -> None:
    typed = is_digest(item["transition"]) and isinstance(item["entry"], str)
    _say(typed and item["statement"] is not None, "chain", "a member of another type")
    statement = check_statement(item["statement"])
    _say(
        transition_digest(statement) == item["transition"],
        "digest_mismatch",
        "the statement has another digest",
    )
    entry = check_token(item["entry"], ENTRY, jwks)
    _say(
        entry["transition"] == item["transition"],
        "digest_mismatch",
        "the entry signs another transition",
    )
    _say(
        statement["version"] == item["version"],
        "version_mismatch",
        "the statement is of another version",
    )
    for key in ("version", "thread", "parent", "policy"):
        _say(
            entry[key] == statement[key], f"{key}_mismatch", f"entry and statement differ in {key}"
        )
    _check_gate(statement, entry)
    if audit.transitions:
        _check_follows(statement, entry, audit)
    else:
        audit.thread, audit.iss = str(statement["thread"]), str(entry["iss"])
    if item.get("opening") is not None:
        version = audit.first + len(audit.transitions)
        found = check_opening(item["opening"], statement["from"], statement["to"])
        audit.diffs[version] = found
    audit.transitions.append((statement, entry))


def _check_follows(statement: Object, entry: Object, audit: Audit) -> None:
    before, last = audit.transitions[-1]
    _say(statement["parent"] == last["transition"], "parent_mismatch", "not made on the one before")
    _say(statement["from"] == before["to"], "root_mismatch", "does not start from the state before")
    _say(statement["thread"] == before["thread"], "thread_mismatch", "another thread")
    _say(statement["flow"] == before["flow"], "flow_mismatch", "another flow")
    _say(entry["iss"] == audit.iss, "issuer_mismatch", "another issuer")
    gate = entry["gate"]
    assert isinstance(gate, dict)
    # Under a policy that covers commits an approval settles what was owed; nothing else does.
    settled = not last["owes"] or gate["kind"] == "approved"
    _say(entry["owes"] is True or settled, "owes", "forgot what it owed")
    if statement["type"] == "rollback" and audit.first == 0:
        audit.by_digest(statement["restores"])
    if gate["kind"] == "written":
        approved = last["gate"]
        assert isinstance(approved, dict)
        _say(approved.get("receipt") == gate.get("receipt"), "gate", "written under another receipt")


def _check_gate(statement: Object, entry: Object) -> None:
    gate, kind = entry["gate"], statement["type"]
    assert isinstance(gate, dict)
    _say(
        (gate["kind"] == "written") == (kind == "confirm"),
        "gate",
        "written is the gate of a confirm",
    )
    if kind == "create":
        _say(gate["kind"] != "approved", "gate", "nobody approves a creation")
    if kind == "fork":
        _say(gate["kind"] == "auto", "gate", "nobody is asked about a fork")
    if kind in ("edit", "reaffirm", "rollback"):
        _say(gate["kind"] != "auto", "gate", f"{kind} is always held")
    if gate["kind"] == "written":
        _say(gate["write_id"] == statement["write_id"], "gate", "another write")
    _say(gate["kind"] != "observed" or entry["owes"] is True, "owes", "observed, and owes nothing")


def check_branch(branch: Audit, parent: Audit) -> None:
    """That a chain is that of a branch, made of a head of the other one."""
    statement, _ = branch.transitions[0]
    fork = statement.get("fork")
    if not isinstance(fork, dict):
        raise Refused("branch", "not a branch")
    of, _ = parent.by_digest(fork["transition"])
    same_head = of["version"] == fork["version"] and parent.thread == fork["thread"]
    _say(same_head and branch.iss == parent.iss, "branch", "of another head than it names")
    _say(of["flow"] == statement["flow"], "flow_mismatch", "a branch in another flow")


def check_join(statement: Object, branches: dict[str, Audit]) -> None:
    """That what a join names are heads of branches of the very head that it is made on."""
    join = statement["join"]
    assert isinstance(join, dict) and isinstance(join["branches"], list)
    for named in join["branches"]:
        assert isinstance(named, dict)
        branch = branches.get(str(named["name"]))
        if branch is None:
            raise Refused("join", "a branch whose chain is not here")
        fork = branch.transitions[0][0]["fork"]
        assert isinstance(fork, dict)
        of_head = fork["transition"] == statement["parent"] and fork["name"] == named["name"]
        _say(of_head and branch.thread == named["thread"], "join", "a branch of another head")
        branch.by_digest(named["transition"])


def check_receipt(token: Json, audit: Audit, jwks: Jwks) -> Object:
    """That a receipt is genuine and is the one that a transition of this chain was approved by."""
    receipt = check_token(token, RECEIPT, jwks)
    _say(receipt["iss"] == audit.iss, "issuer_mismatch", "another issuer")
    _say(receipt["sub"] == audit.thread, "thread_mismatch", "another thread")
    statement, entry = audit.by_digest(receipt["transition"])
    for key in ("flow", "policy", "version", "parent", "to"):
        _say(
            receipt[key] == statement[key],
            f"{key}_mismatch",
            f"receipt and statement differ in {key}",
        )
    gate = entry["gate"]
    assert isinstance(gate, dict)
    approved = gate["kind"] == "approved" and gate["receipt"] == receipt["jti"]
    _say(approved, "receipt_mismatch", "the entry was not approved by this receipt")
    return receipt
