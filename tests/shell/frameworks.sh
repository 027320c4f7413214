#!/usr/bin/env bash
# The quickstarts of agent frameworks, with the packages of tests/aap. With TEST_FULL=1 also that of CrewAI, whose packages
# take 1 GB. The last line counts.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
target=${CARGO_TARGET_DIR:-$PWD/target}
export COUNTERSIGN_BIN=$target/debug/countersign PYTHONDONTWRITEBYTECODE=1

passed=0
failed=0
quickstarts() { # PYTHON FRAMEWORK…
    local output
    output=$("$1" tests/aap/quickstarts.py "${@:2}")
    echo "$output"
    if [[ $(tail -n 1 <<<"$output") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
    else
        failed=$((failed + 1))
    fi
}

quickstarts "$target/aap/bin/python" langgraph deep-agents pydantic-ai openai-agents adk claude-agent-sdk agent-framework
[ "${TEST_FULL:-0}" != 1 ] || quickstarts "$target/crewai/bin/python" crewai
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
