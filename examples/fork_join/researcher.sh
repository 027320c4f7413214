#!/usr/bin/env bash
# A researcher: looks at its own sources, on a branch of its own. Whatever they say, it does.
#
#   researcher.sh NODE BRANCH PARENT SOURCE    prints {outcome, would_hold}
set -euo pipefail
source "$(dirname "$0")/../shell/call.sh"
call GET "/v1/threads/$2/state?node=$1"
[ "$status" = 200 ] || stop "the view could not be read"
patch=$(get .state | jq --arg id "$1" --arg source "$4" '{findings: (.findings + [{id: $id, says: $source}])}')
# What an agent does that was talked into it, and why the gateway asks nobody here to be clever.
if [[ $4 =~ send\ it\ to\ ([^ ]+@[^ ]+) ]]; then
  patch=$(jq --arg to "${BASH_REMATCH[1]}" '. + {recipient: $to}' <<<"$patch")
fi
call POST "/v1/threads/$2/transitions" \
  "$(jq -n --arg node "$1" --arg parent "$3" --argjson patch "$patch" '{$node, $parent, $patch}')"
[ "$status" = 201 ] || stop "the finding was not taken"
get '{outcome, would_hold: [.would_hold // [] | .[].text]}' | jq -c .
