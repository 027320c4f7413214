#!/usr/bin/env bash
# With TEST_FULL=1: `clients/dist` builds exactly the packages that the checks of the clients have tested. The last line
# counts.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
target=${CARGO_TARGET_DIR:-$PWD/target}
passed=0
failed=0
if [ "${TEST_FULL:-0}" = 1 ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    clients/dist "$folder" python typescript
    for tested in "$target"/client-check/packages/* "$target"/typescript-check/*.tgz; do
        if cmp "$tested" "$folder/$(basename "$tested")"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
