"""Says whether the public library takes a webhook, as a receiver would ask it."""

import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

ask = json.load(sys.stdin)
try:
    Webhook(ask["secret"]).verify(ask["body"], ask["headers"])
    print("good")
except WebhookVerificationError as error:
    print("bad:", error)
