#!/bin/bash -eu
# Builds every fuzz target for ClusterFuzzLite and OSS-Fuzz: binary, seeds and dictionary of each go to $OUT.
cd "$SRC/frameproof"
# Seeds and dictionaries are made from the protocols; nothing of them is committed.
RUSTFLAGS="" cargo run --quiet --example fuzz_seeds
cargo fuzz build -O --debug-assertions
built="fuzz/target/$(rustc -vV | sed -n 's/^host: //p')/release"
for target in $(cargo fuzz list); do
  cp "$built/$target" "$OUT/"
  # The seeds of frames serve all three targets that read a frame.
  case "$target" in
    frame | frame_agrees | frame_value) folders="fuzz/seeds/frame fuzz/seeds/message_*" ;;
    *) folders="fuzz/seeds/$target" ;;
  esac
  corpus="$(mktemp -d)"
  for folder in $folders "fuzz/regressions/$target"; do
    [ -d "$folder" ] || continue
    for file in "$folder"/*; do
      cp "$file" "$corpus/$(basename "$folder")-$(basename "$file")"
    done
  done
  (cd "$corpus" && zip -q -r "$OUT/${target}_seed_corpus.zip" .)
  rm -r "$corpus"
  if [ -f "fuzz/dictionaries/$target.dict" ]; then
    cp "fuzz/dictionaries/$target.dict" "$OUT/"
  fi
done
