#!/bin/sh
# Runs every fuzz target for so many seconds each (default 10), one after the other.
#
# cargo-fuzz wants a nightly compiler for its sanitizer flags; RUSTC_BOOTSTRAP=1 makes the stable one
# take them. No sanitizer is asked for: the code under test has no unsafe block.
set -eu
seconds="${1:-10}"
cd "$(dirname "$0")"
command -v cargo-fuzz >/dev/null || {
    echo "cargo-fuzz is missing: cargo install cargo-fuzz --locked" >&2
    exit 2
}
export RUSTC_BOOTSTRAP=1
cargo run --release --quiet --example seeds
for target in record message certificate server client conversation; do
    seeds="corpus/$target"
    mkdir -p "$seeds"
    cargo fuzz run --sanitizer none "$target" "$seeds" -- \
        -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1
done
