#!/usr/bin/env bash
# Two builds of Seam on one Redis: whichever serves a receiver's request, the upstream gets the same bytes.
#
#   tests/releases.sh [COMMIT]   the older build; without one the commit that began to share records
#
# Needs redis-server; builds the older commit once, into target/releases.
set -euo pipefail
cd "$(dirname "$0")/.."

older=$(git rev-parse --short "${1:-15eb5a7}")
builds=$PWD/target/releases
mkdir -p "$builds"

command -v redis-server > /dev/null || { echo "SKIPPED: no redis-server, two releases were not held against each other"; exit 0; }

# The target folder is shared: crates that both builds need are built once.
build() { # folder, name
    if [ ! -x "$builds/$2" ]; then
        CARGO_TARGET_DIR=$PWD/target cargo build --locked --quiet --bin seam --manifest-path "$1/Cargo.toml"
        cp target/debug/seam "$builds/$2"
    fi
}
if [ ! -x "$builds/$older" ]; then
    git worktree add --force --detach "$builds/source" "$older" > /dev/null 2>&1
    build "$builds/source" "$older"
    git worktree remove --force "$builds/source"
fi
rm -f "$builds/now"
build "$PWD" now

python3 tests/releases.py "$builds/$older" "$builds/now"
