#!/usr/bin/env bash
# The rate of the frame target against that of a target that only parses to `serde_json::Value`: the same seeds, the same
# number of executions, taken in turns; user time, so that a busy machine does not blur it. The goal is 0.8.
set -euo pipefail
cd "$(dirname "$0")/.."
RUNS="${RUNS:-500000}"
ROUNDS="${ROUNDS:-5}"
cargo run --quiet --example fuzz_seeds >/dev/null
cargo fuzz build --sanitizer none frame
cargo fuzz build --sanitizer none frame_value
built="fuzz/target/$(rustc -vV | sed -n 's/^host: //p')/release"
TIMEFORMAT=%U
for round in $(seq "$ROUNDS"); do
  for target in frame frame_value; do
    seconds="$({ time "$built/$target" "fuzz/corpus/$target" -runs="$RUNS" -seed="$round" -max_len=4096 >/dev/null 2>&1; } 2>&1)"
    echo "$target $seconds"
  done
done | awk -v runs="$RUNS" '
  { rate = runs / $2; rates[$1, ++count[$1]] = rate }
  END {
    for (round = 1; round <= count["frame"]; round++)
      printf "frame %8.0f/s  frame_value %8.0f/s  quotient %.2f\n", rates["frame", round], rates["frame_value", round], rates["frame", round] / rates["frame_value", round]
  }'
