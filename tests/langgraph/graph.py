"""A graph that stops twice in one node, each time for a decision on a digest of its own."""

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    digests: list[str]
    answers: list[Any]


def gate(state: State) -> State:
    ask = {"kind": "state_transition_review", "changed_keys": ["target_user_id"]}
    return {"answers": [interrupt({**ask, "transition_digest": it}) for it in state["digests"]]}


builder = StateGraph(State)
builder.add_node("gate", gate)
builder.add_edge(START, "gate")
builder.add_edge("gate", END)
graph = builder.compile()
