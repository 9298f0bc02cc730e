#!/usr/bin/env bash
# Every client in front of every server: prints the matrix, and writes it to docs/compatibility.md. Takes a few minutes.
# The captures of real clients are read from ../shared/captures where that folder stands beside the checkout; without them
# our own conversations are played and the page is left as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
UPDATE_DOCS=1 cargo test --locked --test it -- --ignored --exact matrix::the_whole_matrix --nocapture
