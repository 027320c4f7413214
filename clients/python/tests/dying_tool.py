"""A process that makes one guarded call, and may be killed: GATE, TOKEN, KEY, CALLS (a file) and DIES."""

import os
import signal
from pathlib import Path

from countersign import ApprovalRequest, Client
from countersign.tools import CallRefused, countersigned

client = Client(os.environ["GATE"], os.environ["TOKEN"])


def held(request: ApprovalRequest) -> None:
    print(f"held {request.review_url}", flush=True)


@countersigned(client, tool="refund", key=lambda amount: os.environ["KEY"], on_held=held)
def refund(amount: int) -> str:
    with Path(os.environ["CALLS"]).open("a") as calls:
        calls.write(f"{amount}\n")
    if os.environ.get("DIES"):
        os.kill(os.getpid(), signal.SIGKILL)
    return f"refunded {amount}"


try:
    print(refund(40), flush=True)
except CallRefused as refused:
    print(refused.code, flush=True)
