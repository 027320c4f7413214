#!/usr/bin/env bash
# Each example by its one command, with ada approving: by the form, or, where a run is told to be decided BY somebody, in a real
# Chromium, by the link and the login that it prints. What it shows is looked at. The last line counts.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
target=${CARGO_TARGET_DIR:-$PWD/target}
export PROGRAM=$target/debug/countersign LISTEN=127.0.0.1:0 APPROVE=1
# What no node may be given, whatever whoever runs an example has lying about.
export DATABASE_URL=canary PGPASSWORD=canary COUNTERSIGN_DATABASE=postgres://canary AWS_SECRET_ACCESS_KEY=canary

passed=0
failed=0
holds() { # CLAIM COMMAND…
  if "${@:2}"; then passed=$((passed + 1)); else failed=$((failed + 1)) && printf 'failed: %s\n' "$1"; fi
}
says() { grep -qF -- "$1" <<<"$said"; }
ends() { [ "$(tail -n 1 <<<"$said")" = "$1" ]; }

run() { # NAME [VARIABLE…]: shows all of it only if it fails; the parser is given these, too, which are no secrets
  # shellcheck disable=SC2086 # a program and its argument
  said=$(timeout 240 ${BY:-} "examples/$1/run.sh" 2>&1)
  status=$?
  [ "$status" = 0 ] || echo "$said"
  holds "examples/$1 succeeds" [ "$status" = 0 ]
  # Between the step's title and the next empty line.
  given=$(sed -n "/What the parser's process is given/,/^\$/p" <<<"$said" | tail -n +2 | tr -d ' ' | paste -sd ' ')
  holds "examples/$1: the parser has its token and no other, and no login to a database" \
    [ "$(tr ' ' '\n' <<<"$given" | grep -v '^_\?$' | paste -sd ' ')" = "$(
      printf '%s\n' COUNTERSIGN_TOKEN COUNTERSIGN_URL HOME PATH "${@:2}" | sort | paste -sd ' ')" ]
  holds "examples/$1: what was injected is rejected" says 'write_not_allowed /is_admin'
  holds "examples/$1: nothing was given away" [ -z "$(grep -oE 'canary|cs_[A-Za-z0-9_-]{8}' <<<"$said")" ]
}

# Packages of npm for checking types, exactly those of the committed lock file.
tsc() {
  local home=$target/example-typescript
  if ! cmp -s examples/typescript/package-lock.json "$home/package-lock.json"; then
    rm -rf "$home" && mkdir -p "$home" && cp examples/typescript/package{,-lock}.json "$home" &&
      (cd "$home" && npm ci --ignore-scripts --no-audit --no-fund --silent) || rm -f "$home/package-lock.json"
  fi
  echo "$home/node_modules/.bin/tsc"
}

run shell
holds "examples/shell: the row is there once" ends "order-17 42 40"
holds "examples/shell: who has the file and no yes is refused" says 'only by a transaction that has passed the guard'
holds "examples/shell: a forged receipt of an earlier write is not taken for this write" python3 tests/shell/forged.py shell

TSC=$(tsc)
TSC=$TSC run typescript
holds "examples/typescript: the money moved once" ends '{"transfer":"transfer-1","order":"{\"user\":42,\"amount\":40}"}'
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
"$TSC" -p examples/typescript --outDir "$built" --typeRoots "$(dirname "$TSC")/../@types"
echo '{"type": "module"}' >"$built/package.json"
holds "examples/typescript: a forged receipt of an earlier write is not taken for this write" \
  python3 tests/shell/forged.py typescript "$built/writer.js" "$built/bank.js"

APPROVE='' BY="python3 tests/shell/deciding.py" \
  PYTHON=$target/client/bin/python PYTHONPATH=$target/client-check/installed \
  run langgraph_payments PYTHONDONTWRITEBYTECODE PYTHONPATH
holds "examples/langgraph_payments: somebody approved in a browser, twice, what that browser had recomputed" \
  [ "$(grep -cE '^in Chromium: (Recomputed in this browser: matches|ada approved it)' <<<"$said")" = 4 ]
holds "examples/langgraph_payments: who has no password is not let into the database" says 'no password supplied'
holds "examples/langgraph_payments: the writer was killed twice" [ "$(grep -c 'writer: it died' <<<"$said")" = 2 ]
holds "examples/langgraph_payments: each row is there once" \
  [ "$(tail -n 2 <<<"$said" | paste -sd ';')" = "order-17 42 40 EUR;order-18 43 40 EUR" ]

# Its parts are other nodes, and what was injected is held rather than rejected.
said=$(timeout 120 examples/fork_join/run.sh 2>&1)
status=$?
[ "$status" = 0 ] || echo "$said"
holds "examples/fork_join succeeds" [ "$status" = 0 ]
holds "examples/fork_join: nothing of a branch is written" says "for the web's branch: branch"
holds "examples/fork_join: what was injected is held" says '"reasons":["`recipient` is protected and requires approval"]'
holds "examples/fork_join: the rest commits and is published, whatever finished first" \
  ends '{"to":"board@example.org","findings":["law","press"]}'
holds "examples/fork_join: nothing was given away" [ -z "$(grep -oE 'canary|cs_[A-Za-z0-9_-]{8}' <<<"$said")" ]

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
