#!/usr/bin/env bash
# Who leads: makes a branch for each researcher, and joins what they found.
#
#   lead.sh fork THREAD NAME…                prints {transition, branches: {name: {thread, transition}}}
#   lead.sh join THREAD PARENT NAME…         prints {outcome, transition, review, reasons}
#   lead.sh wait TRANSITION                  prints {approved, decision}
set -euo pipefail
source "$(dirname "$0")/../shell/call.sh"
names() { jq -n '$ARGS.positional' --args -- "$@"; }
case $1 in
fork)
  call POST "/v1/threads/$2/forks" "$(jq -n --argjson branches "$(names "${@:3}")" '{node: "lead", $branches}')"
  [ "$status" = 201 ] || stop "the branches were not made"
  get '{transition, branches: (.branches | map({(.name): {thread, transition}}) | add)}' | jq -c .
  ;;
join)
  call POST "/v1/threads/$2/joins" "$(jq -n --arg parent "$3" --argjson branches "$(names "${@:4}")" \
    '{node: "lead", $parent, $branches, strategy: "union", rationale: "What the researchers found."}')"
  case $status in 201 | 202) ;; *) stop "the join was not judged" ;; esac
  get '{outcome, transition, review: .review.url, reasons: [.reasons // [] | .[].text]}' | jq -c .
  ;;
wait)
  status=202
  while [ "$status" = 202 ]; do call GET "/v1/transitions/$2/decision" '' 'Prefer: wait=30'; done
  [ "$status" = 200 ] && [ "$(get .transition_digest)" = "$2" ] || stop "the decision could not be read"
  get '{approved, decision}' | jq -c .
  ;;
esac
