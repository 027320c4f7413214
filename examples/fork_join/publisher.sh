#!/usr/bin/env bash
# The writer: asks before it sends, sends what it is shown, and says so.
#
#   publisher.sh THREAD TRANSITION WRITE    prints what was sent, or the code of the no
set -euo pipefail
source "$(dirname "$0")/../shell/call.sh"
call POST /v1/verify "$(jq -n --arg thread "$1" --arg transition "$2" --arg write "$3" \
  '{$thread, $transition, write_id: $write}')"
if [ "$status" != 200 ]; then get .code; exit; fi
sent=$(get '.view | {to: .recipient, findings: [.findings[].id]}' | jq -c .)
call POST "/v1/writes/$3/confirm" '{"result": {"published": true}}'
[ "$status" = 200 ] || stop "it was sent, and could not be confirmed"
echo "$sent"
