#!/usr/bin/env bash
# The planner: asks for what people have to decide, and waits.
#
#   planner.sh propose THREAD PARENT USER    prints {outcome, transition, review}
#   planner.sh wait TRANSITION               prints {approved, decision, receipt}
set -euo pipefail
source "$(dirname "$0")/call.sh"
case $1 in
propose)
  call POST "/v1/threads/$2/transitions" "$(jq -n --arg parent "$3" --argjson user "$4" '{node: "planner", $parent,
    patch: {requested_action: "refund", target_user_id: $user}, rationale: "The message asks for it."}')"
  case $status in 201 | 202) get '{outcome, transition, review: .review.url}' | jq -c . ;; *) stop "it was not judged" ;; esac
  ;;
wait)
  status=202
  while [ "$status" = 202 ]; do call GET "/v1/transitions/$2/decision" '' 'Prefer: wait=30'; done
  [ "$status" = 200 ] || stop "the decision could not be read"
  # It is what was asked for, or it is nothing.
  [ "$(get .transition_digest)" = "$2" ] || stop "a decision about something else"
  get '{approved, decision, receipt}' | jq -c .
  ;;
esac
