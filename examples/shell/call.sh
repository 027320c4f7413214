# One call of the gateway, for nodes that are shell scripts. Sourced.

# call METHOD PATH [BODY [HEADER…]]: the answer goes to $answer, its status to $status; 000 is no answer. What is safe
# to send again is sent again: everything here is known to the gateway by a name of its own.
call() {
  local more=() header try
  [ -n "${3:-}" ] && more=(-H 'Content-Type: application/json' --data-binary @-)
  for header in "${@:4}"; do more+=(-H "$header"); done
  for try in 1 2 4 8 0; do
    # Token and body go another way than by arguments, which everybody on the machine can read.
    answer=$(curl -sS --max-time 90 -w '\n%{http_code}' -X "$1" "${more[@]}" \
      -H @<(echo "Authorization: Bearer $COUNTERSIGN_TOKEN") "$COUNTERSIGN_URL$2" <<<"${3:-}") || true
    status=${answer##*$'\n'} answer=${answer%$'\n'*}
    case $status in 000 | 429 | 5??) [ "$try" = 0 ] || sleep "$try" ;; *) return ;; esac
  done
}

get() { jq -er "$1" <<<"$answer"; }
stop() { echo "$1: $status $(get .code 2>/dev/null)" >&2; exit 1; }
