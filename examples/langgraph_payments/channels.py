"""The graph's state. `is_admin` is in it, since graphs grow such things; what agents may set is the policy's to say."""

from __future__ import annotations

from typing import Annotated, TypedDict

from countersign.langgraph import Pointer, latest


class State(TypedDict, total=False):
    raw_text: str
    requested_action: str
    target_user_id: int
    is_admin: bool
    countersign: Annotated[Pointer, latest]
