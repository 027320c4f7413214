"""Says whether a webhook's Ed25519 signature is by one of these public keys (`whpk_…`)."""

import base64
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ask = json.load(sys.stdin)
headers = ask["headers"]
message = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{ask['body']}".encode()
signatures = [it[4:] for it in headers["webhook-signature"].split(" ") if it.startswith("v1a,")]


def good(key: str, signature: str) -> bool:
    public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key.removeprefix("whpk_")))
    try:
        public.verify(base64.b64decode(signature), message)
        return True
    except InvalidSignature:
        return False


print("good" if any(good(key, it) for key in ask["keys"] for it in signatures) else "bad")
