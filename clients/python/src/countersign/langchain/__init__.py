"""Approval of LangChain tool calls: the gateway's policy and its reviewers decide which calls run.

`ToolGate` interrupts like LangChain's own human-in-the-loop middleware, batched or per call, and accepts the same
responses (approve, edit, reject, respond). A response can stop or change a call, but cannot allow one.
"""

from ._middleware import ToolGate

__all__ = ["ToolGate"]
