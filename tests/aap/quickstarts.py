"""Runs the quickstarts of `docs/guides/agent-frameworks.md` at a real gateway. Only the model is replaced.

    quickstarts.py [FRAMEWORK…]

Each runs twice: a reviewer approves the call, and denies it. COUNTERSIGN_BIN is the gateway's program. The last line
counts: N passed, M failed.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clients" / "python" / "src"))

from countersign import Client  # noqa: E402
from countersign.testing import Gateway, Reviewer  # noqa: E402
from countersign.testing._program import program  # noqa: E402

PAGE = ROOT / "docs" / "guides" / "agent-frameworks.md"
LINES_MAX = 40
PATIENCE_SECS = 120
PASSWORD = "correct horse battery staple"


def scripts() -> dict[str, str]:
    found = re.findall(r"^```python ([\w-]+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return dict(found)


def init(gateway: Gateway, folder: str) -> str:
    """Runs the command of the page in the gateway's data folder, and returns the token of the agent."""
    (command,) = re.findall(r"^```bash init\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (Path(folder) / "countersign").symlink_to(program())
    known = {key: value for key, value in os.environ.items() if not key.startswith("COUNTERSIGN_")}
    known |= {"PATH": f"{folder}:{os.environ['PATH']}", "COUNTERSIGN_DATA": str(gateway.data)}
    subprocess.run(["bash", "-euo", "pipefail", "-c", command], cwd=folder, env=known, check=True, capture_output=True)
    lines = (Path(folder) / ".env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["INSTANCE"]


def run(name: str, script: str, order: str, gateway: Gateway, token: str) -> subprocess.Popen[str]:
    known = {
        "GATE": gateway.url,
        "INSTANCE": token,
        "ORDER": order,
        "PYTHONPATH": sys.path[0],
        "PYTHONWARNINGS": "ignore",
        "OTEL_SDK_DISABLED": "true",
        "CREWAI_DISABLE_TELEMETRY": "true",
    }
    model = Path(__file__).with_name("quickstart_model.py")
    process = subprocess.Popen(
        [sys.executable, str(model), name],
        env={**os.environ, **known},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write(script)
    process.stdin.close()
    process.stdin = None
    return process


def held(auditor: Client, process: subprocess.Popen[str], after: int) -> str:
    """Returns the review of the next call that is held."""
    until = time.monotonic() + PATIENCE_SECS
    while time.monotonic() < until and process.poll() is None:
        for event in auditor.events(after=after):
            if event.type == "transition.held":
                return event.data["review"]
        time.sleep(0.1)
    process.kill()
    raise AssertionError(f"no call was held: {process.communicate()}")


def check(name: str, script: str, verdict: str, gateway: Gateway, token: str, auditor: Client, ada: Reviewer) -> None:
    last = max((it.index for it in auditor.events()), default=0)
    # Equal calls that were denied count as attempts of one call.
    order = f"{name}-{verdict}"
    process = run(name, script, order, gateway, token)
    ada.vote(held(auditor, process, last), verdict, comment="not this week")
    out, errors = process.communicate(timeout=PATIENCE_SECS)
    types = [it.type for it in auditor.events(after=last)]
    assert process.returncode == 0, errors
    if verdict == "approve":
        assert f"refunded 40 of order {order}" in out, (out, errors)
        assert types.count("write.confirmed") == 1, types
    else:
        assert "refunded" not in out, out
        assert "not this week" in out, (out, errors)
        assert "write.verified" not in types, types


def main() -> None:
    wanted = sys.argv[1:] or list(scripts())
    passed = failed = 0
    with Gateway.start() as gateway, tempfile.TemporaryDirectory() as folder:
        token = init(gateway, folder)
        auditor = gateway.client(gateway.add_token("auditor"))
        ada = Reviewer(gateway.site, "ada", PASSWORD)
        for name in wanted:
            script = scripts()[name]
            for verdict in ("approve", "deny"):
                try:
                    assert script.count("\n") <= LINES_MAX
                    check(name, script, verdict, gateway, token, auditor, ada)
                    passed += 1
                except Exception as error:
                    failed += 1
                    print(f"failed: {name}, {verdict}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
