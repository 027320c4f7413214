"""Reads every vector and checks it; exits 1 at the first that does not hold.

python tests/oracle/check_vectors.py [FOLDER]
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from check_export import check_export, read_json
from commitment import Completeness, H, check_opening, commitment, disclose, leaf_salt
from commitment import open_fully, origins_after, thread_secret
from countersign_oracle import check_branch, check_chain, check_join
from countersign_oracle import patch_hash, policy_digest, proposal_identity, step_content, transition_digest
from envelope import check_envelope, envelope_secret
from effect import Absent, Change, apply_patch, diff, leaves, tokens
from joining import Branch, branch_thread, join
from passkeys import challenge, check_vote, evidence_digest
from signed import CouldNotTell, check_claims, check_token, read_jwks, thumbprint
from strict_json import Json, Limits, Refused, base64url, canonical, parse, same, unbase64url

Case = dict[str, Any]


def expect(said: Json, found: Json) -> None:
    if not same(said, found):
        raise AssertionError(f"says {canonical(said)!r:.300}, found {canonical(found)!r:.300}")


def refuses(run: Callable[[], object], code: str | None = None) -> None:
    """That it is refused, and where a code is given, for that."""
    try:
        run()
    except Refused as why:
        if code is not None and why.code != code:
            raise AssertionError(f"refused as {why}, not as {code}") from why
        return
    raise AssertionError("was not refused")


def check_json(case: Case) -> None:
    raw = base64.b64decode(case["base64"]) if "base64" in case else case["text"].encode()
    limits = Limits(**case.get("limits", {}))
    if "code" in case:
        return refuses(lambda: parse(raw, limits), case["code"])
    value = parse(raw, limits)
    expect(case["canonical"], canonical(value).decode())
    expect(value, parse(case["canonical"].encode()))


def check_diff(case: Case) -> None:
    expect_changes(case["changes"], diff(case["before"], case["after"]))


def expect_changes(said: list[Json], found: list[Change]) -> None:
    """The same changes in whatever order."""
    listed: list[Json] = []
    for change in found:
        both: dict[str, object] = {"before": change.before, "after": change.after}
        there: Any = {name: side for name, side in both.items() if not isinstance(side, Absent)}
        listed.append({"pointer": change.pointer, **there})
    expect(sorted(said, key=canonical), sorted(listed, key=canonical))


def check_patch(case: Case) -> None:
    def run() -> Json:
        return apply_patch(case["state"], case["format"], case["patch"])

    if "refused" in case:
        return refuses(run)
    kept = canonical(case["state"])
    expect(case["result"], run())
    assert canonical(case["state"]) == kept, "the state itself was altered"


def check_commitment(case: Case) -> None:
    secret = thread_secret(bytes.fromhex(case["salt_key"]), case["thread"])
    expect(case["thread_secret"], secret.hex())
    expect({leaf["pointer"]: leaf["value"] for leaf in case["leaves"]}, dict(leaves(case["state"])))
    for leaf in case["leaves"]:
        expect(leaf["proposal"], case["origins"][leaf["pointer"]])
        expect(leaf["salt"], base64url(leaf_salt(secret, leaf["pointer"], leaf["proposal"])))
        expect(leaf["commitment"], commitment({"value": leaf["value"], "salt": leaf["salt"]}))
    full = open_fully(case["state"], case["origins"], secret)
    expect(case["root"], commitment(full))
    for pointer, said in case["containers"].items():
        expect(said, commitment(node_at(full, pointer)))


def node_at(node: Any, pointer: str) -> Json:
    for token in tokens(pointer):
        node = node["object"][token] if "object" in node else node["array"][int(token)]
    found: Json = node
    return found


def check_step(case: Case) -> None:
    found = origins_after(
        case["before"], case["origins"], case["after"], case["proposal"], case["named"]
    )
    expect(case["origins_after"], dict(found))


def check_opened(case: Case) -> None:
    opening = case["opening"]
    found: Completeness = check_opening(opening, case["from_root"], case["to_root"])
    expect_changes(case["changed"], found.changed)
    again: list[Json] = [{"pointer": at, "value": value} for at, value in found.set_again]
    expect(sorted(case["set_again"], key=canonical), sorted(again, key=canonical))
    expect(sorted(case["hidden"]), [*sorted(found.hidden)])
    made = case["made_from"]
    secret = thread_secret(bytes.fromhex(made["salt_key"]), made["thread"])
    origins = origins_after(
        made["before"], made["origins"], made["after"], made["proposal"], made["named"]
    )
    before = open_fully(made["before"], made["origins"], secret)
    after = open_fully(made["after"], origins, secret)
    old, new = disclose(before, after, made["hide"], made["reads"])
    expect(opening, {"from": old, "to": new})


def check_spoiled_opening(case: Case) -> None:
    refuses(lambda: check_opening(case["opening"], case["from_root"], case["to_root"]))


def check_inconsistent_opening(case: Case) -> None:
    expect(case["from_root"], commitment(case["opening"]["from"]))
    expect(case["to_root"], commitment(case["opening"]["to"]))
    check_spoiled_opening(case)


def check_statement_case(case: Case) -> None:
    expect(case["jcs"], canonical(case["statement"]).decode())
    expect(case["digest"], transition_digest(case["statement"]))
    expect(case["digest"], H("countersign.transition.v1", case["jcs"].encode()))


def check_policy(case: Case) -> None:
    whole: Json = {"policy": case["policy"], "schemas": case["schemas"]}
    expect(case["jcs"], canonical(whole).decode())
    expect(case["digest"], policy_digest(case["policy"], case["schemas"]))


def check_proposal(case: Case) -> None:
    secret = thread_secret(bytes.fromhex(case["salt_key"]), case["proposal"]["thread"])
    for text in case["patch_texts"]:
        patch = parse(text.encode())
        expect(case["patch_hash"], patch_hash(secret, patch))
        expect(case["identity"], proposal_identity(secret, case["proposal"], patch))
        expect(case["content"], step_content(secret, case["proposal"], patch))


def check_hash(case: Case) -> None:
    expect(case["hash"], H(case["tag"], case["text"].encode()))


def check_thumbprint(case: Case) -> None:
    expect(case["thumbprint"], thumbprint(unbase64url(case["x"])))


def token_checks(document: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    jwks = read_jwks(document["jwks"])
    keys = {key["name"]: key for key in document["keys"]}

    def genuine(case: Case) -> None:
        expect(case["claims"], dict(check_token(case["token"], case["typ"], jwks)))
        header, payload, _ = case["token"].split(".")
        expect(case["header"], unbase64url(header).decode())
        expect(case["payload"], unbase64url(payload).decode())
        expect(case["payload"], canonical(case["claims"]).decode())
        kid = keys[case["key"]]["kid"]
        expect(case["header"], canonical({"alg": "EdDSA", "kid": kid, "typ": case["typ"]}).decode())

    def refused(case: Case) -> None:
        given = case.get("jwks", document["jwks"])
        refuses(lambda: check_token(case["token"], case["accept_as"], read_jwks(given)), case["code"])

    def unsettled(case: Case) -> None:
        try:
            check_token(case["token"], case["accept_as"], jwks)
        except CouldNotTell:
            return
        raise AssertionError("was settled")

    for key in document["keys"]:
        found = thumbprint(bytes.fromhex(key["public"]))
        yield f"key {key['name']}", lambda said=key["kid"], found=found: expect(said, found)  # type: ignore[misc]
    for case in document["genuine"]:
        yield case["name"], lambda case=case: genuine(case)  # type: ignore[misc]
    for case in document["refused"]:
        yield case["name"], lambda case=case: refused(case)  # type: ignore[misc]

    for case in document["could_not_tell"]:
        yield case["name"], lambda case=case: unsettled(case)  # type: ignore[misc]


def claim_checks(document: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    def refused(case: Case) -> None:
        claims = {**document["whole"][case["typ"]], **case.get("with", {})}
        claims.pop(case.get("without"), None)
        refuses(lambda: check_claims(canonical(claims), case["typ"]), "receipt_malformed")

    for typ, claims in document["whole"].items():
        payload = canonical(claims)
        yield typ, lambda t=typ, p=payload: expect(parse(p), dict(check_claims(p, t)))  # type: ignore[misc]
    for case in document["refused"]:
        yield str(case), lambda case=case: refused(case)  # type: ignore[misc]


def export_checks(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    chain, jwks = read_json(folder / "export/chain.json"), read_json(folder / "export/jwks.json")
    receipt = (folder / "export/receipt.jwt").read_text("ascii").removesuffix("\n")

    def spoiled(case: Case) -> None:
        base: Json = {"chain": chain, "jwks": jwks, "receipt": receipt}
        twin: Any = apply_patch(base, "json-patch", case["patch"])
        refuses(lambda: check_export(twin["chain"], twin["jwks"], [twin["receipt"]]), case["code"])

    def other(case: Case) -> None:
        base: Json = {"chain": chain, "jwks": jwks, "receipt": receipt}
        twin: Any = apply_patch(base, "json-patch", case["patch"])
        check_export(twin["chain"], twin["jwks"], [twin["receipt"]])

    def good() -> None:
        audit, receipts = check_export(chain, jwks, [receipt])
        assert len(audit.diffs) == len(audit.transitions) and len(receipts) == 1

    yield "the export itself", good
    twins = load(folder, "exports.json")
    for case in twins["cases"]:
        yield case["name"], lambda case=case: spoiled(case)  # type: ignore[misc]
    for case in twins["accepted"]:
        yield case["name"], lambda case=case: other(case)  # type: ignore[misc]


def check_joined(case: Case) -> None:
    branches = [Branch(it["name"], it["state"], it["confidence"]) for it in case["branches"]]
    found = join(case["base"], branches, case["keyed"], case["strategy"], case.get("resolve"))
    said = ("result" in case, case.get("conflicts", []), case.get("idle", []))
    expect([*said], [not found.conflicts and not found.idle, [*found.conflicts], [*found.idle]])
    if "result" in case:
        expect(case["result"], found.state)


def check_branch_name(case: Case) -> None:
    expect(case["branch"], branch_thread(case["thread"], case["transition"], case["name"]))


def branch_checks(document: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    keys = read_jwks(document["jwks"])

    def chains(of: Any) -> None:
        parent = check_chain(of["parent"], keys)
        branches = {name: check_chain(entries, keys) for name, entries in of["branches"].items()}
        for branch in branches.values():
            check_branch(branch, parent)
        for statement, _ in parent.transitions:
            if statement["type"] == "join":
                check_join(statement, branches)

    def spoiled(case: Case) -> None:
        twin = apply_patch(document["chains"], "json-patch", case["patch"])
        refuses(lambda: chains(twin), case["code"])

    yield "the chains themselves", lambda: chains(document["chains"])
    for case in document["spoiled"]:
        yield case["name"], lambda case=case: spoiled(case)  # type: ignore[misc]


def envelope_checks(document: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    keys = read_jwks(document["jwks"])

    def check(case: Case) -> None:
        asked = (document["thread"], document["node"], document["version"])
        check_envelope(case["envelope"], keys, "https://countersign.example", *asked)

    for case in document["genuine"]:
        yield case["name"], lambda case=case: check(case)  # type: ignore[misc]
    for case in document["spoiled"]:
        # Tokens are counted by vocabularies that are not here.
        if case["code"] != "tokens_mismatch":
            run = lambda case=case: refuses(lambda: check(case), case["code"])  # noqa: E731
            yield case["name"], run  # type: ignore[misc]
    yield from mac_checks(document, keys)


def mac_checks(document: Any, keys: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    said = document["hmac"]
    shown, issuer = said["secrets"], "https://countersign.example"

    def check(case: Case, now: str) -> None:
        # Moments of one form are in the order of their texts.
        good = {it["epoch"]: it["secret"] for it in shown["secrets"] if now < it["good_until"]}
        asked = (document["thread"], document["node"], document["version"])
        check_envelope(case["envelope"], keys, issuer, *asked, secrets=good)

    def follows() -> None:
        for it in shown["secrets"]:
            secret = envelope_secret(bytes.fromhex(said["row_key"]), shown["flow"], shown["node"], it["epoch"])
            assert secret == it["secret"]

    yield "secrets follow from the row key", follows
    for case in said["genuine"]:
        yield case["name"], lambda case=case: check(case, said["now"])  # type: ignore[misc]
    over = said["genuine"][0]
    yield "no overlap for ever", lambda: refuses(lambda: check(over, said["later"]), "hmac_expired")
    for case in said["spoiled"]:
        run = lambda case=case: refuses(lambda: check(case, said["now"]), case["code"])  # noqa: E731
        yield case["name"], run  # type: ignore[misc]


def vote_checks(document: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    passkey = document["passkey"]

    def genuine(case: Case) -> None:
        evidence = case["evidence"]
        expect(case["jcs"], canonical(evidence["statement"]).decode())
        expect(case["challenge"], challenge(evidence["statement"]))
        expect(case["digest"], evidence_digest(evidence))
        check_vote(evidence, passkey)

    for case in document["cases"] + document["policy_cases"]:
        yield case["name"], lambda case=case: genuine(case)  # type: ignore[misc]
    for case in document["spoiled"] + document["policy_spoiled"]:
        run = lambda case=case: refuses(lambda: check_vote(case["evidence"], passkey), case["code"])  # noqa: E731
        yield case["name"], run  # type: ignore[misc]


def load(folder: Path, name: str) -> Any:
    return read_json(folder / name)


LISTS: list[tuple[str, str, Callable[[Case], None]]] = [
    ("json.json", "cases", check_json),
    ("diffs.json", "cases", check_diff),
    ("patches.json", "cases", check_patch),
    ("commitments.json", "cases", check_commitment),
    ("commitments.json", "steps", check_step),
    ("openings.json", "cases", check_opened),
    ("openings.json", "spoiled", check_spoiled_opening),
    ("openings.json", "inconsistent", check_inconsistent_opening),
    ("statements.json", "cases", check_statement_case),
    (
        "statements.json",
        "refused",
        lambda case: refuses(lambda: transition_digest(case["statement"])),
    ),
    ("joins.json", "cases", check_joined),
    ("branches.json", "names", check_branch_name),
    ("branches.json", "statements", check_statement_case),
    (
        "branches.json",
        "refused",
        lambda case: refuses(lambda: transition_digest(case["statement"])),
    ),
    ("branches.json", "proposals", check_proposal),
    ("policies.json", "cases", check_policy),
    ("proposals.json", "cases", check_proposal),
    ("hashes.json", "cases", check_hash),
    ("hashes.json", "thumbprints", check_thumbprint),
]


def all_checks(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    for file, member, check in LISTS:
        for case in load(folder, file)[member]:
            name = f"{file} {member}: {case.get('name', case)}"
            yield name, lambda case=case, check=check: check(case)  # type: ignore[misc]
    for name, run in token_checks(load(folder, "tokens.json")):
        yield f"tokens.json: {name}", run
    for name, run in claim_checks(load(folder, "claims.json")):
        yield f"claims.json: {name}", run
    for name, run in vote_checks(load(folder, "votes.json")):
        yield f"votes.json: {name}", run
    for name, run in branch_checks(load(folder, "branches.json")):
        yield f"branches.json: {name}", run
    for name, run in envelope_checks(load(folder, "envelopes.json")):
        yield f"envelopes.json: {name}", run
    for name, run in export_checks(folder):
        yield f"exports.json: {name}", run


def main(arguments: list[str]) -> int:
    folder = Path(__file__).resolve().parent.parent / "vectors"
    passed = 0
    for name, run in all_checks(Path(arguments[0]) if arguments else folder):
        try:
            run()
        except Exception as why:
            print(f"FAILED {name}: {why!r}")
            print(f"{passed} passed, 1 failed")
            return 1
        passed += 1
    print(f"{passed} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
