"""`guarded_write` by writers that are killed by SIGKILL, at each of its steps."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from countersign import Denied
from countersign.guarded import GuardRefused, guarded_write, settle

from scene import Job, Scene
from targets import Target, wait_for

STEPS = [
    "before verify",
    "after verify",
    "in the guard",
    "before the row",
    "after the row",
    "before commit",
    "in commit",
    "after commit",
    "after confirm",
]


class Writers:
    """Writers that are killed, each a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def killed(self, target: Target, scene: Scene, job: Job, step: str) -> None:
        order = {"url": scene.gateway.url, "token": scene.tokens["writer"], "database": target.address, "step": step}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({**order, "job": job.told()}) + "\n")
        self.process.stdin.flush()
        assert int(self.process.stdout.readline()) == -signal.SIGKILL, step


@pytest.fixture(scope="session")
def writers() -> Iterator[Writers]:
    command = [sys.executable, str(Path(__file__).with_name("writer.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Writers(process)


# If it is in the database then. A process that dies during the commit does not know.
WRITTEN = {step: (1,) if step in ("after commit", "after confirm") else (0,) for step in STEPS} | {"in commit": (0, 1)}


@pytest.mark.parametrize("step", STEPS)
def test_who_was_killed_and_begins_again_at_once_writes_once(
    scene: Scene, target: Target, writers: Writers, step: str
) -> None:
    job = scene.approved()
    writers.killed(target, scene, job, step)
    with closing(target.connect()) as connection:
        again = guarded_write(connection, scene.client("writer"), target.body(job), **job.told())
    assert again.ended.outcome == "confirmed"
    assert int(not again.by_this_call) in WRITTEN[step]
    assert (target.rows(job), scene.stands(job)) == (1, ("open", True))


def test_who_was_killed_and_comes_back_too_late_says_what_became_of_it(
    short: Scene, target: Target, writers: Writers
) -> None:
    jobs, client = {}, short.client("writer")
    for step in STEPS:
        jobs[step] = short.approved()
        writers.killed(target, short, jobs[step], step)
    wait_for(time.time() + 4.05)

    # The gateway never heard of the first, and nothing is lost.
    early = jobs.pop("before verify")
    with closing(target.connect()) as connection:
        guarded_write(connection, client, target.body(early), **early.told())
    assert (target.rows(early), short.stands(early)) == (1, ("open", True))

    for step, job in jobs.items():
        before = target.rows(job)
        assert before in WRITTEN[step], step
        with closing(target.connect()) as connection:
            if not before:
                with pytest.raises(Denied, match="already_used"):
                    guarded_write(connection, client, target.body(job), **job.told())
            ended = settle(connection, client, **job.known())
            assert (step, ended.outcome) == (step, "confirmed" if before else "aborted")
            assert (step, *short.stands(job)) == (step, "open", bool(before))
            if before:
                again = guarded_write(connection, client, target.body(job), **job.told())
                assert not again.by_this_call, step
                continue
            with pytest.raises(GuardRefused, match="another write_id"):
                guarded_write(connection, client, target.body(job), **job.told())
            # Reviewers reaffirm the head. The outcome of the last write is known, so no box has to be ticked.
            new = short.approved(thread=job.thread, parent=job.transition)
            guarded_write(connection, client, target.body(new), **new.told())
        assert (step, target.rows(job), *short.stands(new)) == (step, 1, "open", True)
