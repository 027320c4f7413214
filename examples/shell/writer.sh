#!/usr/bin/env bash
# The writer: asks, writes by the database's guard what it was shown, and says so. The only node with the database.
# Begin it again after a crash, with the same WRITE_ID: what is in the database is confirmed, and not written again.
#
#   DATABASE=FILE writer.sh THREAD TRANSITION RECEIPT WRITE_ID    prints {outcome, version}
set -euo pipefail
here=$(dirname "$0")
source "$here/call.sh"
thread=$1 transition=$2 receipt=$3 write_id=$4
sql() { python3 "$here/sql.py" "$DATABASE" "$@"; }

# By what the job itself says, and not by a receipt, which somebody else may have put there.
is_written() {
  [ "$(sql 'SELECT count(*) FROM countersign_guard WHERE thread = :thread AND transition = :transition
      AND write_id = :write_id AND wrote = 1' thread="$thread" transition="$transition" write_id="$write_id")" = 1 ]
}

confirm() {
  call POST "/v1/writes/$write_id/confirm" "$(jq -n --arg ref "$write_id" '{result: {result_ref: $ref}}')"
  [ "$status" = 200 ] || stop "it is written, and could not be confirmed: run this again"
  get '{outcome, version}' | jq -c .
}

if is_written; then
  confirm
  exit
fi
call POST /v1/verify "$(jq -n --arg thread "$thread" --arg transition "$transition" --arg receipt "$receipt" \
  --arg write_id "$write_id" '{$thread, $transition, $receipt, $write_id}')"
# Only this is a yes.
[ "$status" = 200 ] && [ "$(get .allow)" = true ] || stop "not let through"
# The id of the receipt that the gateway used, from its own answer. The job's receipt may have been replaced since, and
# nothing here checks its signature.
id=$(get .verification | cut -d. -f2 | tr '_-' '/+' | awk '{ while (length($0) % 4) $0 = $0 "="; print }' | base64 -d |
  jq -er --arg transition "$transition" '.receipt // $transition')
if sql 'INSERT INTO countersign_guard (id, thread, transition, write_id, fence, lease_expires_at)
       VALUES (:id, :thread, :transition, :write_id, :fence, :lease);
     INSERT INTO payments (thread, user_id, amount) VALUES (:thread, :user, :amount);
     UPDATE countersign_guard SET open = NULL WHERE id = :id AND open = 1' \
  id="$id" thread="$thread" transition="$transition" write_id="$write_id" fence="$(get .fence)" lease="$(get .lease_expires_at)" \
  user="$(get .view.target_user_id)" amount="$(get .view.payment.amount)"; then
  confirm
elif is_written; then
  confirm # another run of this very job was faster
else
  call POST "/v1/writes/$write_id/abort" '{"reason": "the database refused it"}'
  stop "nothing was written"
fi
