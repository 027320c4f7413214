"""Asks the test for everything that the agent's side of a gateway cannot do: reviewers decide, and an administrator halts.

Each line of output is a question to the test, and the next line of input is its answer.
"""

import json
import sys
import threading
from decimal import Decimal
from typing import Any

_turn = threading.Lock()


def ask(question: dict[str, Any]) -> dict[str, Any]:
    with _turn:
        print(json.dumps(question), flush=True)
        return json.loads(sys.stdin.readline())


def decide(request: str, status: str, note: str | None = None) -> dict[str, Any]:
    """A reviewer approves or denies. Returns the call that the reviewer sees."""
    return ask({"decide": request, "status": status, "note": note})


def plain(value: Any) -> Any:
    """Returns JSON with the numbers of Python. The client of the protocol reads numbers as decimals."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {name: plain(it) for name, it in value.items()}
    if isinstance(value, list | tuple):
        return [plain(it) for it in value]
    return value
