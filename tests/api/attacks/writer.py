"""The harness's writer: a process of its own that asks the gateway before each row, and writes on a 200 that allows it alone.

A line on standard input is one write to be tried, a line on standard output what the gateway answered to it. Several are
tried at once, as several writers would.
"""

import contextlib
import http.client
import json
import sqlite3
import sys
import threading
import urllib.parse

PATIENCE = 120
TELLING = threading.Lock()


def verify(order):
    """What the gateway answers: status, content type, text."""
    gateway = urllib.parse.urlsplit(order["gateway"])
    connection = http.client.HTTPConnection(gateway.hostname, gateway.port, timeout=PATIENCE)
    with contextlib.closing(connection):
        headers = {"authorization": "Bearer " + order["token"], "content-type": "application/json"}
        connection.request("POST", "/v1/verify", json.dumps(order["ask"]), headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("content-type", ""), answer.read().decode()


def write(order, allowed):
    # A repeated answer is the same write: a writer that is run again does not write twice.
    row = (order["ask"]["thread"], allowed["fence"], json.dumps(allowed["view"]))
    with contextlib.closing(sqlite3.connect(order["target"], timeout=PATIENCE)) as target, target:
        target.execute("INSERT OR IGNORE INTO users_changed VALUES (?, ?, ?)", row)


def attempt(order):
    told = {"order": order["order"]}
    try:
        status, kind, text = verify(order)
        if status == 200:
            answer = json.loads(text)
            if answer["allow"] is True:
                write(order, answer)
        told |= {"status": status, "kind": kind, "text": text}
    except Exception as failed:  # The harness must hear of it, whatever it is.
        told["failed"] = repr(failed)
    with TELLING:
        print(json.dumps(told), flush=True)


for line in sys.stdin:
    threading.Thread(target=attempt, args=(json.loads(line),), daemon=True).start()
