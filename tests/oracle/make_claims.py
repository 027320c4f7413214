"""Makes the vectors of claims: what each kind of token must say, and one claim altered at a time."""

from __future__ import annotations

from collections.abc import Iterator

from make_tokens import APPROVED, JTI, ROOT, answer, approval, denial, entry, episode, receipt
from make_tokens import verification
from fixtures import Object, fixed_jti
from signed import ANSWER, DENIAL, ENTRY, EPISODE, RECEIPT, VERIFICATION
from strict_json import Json

WHOLE: dict[str, Object] = {
    ENTRY: entry(gate=APPROVED, owes=True),
    RECEIPT: receipt(),
    DENIAL: denial(),
    VERIFICATION: verification(),
    ANSWER: answer(),
    EPISODE: episode(),
}
CAPITALS, BARE = "sha256:" + ROOT[7:].upper(), ROOT[7:]
# An identifier of 128 bits has 22 characters, the last with four spare bits.
LONG, BITS = fixed_jti("x") + "A", JTI[:-1] + chr(ord(JTI[-1]) + 1)
TIMES: list[Json] = ["2026-02-30T09:04:00.000Z", "2026-11-02T09:04:00Z", "2026-11-02T09:04:00.000+00:00", 1793610240]
VOTES: list[Json] = [
    [], [{}], [approval("ada", -1, 4)], [approval("ada", 0, 4, note="x")],
    [approval("ada", 0, 4, reviewer=0)], [approval("ada", 2**32, 4)],
    [approval("ada", 0, 4, at="2026-02-30T09:04:00.000Z")], [approval("ada", 0, 4, at="2026-11-02T09:04:00Z")],
]  # fmt: skip
APPROVALS: list[Json] = [
    [], [approval("ada", 0, 4)], [approval("ada", -1, 4, method="password")],
    [approval("ada", 0, 4, method="password", note="x")], [approval("ada", 0, 4, method=None)],
    [approval("ada", 2**32, 4, method="password")],
    [approval("ada", 0, 4, method="password", at="2026-02-30T09:04:00.000Z")],
]  # fmt: skip
GATES: list[Json] = [
    {}, "auto", {"kind": "denied"}, {"kind": "auto", "receipt": JTI}, {"kind": "observed", "review": "r"},
    {"kind": "approved", "review": "r"}, {"kind": "approved", "receipt": JTI}, {"kind": "written"},
    {"kind": "approved", "review": "r", "receipt": None}, {"kind": "approved", "review": 1, "receipt": JTI}, {"kind": "written", "write_id": 1},
    {"kind": "written", "write_id": "w-1", "receipt": BITS},
    {"kind": "written", "write_id": "w-1", "review": "r"},
]  # fmt: skip
DIGESTS: list[Json] = [CAPITALS, BARE, 7]
COUNTS: list[Json] = [-1, 1.5, "1", True]
NAMES: list[Json] = ["", "two words", "-first", "Auftrag/ö", "n" * 129, "line\n", 7]
WRONG: dict[str, list[Json]] = {
    "iss": ["", 7], "jti": [LONG, BITS, 7], "policy": DIGESTS, "transition": DIGESTS, "to": DIGESTS,
    "parent": DIGESTS, "version": COUNTS, "iat": COUNTS, "nbf": COUNTS, "exp": COUNTS,
    "fence": COUNTS, "manifest": DIGESTS, "committed_at": TIMES, "gate": GATES, "owes": [0, "true", None],
    "enforced": [1, None], "approvals": APPROVALS, "reviewers": VOTES, "outcome": ["approved", None],
    "receipt": [LONG, BITS, 7], "asserted": DIGESTS, "decision": ["denied", "committed", None],
    "approved": [False, 1, None], "refusals": [[{}], [approval("ada", 0, 4)]],
    **{name: list(NAMES) for name in ("thread", "sub", "flow", "review", "write_id", "episode")},
}  # fmt: skip


def claims() -> Object:
    whole: Json = {typ: dict(members) for typ, members in WHOLE.items()}
    return {"whole": whole, "refused": list(_refused())}


def _refused() -> Iterator[Json]:
    for typ, members in WHOLE.items():
        yield {"typ": typ, "with": {"note": None}}
        for name in members:
            yield {"typ": typ, "without": name}
            if name != "receipt":
                yield {"typ": typ, "with": {name: {"a": 1}}}
            for value in WRONG.get(name, []):
                yield {"typ": typ, "with": {name: value}}
    for typ in (RECEIPT, DENIAL):
        yield {"typ": typ, "with": {"parent": None}}
    for typ in (RECEIPT, VERIFICATION, ANSWER):
        yield {"typ": typ, "with": {"exp": 0}}
    yield {"typ": RECEIPT, "with": {"version": 0}}
    yield {"typ": VERIFICATION, "with": {"fence": 0}}
    yield {"typ": ENTRY, "with": {"parent": None}}
    yield {"typ": ENTRY, "with": {"version": 0}}
    yield {"typ": ENTRY, "with": {"version": 0, "parent": None}}
    yield {"typ": RECEIPT, "with": {"approvals": [approval("ada", 0, 4, method="word of mouth")]}}
    for none in NAMES:
        yield {"typ": RECEIPT, "with": {"aud": [none]}}
        yield {"typ": VERIFICATION, "with": {"aud": none}}
        yield {"typ": ANSWER, "with": {"aud": none}}
    yield {"typ": RECEIPT, "with": {"aud": "database_writer"}}
    yield {"typ": VERIFICATION, "with": {"aud": ["database_writer"]}}
