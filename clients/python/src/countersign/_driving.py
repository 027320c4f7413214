"""The two drivers of plans: one blocks, one awaits. They know nothing of what a plan is about."""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Concatenate, Generic, ParamSpec, TypeVar, overload

import anyio
import httpx

from ._bounded import Body
from ._plans import Came, Core, Item, Pause, Plan, Step, Walk
from ._settings import Settings, lost, reply

P = ParamSpec("P")
T = TypeVar("T")


class Blocks:
    """Runs plans by blocking."""

    _settings: Settings
    _http: httpx.Client

    def _do(self, step: Step) -> Came:
        if isinstance(step, Pause):
            time.sleep(step.secs)
            return None
        body = Body(self._settings.answer_bytes_max)
        try:
            with self._http.stream(**self._settings.sent(step)) as response:
                for chunk in response.iter_raw():
                    body.add(chunk)
                return reply(response, body)
        except httpx.HTTPError as error:
            return lost(error, self._settings.address.url)

    def _run(self, plan: Plan[T]) -> T:
        came: Came = None
        try:
            while True:
                came = self._do(plan.send(came))
        except StopIteration as done:
            found: T = done.value
            return found

    def _walk(self, walk: Walk[T]) -> Iterator[T]:
        came: Came = None
        try:
            while True:
                step = walk.send(came)
                if isinstance(step, Item):
                    came = None
                    yield step.value
                else:
                    came = self._do(step)
        except StopIteration:
            return


class Awaits:
    """Runs plans by awaiting, on asyncio or trio."""

    _settings: Settings
    _http: httpx.AsyncClient

    async def _do(self, step: Step) -> Came:
        if isinstance(step, Pause):
            await anyio.sleep(step.secs)
            return None
        body = Body(self._settings.answer_bytes_max)
        try:
            async with self._http.stream(**self._settings.sent(step)) as response:
                async for chunk in response.aiter_raw():
                    body.add(chunk)
                return reply(response, body)
        except httpx.HTTPError as error:
            return lost(error, self._settings.address.url)

    async def _run(self, plan: Plan[T]) -> T:
        came: Came = None
        while True:
            try:
                step = plan.send(came)
            except StopIteration as done:
                found: T = done.value
                return found
            came = await self._do(step)

    async def _walk(self, walk: Walk[T]) -> AsyncIterator[T]:
        came: Came = None
        while True:
            try:
                step = walk.send(came)
            except StopIteration:
                return
            if isinstance(step, Item):
                came = None
                yield step.value
            else:
                came = await self._do(step)


class Blocking(Generic[P, T]):
    """A plan as a blocking method."""

    def __init__(self, plan: Callable[Concatenate[Core, P], Plan[T]]) -> None:
        self._plan = plan
        self.__doc__ = self._plan.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Core, P], Plan[T]]: ...
    @overload
    def __get__(self, client: Blocks, owner: type) -> Callable[P, T]: ...
    def __get__(self, client: Blocks | None, owner: type) -> Callable[..., T] | Callable[..., Plan[T]]:
        if client is None:
            return self._plan

        @functools.wraps(self._plan)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return client._run(self._plan(client._settings.core, *args, **kwargs))

        return call


class Awaiting(Generic[P, T]):
    """A plan as an awaited method."""

    def __init__(self, plan: Callable[Concatenate[Core, P], Plan[T]]) -> None:
        self._plan = plan
        self.__doc__ = self._plan.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Core, P], Plan[T]]: ...
    @overload
    def __get__(self, client: Awaits, owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: Awaits | None, owner: type) -> Callable[..., Awaitable[T]] | Callable[..., Plan[T]]:
        if client is None:
            return self._plan

        @functools.wraps(self._plan)
        def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
            return client._run(self._plan(client._settings.core, *args, **kwargs))

        return call


class BlockingWalk(Generic[P, T]):
    """A walk as a method that returns an iterator."""

    def __init__(self, walk: Callable[Concatenate[Core, P], Walk[T]]) -> None:
        self._plan = walk
        self.__doc__ = self._plan.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Core, P], Walk[T]]: ...
    @overload
    def __get__(self, client: Blocks, owner: type) -> Callable[P, Iterator[T]]: ...
    def __get__(self, client: Blocks | None, owner: type) -> Callable[..., Iterator[T]] | Callable[..., Walk[T]]:
        if client is None:
            return self._plan

        @functools.wraps(self._plan)
        def call(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
            return client._walk(self._plan(client._settings.core, *args, **kwargs))

        return call


class AwaitingWalk(Generic[P, T]):
    """A walk as a method that returns an asynchronous iterator."""

    def __init__(self, walk: Callable[Concatenate[Core, P], Walk[T]]) -> None:
        self._plan = walk
        self.__doc__ = self._plan.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Core, P], Walk[T]]: ...
    @overload
    def __get__(self, client: Awaits, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: Awaits | None, owner: type) -> Callable[..., AsyncIterator[T]] | Callable[..., Walk[T]]:
        if client is None:
            return self._plan

        @functools.wraps(self._plan)
        def call(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
            return client._walk(self._plan(client._settings.core, *args, **kwargs))

        return call
