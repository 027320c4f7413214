"""Orders: the steps of a wrapper around a function of the caller, such as verify, run and report.

An order is a generator, like a plan. It yields a step, receives its result or its exception, and returns the outcome.
So the order is written once. The driver calls each step with its hands, which block or await.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from ._driving import Awaits, Blocks
from ._finished import finished
from ._plans import Plan

T = TypeVar("T")
Step = Callable[[Any], Any]
Order = Generator[Step, Any, T]


def blocked(order: Order[T], hands: Any) -> T:
    """Runs an order by blocking."""
    go: Callable[[], Step] = partial(next, order)
    thrown: BaseException | None = None
    while True:
        try:
            step = go()
        except StopIteration as done:
            found: T = done.value
            return found
        except RuntimeError as error:
            # A generator cannot raise `StopIteration`, but a function of the caller can.
            if isinstance(thrown, StopIteration) and error.__cause__ is thrown:
                raise thrown from None
            raise
        try:
            go = partial(order.send, step(hands))
        except BaseException as error:  # the order decides what follows
            thrown = error
            go = partial(order.throw, error)


async def awaited(order: Order[T], hands: Any) -> T:
    """Runs an order by awaiting."""
    go: Callable[[], Step] = partial(next, order)
    while True:
        try:
            step = go()
        except StopIteration as done:
            found: T = done.value
            return found
        try:
            go = partial(order.send, await step(hands))
        except GeneratorExit:  # a closed coroutine has no event loop that it could wait in
            order.close()
            raise
        except BaseException as error:  # the order decides what follows
            go = partial(order.throw, error)


@dataclass(frozen=True)
class BlockingHands:
    """The steps of a wrapper, blocking."""

    client: Blocks

    def checkpoint(self) -> None:
        """Does nothing, because a blocking call is interrupted at once."""

    def run(self, plan: Plan[T]) -> T:
        """Runs a plan."""
        return self.client._run(plan)

    to_the_end = run

    def body(self, function: Callable[[], T]) -> T:
        """Calls the function of the caller."""
        return finished(function())


@dataclass(frozen=True)
class AwaitingHands:
    """The steps of a wrapper, awaited."""

    client: Awaits

    async def checkpoint(self) -> None:
        """Raises the cancellation of a caller that is cancelled already."""
        await anyio.lowlevel.checkpoint()

    async def run(self, plan: Plan[T]) -> T:
        """Runs a plan."""
        return await self.client._run(plan)

    async def to_the_end(self, plan: Plan[T]) -> T:
        """Runs a plan to its end, even if the caller is or becomes cancelled. The cancellation follows."""
        ended: list[Callable[[], T]] = []

        async def shielded() -> None:
            with anyio.CancelScope(shield=True):
                ended.append(await _outcome(self.client, plan))

        # A shield alone does not stop the cancellation of an asyncio task. A task group waits for its tasks anyway.
        async with anyio.create_task_group() as group:
            group.start_soon(shielded)
        return ended[0]()

    async def body(self, function: Callable[[], Awaitable[T]]) -> T:
        """Awaits the function of the caller."""
        return finished(await function())


async def _outcome(client: Awaits, plan: Plan[T]) -> Callable[[], T]:
    """Returns the result or the exception of a plan. A task group would wrap the exception in a group."""
    try:
        found = await client._run(plan)
    except Exception as error:
        return partial(_raise, error)
    return lambda: found


def _raise(error: Exception) -> Any:
    raise error
