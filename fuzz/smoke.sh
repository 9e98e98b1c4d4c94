#!/usr/bin/env bash
# A bounded run of every fuzz target, from the seeds, on the toolchain at hand. `fuzz/smoke.sh [TARGET…]`; `--build` only builds them.
# RUNS: executions a target (default 20000); SECONDS_EACH: a bound on its time (default 30); SANITIZER: none or address. SEED: of the inputs.
set -euo pipefail
cd "$(dirname "$0")/.."
RUNS="${RUNS:-20000}"
SECONDS_EACH="${SECONDS_EACH:-30}"
SANITIZER="${SANITIZER:-none}"
SEED="${SEED:-1}"
# All at once: cargo then builds what they share once.
cargo fuzz build --sanitizer "$SANITIZER"
[ "${1:-}" = --build ] && exit
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  mapfile -t targets < <(cargo fuzz list)
fi
# Released, as the tests are: what they have built is not built again in another profile.
cargo run --quiet --release --example fuzz_seeds >/dev/null
for target in "${targets[@]}"; do
  dictionary=()
  if [ -f "fuzz/dictionaries/$target.dict" ]; then
    dictionary=("-dict=fuzz/dictionaries/$target.dict")
  fi
  # Finds of a smoke are thrown away: the corpus that somebody grows is theirs.
  finds="$(mktemp -d)"
  printf '%-20s ' "$target"
  cargo fuzz run --sanitizer "$SANITIZER" "$target" "$finds" "fuzz/corpus/$target" -- \
    -seed="$SEED" -runs="$RUNS" -max_total_time="$SECONDS_EACH" -max_len=4096 -timeout=20 -rss_limit_mb=2048 \
    -print_final_stats=1 "${dictionary[@]}" >"$finds.log" 2>&1 || {
      tail -n 40 "$finds.log"
      # Last, what a log that is cut keeps: the reason, and the input where it is small.
      for input in fuzz/artifacts/"$target"/*; do
        [ "$input" -nt "$finds" ] && [ "$(wc -c <"$input")" -le 4096 ] && { echo "$input:"; base64 "$input"; }
      done
      grep -A 3 -E 'panicked|ERROR: libFuzzer' "$finds.log" || true
      echo "$target found something: see fuzz/artifacts/$target and docs/fuzzing.md"
      exit 1
    }
  grep -E '^Done|stat::(number_of_executed_units|average_exec_per_sec)' "$finds.log" | tr -s ' \n' ' '
  echo
  rm -rf "$finds" "$finds.log"
done
