"""Countersign in a LangGraph: nothing is approved by a resume, and nothing is written by the graph's own state.

`approval_gate` is a node that asks people and stops, `guarded_writer` makes a function the only thing that writes, and
`governed` gives a node what its policy lets it read and proposes what it returns. A run's checkpoints, resumes and
updates are taken for what anybody may have put there; what counts is asked of the gateway each time.
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
