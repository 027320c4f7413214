"""Countersign for LangChain's agents: which of the model's tool calls run is said by the gateway, and by people there.

`ToolGate` asks for decisions as LangChain's own human-in-the-loop middleware does, batched or per call, and takes the
same answers (approve, edit, reject, respond). An answer can stop a call or change what is asked; it cannot let one run.
"""

from ._middleware import ToolGate

__all__ = ["ToolGate"]
