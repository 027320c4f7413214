"""Writes tests/vectors. Run once; what it wrote is committed, and running it again changes nothing.

python tests/oracle/make_vectors.py
"""

from __future__ import annotations

import json
from pathlib import Path

from cases_effect import DIFFS, JSON_PATCHES, MERGES
from cases_json import json_cases
from make_branches import branches, joins
from make_claims import claims
from make_envelopes import envelopes
from make_export import export, spoiled_exports
from make_hashed import commitments, hashes, policies, proposals, statements
from make_openings import openings
from make_tokens import tokens
from make_votes import votes
from strict_json import Json

VECTORS = Path(__file__).resolve().parent.parent / "vectors"
FILE_BYTES_MAX = 200_000


def main() -> None:
    chain, jwks, receipt = export()
    files: dict[str, Json] = {
        "json.json": {"cases": json_cases()},
        "diffs.json": {"cases": list(DIFFS)},
        "patches.json": {"cases": [*MERGES, *JSON_PATCHES]},
        "commitments.json": commitments(),
        "openings.json": openings(),
        "statements.json": statements(),
        "policies.json": policies(),
        "proposals.json": proposals(),
        "hashes.json": hashes(),
        "tokens.json": tokens(),
        "branches.json": branches(),
        "joins.json": joins(),
        "claims.json": claims(),
        "envelopes.json": envelopes(),
        "votes.json": votes(),
        "exports.json": spoiled_exports(),
        "export/chain.json": chain,
        "export/jwks.json": jwks,
    }
    (VECTORS / "export").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        text = json.dumps(content, indent=1, allow_nan=False) + "\n"
        assert len(text) < FILE_BYTES_MAX, name
        (VECTORS / name).write_text(text, encoding="ascii")
    (VECTORS / "export/receipt.jwt").write_text(receipt + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
