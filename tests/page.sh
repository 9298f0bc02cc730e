#!/usr/bin/env bash
# The page of the admin listener in a real browser: a running Seam, a scripted upstream, transfers, and Chromium that
# walks from the list to a record and back. Screenshots go to target/page/.
#
#     tests/page.sh [--install]
#
# --install gets what is missing: Debian's chromium (needs root) and npm's playwright-core, below target/page. Without it,
# and where they cannot be had, this says so loudly and ends well. A browser of one's own: CHROMIUM=/path.
set -euo pipefail
cd "$(dirname "$0")/.."
home=$PWD/target/page
mkdir -p "$home"
browser=${CHROMIUM:-$(command -v chromium || true)}

if [ "${1:-}" = --install ]; then
    [ -n "$browser" ] || { apt-get install -y -q chromium && browser=$(command -v chromium); }
    [ -d "$home/node_modules/playwright-core" ] || npm install --silent --no-fund --no-audit --prefix "$home" playwright-core@1.56
fi
if [ -z "$browser" ] || [ ! -d "$home/node_modules/playwright-core" ]; then
    echo "SKIPPED: no chromium, or no playwright-core in $home (tests/page.sh --install gets them)"
    exit 0
fi
if [ -z "${SEAM_BIN:-}" ]; then
    cargo build --locked
    SEAM_BIN=$PWD/target/debug/seam
fi
SEAM_BIN=$SEAM_BIN CHROMIUM=$browser SHOTS=$home exec node tests/page/walk.mjs
