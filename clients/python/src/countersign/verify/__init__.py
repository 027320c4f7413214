"""Offline verification of everything that the gateway signs, by the published keys.

    keys = Keys.read(client.jwks())
    entry = check_entry(made.entry, keys, issuer=ANY, transition=made.transition)

State each expectation, and `ANY` if there is none. `None` is refused. A check returns the signed facts as a frozen
dataclass. It raises `Refused` if they do not hold, or `CouldNotTell` if the given data is not enough. Needs the extra
`verify`.
"""

try:
    import cryptography  # noqa: F401 - only whether it is there
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "countersign.verify needs the extra `verify`: pip install 'countersign-gateway[verify]', "
        "or './clients/python[verify]' in a clone of the repository",
        name=missing.name,
    ) from None

from countersign._protocol._claims import (
    Answer,
    Approval,
    ApprovedGate,
    AutoGate,
    Denial,
    Entry,
    Envelope,
    Episode,
    ObservedGate,
    Receipt,
    Verification,
    Vote,
    WrittenGate,
)
from countersign._protocol._json import canonical, read_json
from countersign._protocol._refused import CouldNotTell, Refused

from ._chain import Chain, Link, check_chain
from ._envelopes import check_envelope
from ._expected import ANY
from ._hashes import manifest_digest, policy_digest, transition_digest
from ._keys import Key, Keys
from ._openings import Change, Difference, check_opening, commitment
from ._statement import Statement
from ._tokens import check_answer, check_denial, check_entry, check_episode, check_receipt, check_verification

__all__ = [
    "ANY",
    "Answer",
    "Approval",
    "ApprovedGate",
    "AutoGate",
    "Chain",
    "Change",
    "CouldNotTell",
    "Denial",
    "Difference",
    "Entry",
    "Envelope",
    "Episode",
    "Key",
    "Keys",
    "Link",
    "ObservedGate",
    "Receipt",
    "Refused",
    "Statement",
    "Verification",
    "Vote",
    "WrittenGate",
    "canonical",
    "check_answer",
    "check_chain",
    "check_denial",
    "check_entry",
    "check_envelope",
    "check_episode",
    "check_opening",
    "check_receipt",
    "check_verification",
    "commitment",
    "manifest_digest",
    "policy_digest",
    "read_json",
    "transition_digest",
]
