#!/usr/bin/env bash
# From a proposal to a verified write, with curl and jq: what `countersign demo` plays, by hand.
#
#   examples/walkthrough.sh [PROGRAM]
#
# PROGRAM is the countersign binary (default: target/debug/countersign). The walkthrough starts `serve` on a folder
# and a port of its own (LISTEN, default 127.0.0.1:8490), approves through the reviewer's real form, writes one row
# of a real SQLite table, and ends the gateway. It needs curl, jq and python3 (for SQLite).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/../target/debug/countersign}
listen=${LISTEN:-127.0.0.1:8490}
for tool in curl jq python3; do
  command -v "$tool" >/dev/null || { echo "the walkthrough needs $tool" >&2; exit 2; }
done
folder=$(mktemp -d)
cs() { "$program" --data "$folder/data" "$@"; }
step() { printf '\n— %s\n' "$*"; }

# ── The gateway ────────────────────────────────────────────────────────────────────────────────────────────────
"$program" --data "$folder/data" serve --listen "$listen" >"$folder/serve.out" 2>"$folder/serve.log" &
gateway=$!
trap 'kill "$gateway" 2>/dev/null; wait "$gateway" 2>/dev/null; rm -rf "$folder"' EXIT
until site=$(sed -n 's/^Countersign listens at //p' "$folder/serve.out") && [ -n "$site" ]; do
  kill -0 "$gateway" 2>/dev/null || { cat "$folder/serve.log" >&2; exit 2; }
  sleep 0.1
done
api=${site/localhost/127.0.0.1} # machines need no name; people's forms must come from $site itself

step "A flow, a reviewer, and a token each for host, agent and writer"
cs policy activate "$here/payments/policy.toml"
echo 'correct horse battery staple' | cs user add ada --role reviewer --group finance --password-stdin
host=$(cs token add order-app --role host --owner platform --new-group --flow payments)
agent=$(cs token add planner --role agent --owner platform --new-group --flow payments --node planner)
writer=$(cs token add ledger --role writer --owner platform --new-group --flow payments --node database_writer)

