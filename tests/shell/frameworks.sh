#!/usr/bin/env bash
# The quickstarts of agent frameworks, and the situations in which their calls must or must not run, with the packages of
# tests/aap. With TEST_FULL=1 also those of CrewAI, whose packages take 1 GB. The last line counts.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
target=${CARGO_TARGET_DIR:-$PWD/target}
export COUNTERSIGN_BIN=$target/debug/countersign PYTHONDONTWRITEBYTECODE=1

passed=0
failed=0
counted() { # PYTHON SCRIPT FRAMEWORK…
    local output
    output=$("$1" "tests/aap/$2" "${@:3}")
    echo "$output"
    if [[ $(tail -n 1 <<<"$output") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
    else
        failed=$((failed + 1))
    fi
}

for script in quickstarts.py scenarios.py; do
    counted "$target/aap/bin/python" $script langgraph deep-agents pydantic-ai openai-agents adk claude-agent-sdk agent-framework
    [ "${TEST_FULL:-0}" != 1 ] || counted "$target/crewai/bin/python" $script crewai
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
