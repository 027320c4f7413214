"""The channels of a graph's state as JSON, with the graph's own reducers."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import BaseMessage, messages_from_dict
from langgraph.channels import BinaryOperatorAggregate
from langgraph.graph import StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Overwrite
from pydantic import BaseModel

from countersign._names import Invalid
from countersign._same import same
from countersign.errors import Json


class Channels:
    """The channels that the gateway stores: all except `local` ones and the pointer's own."""

    def __init__(self, schema: type, pointer: str, local: Iterable[str] = ()) -> None:
        self.local = frozenset(local)
        self._channels: dict[str, Any] = {
            key: channel for key, channel in StateGraph(schema).channels.items() if key not in {pointer, *self.local}
        }

    def given(self, view: Mapping[str, Json]) -> dict[str, Any]:
        """Returns a view as a node receives it: messages are messages again."""
        return {key: self._decoded(key, value) for key, value in view.items()}

    def governed(self, update: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the part of an update that the gateway stores. Messages without an id get one, so that both copies
        are the same."""
        unknown = set(update) - set(self._channels) - self.local
        if unknown:
            raise Invalid("update", f"no channel of the state: {', '.join(sorted(unknown))}")
        return {key: _identified(value) for key, value in update.items() if key not in self.local}

    def after(self, view: Mapping[str, Json], update: Mapping[str, Any]) -> dict[str, Json]:
        """Returns the view after an update, each channel by its reducer."""
        return {**view, **{key: self._reduced(key, view, value) for key, value in update.items()}}

    def refreshed(self, view: Mapping[str, Json], state: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the update that sets a graph's channels to a view, whatever their reducers do."""
        found: dict[str, Any] = {}
        for key, value in self.given(view).items():
            channel = self._channels.get(key)
            if channel is None or (key in state and same(encoded(state[key]), view[key])):
                continue
            found[key] = Overwrite(value) if isinstance(channel, BinaryOperatorAggregate) else value
        return found

    def between(self, before: Mapping[str, Json], after: Mapping[str, Json]) -> dict[str, Any]:
        """Returns an update from `before` to `after`. For an appending channel it is the appended part, so that it
        combines with updates of other nodes."""
        return {
            key: self._update(key, before, value)
            for key, value in after.items()
            if key in self._channels and not (key in before and same(before[key], value))
        }

    def _update(self, key: str, before: Mapping[str, Json], after: Json) -> Any:
        value = self._decoded(key, after)
        if not isinstance(self._channels[key], BinaryOperatorAggregate):
            return value
        was = before.get(key)
        if isinstance(was, list) and isinstance(value, list):
            appended = value[len(was) :]
            if same(self._reduced(key, before, appended), after):
                return appended
        return Overwrite(value)

    def _reduced(self, key: str, view: Mapping[str, Json], value: Any) -> Json:
        channel = self._channels[key].copy()
        if key in view:
            channel = channel.from_checkpoint(self._decoded(key, view[key]))
        channel.update([value])
        return encoded(channel.get())

    def _decoded(self, key: str, value: Json) -> Any:
        channel = self._channels.get(key)
        if (
            isinstance(channel, BinaryOperatorAggregate)
            and channel.operator is add_messages
            and isinstance(value, list)
        ):
            return messages_from_dict([{"type": it["type"], "data": it} for it in value])
        return value


def encoded(value: Any) -> Json:
    """Returns a channel's value as JSON. A value without one clear form is refused."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, BaseMessage):
        return {"type": value.type, **value.model_dump(mode="json", exclude_defaults=True)}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return encoded(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {_key(key): encoded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encoded(item) for item in value]
    raise Invalid("update", f"a {type(value).__name__} cannot be represented in JSON")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise Invalid("update", "a key is a text")
    return key


def _identified(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        return value if value.id else value.model_copy(update={"id": str(uuid.uuid4())})
    if isinstance(value, list):
        return [_identified(item) for item in value]
    return value
