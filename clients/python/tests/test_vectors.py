"""The protocol's vectors, by this package's own reading of it."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import pytest

from conftest import REPOSITORY
from countersign import Envelope, HeldSecrets, Invalid, NodeSecrets, verify
from countersign._protocol._claims import Answer, Denial, Entry, Episode, Receipt, Verification
from countersign._protocol._forms import exactly
from countersign._protocol._parts import TYPES
from countersign._reading import moment, read
from countersign.verify import ANY, CouldNotTell, Keys, Refused
from countersign.verify._branches import branch_thread
from countersign.verify._keys import thumbprint
from countersign.verify._openings import ABSENT
from countersign.verify._tagged import tagged

VECTORS = REPOSITORY / "tests" / "vectors"
KINDS: dict[str, Any] = {typ: kind for kind, typ in TYPES.items()}


def as_it_is(check: Callable[..., Any]) -> Callable[..., Any]:
    """A check of the token itself, that expects nothing of what it says."""
    return partial(
        check, **{name: ANY for name, it in signature(check).parameters.items() if it.kind is it.KEYWORD_ONLY}
    )


CHECKS: dict[str, Callable[..., Any]] = {
    TYPES[Entry]: as_it_is(verify.check_entry),
    TYPES[Receipt]: as_it_is(verify.check_receipt),
    TYPES[Denial]: as_it_is(verify.check_denial),
    TYPES[Verification]: as_it_is(verify.check_verification),
    TYPES[Answer]: as_it_is(verify.check_answer),
    TYPES[Episode]: as_it_is(verify.check_episode),
}


def load(name: str) -> Any:
    """Reads a file of vectors with the reader under test, with higher limits of depth and length."""
    return verify.read_json((VECTORS / name).read_bytes(), bytes_max=1 << 24, depth_max=256)


@pytest.mark.parametrize("case", load("json.json")["cases"], ids=lambda it: it["name"])
def test_json(case: Any) -> None:
    raw = base64.b64decode(case["base64"]) if "base64" in case else case["text"].encode()
    if "code" not in case:
        assert verify.canonical(verify.read_json(raw, **case.get("limits", {}))).decode() == case["canonical"]
        # Python's own reader, which accepts long integers, reads the same value.
        assert verify.canonical(json.loads(case["canonical"])).decode() == case["canonical"]
        return
    with pytest.raises(Refused) as refused:
        verify.read_json(raw, **case.get("limits", {}))
    assert refused.value.code == case["code"]


@pytest.mark.parametrize(
    ("number", "form"),
    [
        (2**53, "9007199254740992"),
        (-(10**18), "-1000000000000000000"),
        (10**21, "1e+21"),
        # This number is the shortest decimal of a double, and is read as that double.
        (10**23, "1e+23"),
        (10**308, "1e+308"),
    ],
)
def test_an_integer_beyond_those_of_json_is_the_double_that_is_read_of_it(number: int, form: str) -> None:
    assert verify.canonical(number).decode() == form
    assert verify.canonical(verify.read_json(str(number).encode())).decode() == form


@pytest.mark.parametrize(
    "number",
    [2**53 + 1, -(2**53) - 1, 2**60, 10**18 + 1, 10**309, -(2**1024), 10**5000],
    ids=["2^53+1", "-(2^53+1)", "2^60", "10^18+1", "10^309", "-(2^1024)", "10^5000"],
)
def test_an_integer_that_is_no_doubles_shortest_decimal_has_no_form(number: int) -> None:
    with pytest.raises(Refused, match="number_not_exact"):
        verify.canonical(number)


@pytest.mark.parametrize("case", load("statements.json")["cases"], ids=lambda it: it["name"])
def test_a_statement_has_its_digest(case: Any) -> None:
    assert verify.canonical(case["statement"]).decode() == case["jcs"]
    assert verify.transition_digest(case["statement"]) == case["digest"]


@pytest.mark.parametrize("case", load("branches.json")["statements"], ids=lambda it: it["name"])
def test_a_fork_or_a_join_has_its_digest(case: Any) -> None:
    test_a_statement_has_its_digest(case)


@pytest.mark.parametrize("case", load("branches.json")["refused"], ids=lambda it: it["name"])
def test_a_fork_or_a_join_that_is_not_whole_has_none(case: Any) -> None:
    test_a_statement_that_is_not_whole_has_none(case)


@pytest.mark.parametrize("case", load("branches.json")["names"], ids=lambda it: it["branch"])
def test_a_branch_has_its_thread(case: Any) -> None:
    assert branch_thread(case["thread"], case["transition"], case["name"]) == case["branch"]


ENVELOPES = load("envelopes.json")


def check_envelope(envelope: Any, **other: Any) -> Any:
    expected: dict[str, Any] = {
        "issuer": "https://countersign.example", "thread": ENVELOPES["thread"], "node": ENVELOPES["node"],
        "version": ENVELOPES["version"], "count": lambda text, encoding: ENVELOPES["genuine"][0]["envelope"]["tokens"],
        "fits": lambda payload: payload == ENVELOPES["genuine"][0]["envelope"]["payload"],
    }  # fmt: skip
    return verify.check_envelope(envelope, Keys.read(ENVELOPES["jwks"]), **{**expected, **other})


@pytest.mark.parametrize("case", ENVELOPES["genuine"], ids=lambda it: it["name"])
def test_an_envelope_is_believed(case: Any) -> None:
    assert check_envelope(case["envelope"]).node == ENVELOPES["node"]
    for argument in ("issuer", "thread", "node", "version", "fits", "count"):
        with pytest.raises(Invalid):
            check_envelope(case["envelope"], **{argument: None})


def test_what_its_node_may_not_receive_is_refused() -> None:
    envelope = ENVELOPES["genuine"][0]["envelope"]
    for fits in (lambda payload: False, lambda payload: None, lambda payload: "it does"):
        with pytest.raises(Refused) as refused:
            check_envelope(envelope, fits=fits)
        assert refused.value.code == "schema_mismatch"


@pytest.mark.parametrize("case", ENVELOPES["spoiled"], ids=lambda it: it["name"])
def test_an_envelope_that_is_not_what_it_says_is_refused(case: Any) -> None:
    with pytest.raises(Refused) as refused:
        check_envelope(case["envelope"])
    assert refused.value.code == case["code"]


MACS = ENVELOPES["hmac"]
GIVEN = read(NodeSecrets, MACS["secrets"])


@pytest.mark.parametrize("case", MACS["genuine"], ids=lambda it: it["name"])
def test_an_hmac_is_believed_while_its_secret_is_good(case: Any) -> None:
    now, later = moment(MACS["now"]), moment(MACS["later"])
    assert check_envelope(case["envelope"], secrets=GIVEN, at=now).node == ENVELOPES["node"]
    assert check_envelope(read(Envelope, case["envelope"]), secrets=GIVEN, at=now).node == ENVELOPES["node"]
    assert check_envelope(case["envelope"]).node == ENVELOPES["node"]
    with pytest.raises(Invalid):
        check_envelope(case["envelope"], secrets=None)
    if case is MACS["genuine"][0]:
        with pytest.raises(Refused) as refused:
            check_envelope(case["envelope"], secrets=GIVEN, at=later)
        assert refused.value.code == "hmac_expired"


@pytest.mark.parametrize("case", MACS["spoiled"], ids=lambda it: it["name"])
def test_an_hmac_that_is_not_this_envelopes_is_refused(case: Any) -> None:
    with pytest.raises(Refused) as refused:
        check_envelope(case["envelope"], secrets=GIVEN, at=moment(MACS["now"]))
    assert refused.value.code == case["code"]


def test_a_secret_does_not_print() -> None:
    held = HeldSecrets()
    held.keep(GIVEN)
    for printed in (repr(GIVEN), str(GIVEN), repr(held), str(vars(GIVEN.secrets[0]).keys())):
        assert GIVEN.secrets[0].secret not in printed


def test_the_chains_of_a_thread_and_its_branches_hold() -> None:
    """And of what is spoiled, what a chain shows by itself is refused."""
    document = load("branches.json")
    keys = Keys.read(document["jwks"])
    chains = document["chains"]
    for entries in (chains["parent"], *chains["branches"].values()):
        verify.check_chain(entries, keys, issuer=ANY, thread=ANY)
    for case in document["spoiled"]:
        if case["code"] == "gate":
            (step,) = case["patch"]
            *above, number, _ = step["path"].split("/")[1:]
            entries = copy.deepcopy(chains["parent"] if above == ["parent"] else chains["branches"][above[1]])
            entries[int(number)]["entry"] = step["value"]
            with pytest.raises(Refused) as refused:
                verify.check_chain(entries, keys, issuer=ANY, thread=ANY)
            assert refused.value.code == "gate"


@pytest.mark.parametrize("case", load("statements.json")["refused"], ids=lambda it: it["name"])
def test_a_statement_that_is_not_whole_has_none(case: Any) -> None:
    with pytest.raises(Refused):
        verify.transition_digest(case["statement"])


@pytest.mark.parametrize("case", load("policies.json")["cases"], ids=lambda it: it["name"])
def test_a_policy_has_its_digest(case: Any) -> None:
    assert verify.policy_digest(case["policy"], case["schemas"]) == case["digest"]


def test_hashes_and_thumbprints() -> None:
    document = load("hashes.json")
    for case in document["cases"]:
        assert tagged(case["tag"], case["text"].encode()) == case["hash"]
    for case in document["thumbprints"]:
        assert thumbprint(base64.urlsafe_b64decode(case["x"] + "=")) == case["thumbprint"]


def test_a_leaf_has_its_commitment() -> None:
    for case in load("commitments.json")["cases"]:
        for leaf in case["leaves"]:
            assert verify.commitment({"value": leaf["value"], "salt": leaf["salt"]}) == leaf["commitment"]


def listed(change: verify.Change) -> dict[str, Any]:
    sides = {"before": change.before, "after": change.after}
    return {"pointer": change.pointer, **{name: side for name, side in sides.items() if side is not ABSENT}}


def in_order(found: list[Any]) -> list[Any]:
    return sorted(found, key=verify.canonical)


@pytest.mark.parametrize("case", load("openings.json")["cases"], ids=lambda it: it["name"])
def test_an_opening_shows_all_that_differs(case: Any) -> None:
    found = verify.check_opening(case["opening"], case["from_root"], case["to_root"])
    assert in_order([listed(it) for it in found.changed]) == in_order(case["changed"])
    again = [{"pointer": pointer, "value": value} for pointer, value in found.set_again]
    assert in_order(again) == in_order(case["set_again"])
    assert sorted(found.hidden) == sorted(case["hidden"])


@pytest.mark.parametrize("case", load("openings.json")["spoiled"], ids=lambda it: f"{it['of']}: {it['name']}")
def test_a_spoiled_opening_is_refused(case: Any) -> None:
    with pytest.raises(Refused):
        verify.check_opening(case["opening"], case["from_root"], case["to_root"])


@pytest.mark.parametrize("case", load("openings.json")["inconsistent"], ids=lambda it: it["name"])
def test_an_opening_with_the_right_roots_is_refused_where_a_salt_was_kept(case: Any) -> None:
    assert verify.commitment(case["opening"]["from"]) == case["from_root"]
    assert verify.commitment(case["opening"]["to"]) == case["to_root"]
    with pytest.raises(Refused, match="salt_kept"):
        verify.check_opening(case["opening"], case["from_root"], case["to_root"])


TOKENS = load("tokens.json")


@pytest.mark.parametrize("case", TOKENS["genuine"], ids=lambda it: it["name"])
def test_a_genuine_token_says_what_it_says(case: Any) -> None:
    found = CHECKS[case["typ"]](case["token"], Keys.read(TOKENS["jwks"]))
    assert found == exactly(KINDS[case["typ"]], case["claims"], "claims")


@pytest.mark.parametrize("case", TOKENS["refused"], ids=lambda it: it["name"])
def test_a_token_that_is_not_genuine_is_refused(case: Any) -> None:
    with pytest.raises(Refused) as refused:
        CHECKS[case["accept_as"]](case["token"], Keys.read(case.get("jwks", TOKENS["jwks"])))
    assert refused.value.code == case["code"]


@pytest.mark.parametrize("case", TOKENS["could_not_tell"], ids=lambda it: it["name"])
def test_a_receipt_of_a_retired_key_is_neither(case: Any) -> None:
    with pytest.raises(CouldNotTell):
        CHECKS[case["accept_as"]](case["token"], Keys.read(TOKENS["jwks"]))


CLAIMS = load("claims.json")


@pytest.mark.parametrize(("typ", "claims"), CLAIMS["whole"].items())
def test_whole_claims_are_read(typ: str, claims: Any) -> None:
    assert exactly(KINDS[typ], claims, "claims").iss == claims["iss"]


@pytest.mark.parametrize("index", range(len(CLAIMS["refused"])))
def test_claims_that_are_not_whole_are_refused(index: int) -> None:
    case = CLAIMS["refused"][index]
    claims = {**CLAIMS["whole"][case["typ"]], **case.get("with", {})}
    claims.pop(case.get("without"), None)
    with pytest.raises(Refused):
        exactly(KINDS[case["typ"]], verify.read_json(verify.canonical(claims)), "claims")


def export() -> dict[str, Any]:
    receipt = (VECTORS / "export" / "receipt.jwt").read_text().removesuffix("\n")
    return {"chain": load("export/chain.json"), "jwks": load("export/jwks.json"), "receipt": receipt}


def checked(held: Any) -> verify.Chain:
    keys = Keys.read(held["jwks"])
    chain = verify.check_chain(held["chain"]["entries"], keys, issuer=ANY, thread=ANY)
    chain.receipt(held["receipt"], keys)
    return chain


def patched(document: Any, patch: list[Any]) -> Any:
    """A JSON Patch, of the operations that the vectors use."""
    document = copy.deepcopy(document)
    for step in patch:
        value = copy.deepcopy(step.get("value"))
        if step["op"] in ("move", "copy"):
            at, last = place(document, step["from"])
            value = copy.deepcopy(at[last])
        if step["op"] in ("move", "remove"):
            at, last = place(document, step["path" if step["op"] == "remove" else "from"])
            del at[last]
        if step["op"] != "remove":
            at, last = place(document, step["path"])
            if isinstance(at, list) and step["op"] != "replace":
                at.insert(last, value)
            else:
                at[last] = value
    return document


def place(document: Any, pointer: str) -> tuple[Any, Any]:
    """Returns the parent of a pointer's last token, and that token."""
    *above, last = [it.replace("~1", "/").replace("~0", "~") for it in pointer.split("/")[1:]]
    for token in above:
        document = document[int(token)] if isinstance(document, list) else document[token]
    if isinstance(document, list):
        return document, len(document) if last == "-" else int(last)
    return document, last


