#!/bin/sh
# Starts `codex app-server` in the scratch folder of a run: with its own home, CODEX_HOME and working folder, and with
# the scripted model as its provider. Usage: start.sh PORT MODEL-URL SCRATCH [OPTION OF app-server]…
set -eu
here=$(cd "$(dirname "$0")" && pwd)
codex=${CODEX_BIN:-$here/node_modules/.bin/codex}
if [ ! -x "$codex" ]; then
    echo "there is no $codex: run \`npm install\` in $here first, or set CODEX_BIN" >&2
    exit 127
fi
# With your own home, a login shell could take seconds for each command.
export HOME="$3/home" CODEX_HOME="$3/codex" OPENAI_API_KEY=any
if ! mkdir -p "$HOME" "$CODEX_HOME" "$3/work" || ! : > "$CODEX_HOME/config.toml"; then
    echo "CODEX_HOME cannot be written: $CODEX_HOME" >&2
    exit 73
fi
cat > "$CODEX_HOME/config.toml" <<EOF
model = "gpt-5"
model_provider = "scripted"
approval_policy = "on-request"
sandbox_mode = "read-only"

[model_providers.scripted]
name = "scripted"
base_url = "$2/v1"
wire_api = "responses"
# Only one retry of a failing model, so that a failing turn ends soon.
request_max_retries = 0
stream_max_retries = 1
EOF
cd "$3/work"
port=$1
shift 3
exec "$codex" app-server --listen "ws://127.0.0.1:$port" "$@"
