"""Signs a post by the public library for Standard Webhooks: {secret, id, timestamp, body} to its webhook-signature."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone

from standardwebhooks import Webhook

said = json.load(sys.stdin)
moment = datetime.fromtimestamp(said["timestamp"], tz=timezone.utc)
print(Webhook(said["secret"]).sign(said["id"], moment, said["body"]), end="")