def test_the_export_holds() -> None:
    chain = checked(export())
    assert len(chain.links) == len(load("export/chain.json")["entries"])
    assert all(link.difference is not None for link in chain.links)


@pytest.mark.parametrize("case", load("exports.json")["cases"], ids=lambda it: it["name"])
def test_a_spoiled_export_is_refused(case: Any) -> None:
    with pytest.raises(Refused) as refused:
        checked(patched(export(), case["patch"]))
    assert refused.value.code == case["code"]


@pytest.mark.parametrize("case", load("exports.json")["accepted"], ids=lambda it: it["name"])
def test_an_export_that_may_differ_holds(case: Any) -> None:
    checked(patched(export(), case["patch"]))


def test_what_is_signed_of_a_manifest_is_all_but_its_signature() -> None:
    bare = {"schema_version": "manifest/1.0", "episode_id": "order-7", "files": []}
    digest = verify.manifest_digest(bare)
    assert verify.manifest_digest({**bare, "signer": {"jws": "a.b.c", "kid": "k"}}) == digest
    assert verify.manifest_digest({**bare, "episode_id": "order-8"}) != digest
    case = next(it for it in TOKENS["genuine"] if it["typ"] == TYPES[Episode])
    found = verify.check_episode(
        case["token"], Keys.read(TOKENS["jwks"]), issuer=ANY, episode=case["claims"]["episode"], manifest=ANY
    )
    run = {"schema_version": "manifest/1.0", "episode_id": found.episode, "created_at": "2026-11-02T09:04:00.000Z"}
    assert found.manifest == verify.manifest_digest({**run, "files": []})