# call TOKEN METHOD PATH [BODY]: the answer goes to $answer, the status to $status
call() {
  local body=()
  [ $# -ge 4 ] && body=(-H 'Content-Type: application/json' -d "$4")
  answer=$(curl -sS -o - -w '\n%{http_code}' -X "$2" -H "Authorization: Bearer $1" "${body[@]}" "$api$3")
  status=${answer##*$'\n'}
  answer=${answer%$'\n'*}
}
must() { # STATUS: the story cannot go on with another
  [ "$status" = "$1" ] || { echo "expected $1, got $status: $answer" >&2; exit 1; }
}
get() { jq -r "$1" <<<"$answer"; }

step "The host starts a thread"
call "$host" POST /v1/threads '{"flow": "payments", "thread": "order-17",
  "state": {"raw_text": "Please refund 40 EUR.", "requested_action": "none", "target_user_id": 17,
            "payment": {"amount": 40, "currency": "EUR"}},
  "context": {"title": "Order 17", "on_behalf_of": "Eva Example"}}'
must 201
head=$(get .transition)

propose() { # PATCH: as the planner, on the head
  call "$agent" POST /v1/threads/order-17/transitions \
    "$(jq -n --arg parent "$head" --argjson patch "$1" '{node: "planner", parent: $parent, patch: $patch}')"
}

step "A harmless change commits by itself"
propose '{"requested_action": "refund"}'
must 201
head=$(get .transition)

step "An injected is_admin is rejected"
propose '{"is_admin": true}'
must 422
get '.errors[0].code'

step "A new target_user_id is held"
propose '{"target_user_id": 42}'
must 202
transition=$(get .transition)
review=$(get .review.url)
get '.reasons[].text'

# ── The reviewer, through the real pages ───────────────────────────────────────────────────────────────────────
page() { curl -sS -b "$folder/cookies" -c "$folder/cookies" "$@"; }
form() { page -H "Origin: $site" "$@"; }
field() { # NAME: the value of the first hidden field of that name
  sed -n "s/.*name=\"$1\" value=\"\([^\"]*\)\".*/\1/p" "$folder/page" | head -1
}

step "Ada signs in, reads the review and approves"
page "$site/sign-in" >"$folder/page"
form -o /dev/null --data-urlencode "csrf=$(field csrf)" --data-urlencode username=ada \
  --data-urlencode 'password=correct horse battery staple' --data-urlencode next=/ "$site/sign-in"
page "$review" >"$folder/page"
decide() { # what the form on the page carries, and more
  local fields=()
  for name in csrf digest nonce stage browser_check; do
    fields+=(--data-urlencode "$name=$(field "$name")")
  done
  form -o "$folder/answer" -w '%{http_code}' "${fields[@]}" --data-urlencode verdict=approve \
    --data-urlencode "comment=Eva called." "$@" "$review/decision"
}
[ "$(field digest)" = "$transition" ] || { echo "the page shows another digest" >&2; exit 1; }
decided=$(decide)
if [ "$decided" = 200 ]; then # without scripts, a page asks once more
  mv "$folder/answer" "$folder/page"
  decided=$(decide --data-urlencode confirmed=yes)
fi
[ "$decided" = 303 ] || { echo "the vote was not counted: $decided" >&2; exit 1; }

step "The agent hears of it"
answer=$(curl -sS -H "Authorization: Bearer $agent" -H 'Prefer: wait=30' "$api/v1/transitions/$transition/decision")
[ "$(get .approved)" = true ]
get '{decision, version, reviewers}'
receipt=$(get .receipt)

# ── The writer ─────────────────────────────────────────────────────────────────────────────────────────────────
verify() { # WRITE_ID
  call "$writer" POST /v1/verify "$(jq -n --arg transition "$transition" --arg receipt "$receipt" --arg id "$1" \
    '{thread: "order-17", transition: $transition, receipt: $receipt, write_id: $id}')"
}
ledger() { # SQL [PARAMETER…]
  python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
with db:
    for row in db.execute(sys.argv[2], sys.argv[3:]):
        print(*row)' "$folder/ledger.db" "$@"
}
ledger 'CREATE TABLE payments (write_id TEXT PRIMARY KEY, fence INTEGER UNIQUE, target_user_id INTEGER, amount INTEGER)'

step "The writer is let through, writes, and confirms"
verify write-1
must 200
ledger 'INSERT INTO payments VALUES (?, ?, ?, ?)' write-1 "$(get .fence)" "$(get .view.target_user_id)" "$(get .view.payment.amount)"
call "$writer" POST /v1/writes/write-1/confirm '{"result": {"result_ref": "write-1"}}'
must 200
get .outcome

step "The same again is denied, under either name"
verify write-1
must 403
get .code
verify write-2
must 403
get .code

# ── Trusting nobody ────────────────────────────────────────────────────────────────────────────────────────────
step "The receipt, checked offline; the database, replayed beside the running gateway"
call "$host" GET /v1/threads/order-17/chain
must 200
jq -j --arg it "$transition" '.entries[] | select(.transition == $it) | .entry' <<<"$answer" >"$folder/entry.jwt"
jq --arg it "$transition" '.entries[] | select(.transition == $it) | .statement' <<<"$answer" >"$folder/statement.json"
curl -sS "$api/.well-known/jwks.json" >"$folder/jwks.json"
"$program" verify "$receipt" --jwks "$folder/jwks.json" --entry "$folder/entry.jwt" --statement "$folder/statement.json"
cs audit

step "The row, written once"
rows=$(ledger 'SELECT write_id, target_user_id, amount FROM payments')
echo "$rows"
[ "$rows" = "write-1 42 40" ]
