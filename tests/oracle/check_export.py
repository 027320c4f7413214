"""Checks an export offline, trusting nothing but the published keys.

    python tests/oracle/check_export.py DIR
    python tests/oracle/check_export.py chain.json jwks.json [receipt.jwt …]
    python tests/oracle/check_export.py ARCHIVE.json.gz jwks.json [receipt.jwt …]

DIR holds chain.json (the answer of GET chain, pages merged), jwks.json and perhaps receipt.jwt.
Exit 0: all is as it says. 1: it is not. 2: could not tell.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from pathlib import Path

from countersign_oracle import Audit, Object, check_chain, check_receipt
from effect import Change
from signed import CouldNotTell, read_jwks
from strict_json import Json, Limits, Refused, canonical, parse, same

EXPORT_BYTES_MAX = 1 << 30
SHOWN_CHARS_MAX = 60


def check_export(chain: Json, jwks: Json, receipts: list[str]) -> tuple[Audit, list[Object]]:
    """Raises Refused for the first thing wrong."""
    entries, left, first = chain, None, 0
    if isinstance(chain, dict):
        entries, left = chain.get("entries"), chain.get("next_page_token")
        first = first_of_archive(chain)
    if left is not None:
        raise Refused("chain", "there are more pages")
    keys = read_jwks(jwks)
    audit = check_chain(entries, keys, first)
    if isinstance(chain, dict) and chain.get("thread", audit.thread) != audit.thread:
        raise Refused("archive", "not the thread that it names")
    return audit, [check_receipt(receipt, audit, keys) for receipt in receipts]


def first_of_archive(chain: Object) -> int:
    """The version that an archive begins with; 0 for an export."""
    if chain.get("countersign") != "archive":
        return 0
    if not same(chain.get("edition"), 2):
        raise Refused("archive", "another edition")
    first, last, entries = chain.get("from"), chain.get("to"), chain.get("entries")
    if not (isinstance(first, int) and isinstance(last, int) and isinstance(entries, list)):
        raise Refused("archive", "it does not name its versions")
    if len(entries) != last - first + 1:
        raise Refused("archive", "not the versions that it names")
    return first


def describe(audit: Audit, receipts: list[Object]) -> None:
    print(f"thread {audit.thread!r} of {audit.iss}")
    for version, (statement, entry) in enumerate(audit.transitions, audit.first):
        gate = entry["gate"]
        assert isinstance(gate, dict)
        owes = ", owes" if entry["owes"] else ""
        print(
            f"version {version}: {statement['type']} by {statement['node']}, {gate['kind']}{owes}"
        )
        found = audit.diffs.get(version)
        if found is None:
            print("  no opening: the roots link, the change was not seen")
            continue
        for change in found.changed:
            print(f"  {_shown(change)}")
        for pointer, value in found.set_again:
            print(f"  {pointer!r}: {_text(value)} -> {_text(value)}, set to the same value")
        for pointer in found.hidden:
            print(f"  {pointer!r} changed or set to the same value, hidden")
        if not found.changed and not found.set_again and not found.hidden:
            print("  nothing changed")
    for receipt in receipts:
        print(f"receipt {receipt['jti']} approves version {receipt['version']}")
    versions, opened = len(audit.transitions), len(audit.diffs)
    print(
        f"OK: {versions} versions linked and signed, {opened} diffs complete, "
        f"{versions - opened} not seen, {len(receipts)} receipts"
    )


def _shown(change: Change) -> str:
    before, after = (_text(side) for side in (change.before, change.after))
    return f"{change.pointer!r}: {before} -> {after}"


def _text(value: object) -> str:
    text = repr(value) if repr(value) == "absent" else canonical(value).decode()  # type: ignore[arg-type]
    return text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…"


def read_json(path: Path) -> Json:
    return parse(read_plain(path), Limits(bytes_max=EXPORT_BYTES_MAX, depth_max=256))


def read_plain(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    with gzip.open(path) as file:
        plain = file.read(EXPORT_BYTES_MAX + 1)
    if len(plain) > EXPORT_BYTES_MAX:
        raise Refused("archive", "it unpacks to too much")
    return plain


def main(arguments: list[str]) -> int:
    paths = [Path(argument) for argument in arguments]
    if len(paths) == 1 and paths[0].is_dir():
        receipt = paths[0] / "receipt.jwt"
        paths = [paths[0] / "chain.json", paths[0] / "jwks.json"] + [receipt] * receipt.exists()
    if len(paths) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        receipts = [path.read_text("ascii").removesuffix("\n") for path in paths[2:]]
        describe(*check_export(read_json(paths[0]), read_json(paths[1]), receipts))
    except Refused as why:
        print(f"REFUSED: {why}")
        return 1
    except (CouldNotTell, EOFError, OSError, UnicodeDecodeError, zlib.error) as why:
        print(f"COULD NOT TELL: {why}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
