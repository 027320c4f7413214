# What every example stands on: a gateway of its own with the payments flow, tokens, and ada, who is asked. Sourced by
# their run.sh; needs curl and jq.
#
# `as_node NAME COMMAND…` runs one node as a process that has its own token, the gateway's address, what it is told on its
# command line, and nothing else of ours: no other token, no login to a database.

examples=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=${PROGRAM:-$examples/../target/debug/countersign}
command -v "$program" >/dev/null || { echo "there is no $program: cargo build, or name it in PROGRAM" >&2; exit 2; }
for tool in curl jq; do
  command -v "$tool" >/dev/null || { echo "this example needs $tool" >&2; exit 2; }
done

folder=$(mktemp -d)
password=$(head -c 18 /dev/urandom | base64)
# Nothing of the caller's says where the gateway's data is.
countersign() { env -i PATH="$PATH" HOME="$folder" "$program" --data "$folder/data" "$@"; }
step() { printf '\n— %s\n' "$*"; }
fail() { echo "$*" >&2; exit 1; }

leave() {
  kill "$gateway" 2>/dev/null
  wait "$gateway" 2>/dev/null
  rm -rf "$folder"
}

# Starts the gateway, and waits until it says where it is. `site` is for people, `url` for machines.
open_house() {
  env -i PATH="$PATH" HOME="$folder" "$program" --data "$folder/data" serve --listen "${LISTEN:-127.0.0.1:8490}" \
    >"$folder/said" 2>"$folder/log" &
  gateway=$!
  trap leave EXIT
  until site=$(sed -n 's/^Countersign listens at //p' "$folder/said") && [ -n "$site" ]; do
    kill -0 "$gateway" 2>/dev/null || fail "$(cat "$folder/log")"
    sleep 0.1
  done
  url=${site/localhost/127.0.0.1}
}

# The same with the payments flow, its tokens, and ada.
begin() {
  open_house
  countersign policy activate "$examples/payments/policy.toml" >/dev/null
  countersign user add ada --role reviewer --group finance --password-stdin <<<"$password" >/dev/null
  token host --role host
  token parser --role agent --node input_parser
  token planner --role agent --node planner
  token writer --role writer --node database_writer
}

flow=payments
token() { # NAME HOW…: kept in a file that no node is told of
  (umask 077 && countersign token add "$1" --owner platform --new-group --flow "$flow" "${@:2}" >"$folder/$1.token")
}

# Nothing secret stands on a command line, which everybody on a machine can read.
as_node() ( # NAME COMMAND…, with the variables too that `also` names
  as_node_here "$@"
)

# These two take the place of the shell that calls them: call them within ( ).
as_node_here() { # NAME COMMAND…
  COUNTERSIGN_URL=$url
  COUNTERSIGN_TOKEN=$(cat "$folder/$1.token")
  also="COUNTERSIGN_URL COUNTERSIGN_TOKEN ${also:-}" alone "${@:2}"
}

alone() { # COMMAND…, with PATH, HOME, and the variables that `also` names
  kept="PATH HOME ${also:-}"
  HOME=$folder
  while [ -n "${also+set}" ]; do unset also; done # each caller has one of its own
  for name in $(compgen -e); do
    case " $kept " in *" $name "*) ;; *) unset "$name" ;; esac
  done
  export $kept
  exec "$@"
}

# Somebody decides: whoever runs the example, in a browser, or, with APPROVE=1, ada by the same form.
somebody_decides() { # REVIEW DIGEST [VERDICT]
  if [ "${APPROVE:-}" = 1 ]; then
    decide "$1" "$2" "${3:-approve}"
  else
    printf 'Open %s\nand decide there. Sign in as ada, with the password %s\n' "$1" "$password"
  fi
}

page() { curl -sS -b "$folder/cookies" -c "$folder/cookies" -H "Origin: $site" "$@"; }
field() { sed -n "s/.*name=\"$1\" value=\"\([^\"]*\)\".*/\1/p" "$folder/page" | head -1; }

decide() { # REVIEW DIGEST VERDICT
  if [ ! -e "$folder/cookies" ]; then
    page "$site/sign-in" >"$folder/page"
    page -o /dev/null --data-urlencode "csrf=$(field csrf)" --data-urlencode username=ada \
      --data-urlencode "password=$password" --data-urlencode next=/ "$site/sign-in"
  fi
  page "$1" >"$folder/page"
  [ "$(field digest)" = "$2" ] || fail "the page shows another digest"
  local again name fields
  for again in '' yes; do # without scripts, a page asks once more
    fields=()
    for name in csrf digest nonce stage browser_check; do fields+=(--data-urlencode "$name=$(field "$name")"); done
    if [ "$(page -o "$folder/answer" -w '%{http_code}' "${fields[@]}" --data-urlencode "verdict=$3" \
      --data-urlencode "comment=Eva called." --data-urlencode "confirmed=$again" "$1/decision")" = 303 ]; then
      case $3 in approve) echo "ada approved it." ;; *) echo "ada denied it." ;; esac
      return
    fi
    mv "$folder/answer" "$folder/page"
  done
  fail "the vote was not counted"
}
