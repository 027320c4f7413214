"""Approvals in a LangGraph: a resume approves nothing, and the graph's own state writes nothing.

`approval_gate` is a node that proposes and stops until the decision. `guarded_writer` makes a function the only one
that writes. `governed` gives a node its view, and proposes what it returns. Checkpoints, resumes and updates of a run
are untrusted. The gateway is asked each time.
"""

from ._gate import NotApproved, approval_gate
from ._governed import governed
from ._pointer import Pointer, head, latest, of_run
from ._writer import NotConfirmed, Write, guarded_writer

__all__ = [
    "NotApproved",
    "NotConfirmed",
    "Pointer",
    "Write",
    "approval_gate",
    "governed",
    "guarded_writer",
    "head",
    "latest",
    "of_run",
]
