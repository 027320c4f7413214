#!/usr/bin/env bash
# The host: begins the piece of work.
#
#   host.sh THREAD QUESTION    prints {thread, transition}
set -euo pipefail
source "$(dirname "$0")/../shell/call.sh"
call POST /v1/threads "$(jq -n --arg thread "$1" --arg question "$2" '{flow: "briefing", $thread,
  state: {$question, findings: [], recipient: "board@example.org"}, context: {title: "A brief for the board"}}')"
[ "$status" = 201 ] || stop "the thread was not made"
get '{thread, transition}' | jq -c .
