"""Approval of function calls: `@countersigned` asks, waits, uses the approval once, runs the function and reports.

    @countersigned(client, tool="refund")
    def refund(customer: str, amount: int) -> str: ...

A call that may not run raises `CallRefused`. Its text is for the model, and its `code` for your program.
"""

from ._countersigned import countersigned
from ._refused import CallRefused

__all__ = ["CallRefused", "countersigned"]
