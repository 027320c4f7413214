#!/usr/bin/env bash
# The host: begins a piece of work, named after its own job, with what is true at its beginning.
#
#   host.sh THREAD MESSAGE    prints {thread, transition}
set -euo pipefail
source "$(dirname "$0")/call.sh"
call POST /v1/threads "$(jq -n --arg thread "$1" --arg text "$2" '{flow: "payments", $thread,
  state: {raw_text: $text, requested_action: "none", target_user_id: 17, payment: {amount: 40, currency: "EUR"}},
  context: {title: "A refund", on_behalf_of: "Eva Example"}}')"
[ "$status" = 201 ] || stop "the thread was not made"
get '{thread, transition}' | jq -c .
