"""Creates instances with the receiver of the package, and waits to be woken.

    with_receiver.py    with the gateway in AAP_URL and the token of a provisioner in AAP_TOKEN

Each line of input is a command, and each line of output its result.
"""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import uvicorn
from agentapprovalprotocol import AAPError, AsyncClient, Request
from agentapprovalprotocol.receiver import Provisioned, Receiver

URL, TOKEN = os.environ["AAP_URL"], os.environ["AAP_TOKEN"]


def say(what: dict[str, Any]) -> None:
    print(json.dumps(what), flush=True)


def woken(handle: Mapping[str, Any], request: Request) -> None:
    say({"woken": request.id, "run": handle["run"], "status": request.status})


async def provision(receiver: Receiver, address: str, **options: Any) -> Provisioned | None:
    try:
        made = await receiver.provision(provider_url=URL, provisioner_token=TOKEN, url=address, **options)
    except AAPError as error:
        say({"refused": type(error).__name__, "code": getattr(error, "code", None)})
        return None
    say({"instance": made.instance_id, "name": made.instance_name, "token": made.token, "expires_at": made.expires_at})
    return made


async def main() -> None:
    receiver = Receiver(resumers={"plain": woken})
    serve, delay = receiver.asgi(), 0.0

    async def late(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(delay)
        await serve(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(late, port=0, log_level="error", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    address = f"http://127.0.0.1:{port}/aap"
    say({"address": address})
    made = None
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        match command["do"]:
            case "provision":
                delay = command.get("delay", 0.0)
                made = await provision(receiver, address, instance_name=command.get("name"))
            case "provision another registration":
                # The receiver that serves does not know this registration.
                await provision(Receiver(resumers={}, secret=receiver.secret), address)
            case "provision another secret":
                other = Receiver(resumers={}, registration_id=receiver.registration_id)
                await provision(other, address, idempotency_key="another-secret")
            case "ask in vain":
                assert made
                try:
                    await AsyncClient(URL, made.token, retry_budget=1).get(made.instance_id)
                except AAPError as error:
                    say({"refused": type(error).__name__})
            case "ask":
                assert made
                asked = await AsyncClient(URL, made.token).create(
                    {
                        "tool": "refund",
                        "arguments": {"amount": 40},
                        "timeout": "10m",
                        "context": {"resume": {"framework": "plain", "run": command["run"]}},
                    },
                    command["run"],
                )
                say({"created": asked.id, "status": asked.status})
    server.should_exit = True
    await serving


asyncio.run(main())
