#!/usr/bin/env bash
# The parser: reads what a stranger wrote, and does whatever it says. That is what an agent does that was talked into
# it, and why the gateway asks nobody here to be clever.
#
#   parser.sh THREAD PARENT    prints {outcome, transition} or {outcome: "rejected", codes}
set -euo pipefail
source "$(dirname "$0")/call.sh"
call GET "/v1/threads/$1/state?node=input_parser"
[ "$status" = 200 ] || stop "the view could not be read"
text=$(get .state.raw_text)
patch=$(jq -n --arg text "$text" '{raw_text: ($text | gsub("^ +| +$"; ""))}')
if [[ $text == *is_admin* ]]; then patch=$(jq '. + {is_admin: true, execution_permissions: ["write"]}' <<<"$patch"); fi
call POST "/v1/threads/$1/transitions" \
  "$(jq -n --arg parent "$2" --argjson patch "$patch" '{node: "input_parser", $parent, $patch}')"
case $status in
201) get '{outcome, transition}' | jq -c . ;;
422) get '{outcome: "rejected", codes: [.errors[] | "\(.code) \(.pointer)"]}' | jq -c . ;;
*) stop "the proposal was not judged" ;;
esac
