"""A real mail server for the tests: prints its port, then each mail it takes as a line of JSON.

smtp.py MODE CERTIFICATE KEY; MODE is plain, starttls or tls, with `+login` where it wants gate/sesame first.
"""

import asyncio
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

mode, certificate, key = sys.argv[1:4]
kind, _, login = mode.partition("+")
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(certificate, key)


def say(what):
    print(json.dumps(what), flush=True)


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 nobody of that name"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        say({"from": envelope.mail_from, "to": envelope.rcpt_tos, "tls": session.ssl is not None or kind == "tls",
             "login": bool(session.authenticated), "data": envelope.content.decode()})
        return "250 taken"


def authenticator(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"gate", b"sesame"))


def factory():
    return SMTP(
        Handler(), hostname="localhost", authenticator=authenticator if login else None, auth_required=bool(login),
        auth_require_tls=True, tls_context=context if kind == "starttls" else None, require_starttls=kind == "starttls")


async def main():
    loop = asyncio.get_running_loop()
    server = await loop.create_server(factory, "127.0.0.1", 0, ssl=context if kind == "tls" else None)
    say({"port": server.sockets[0].getsockname()[1]})
    await loop.run_in_executor(None, sys.stdin.read)

asyncio.run(main())
