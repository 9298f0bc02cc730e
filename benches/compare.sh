#!/usr/bin/env bash
# Measures Seam beside nginx and other proxies on this machine: benches/compare.sh [--help]. See docs/benchmarks.md.
# SEAM_BIN names a release binary that is already built. Needs a Rust toolchain, Python 3 and nginx.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v python3 > /dev/null || { echo "missing: python3 (Debian: apt-get install python3)" >&2; exit 2; }
case " $* " in *" --help "* | *" -h "*) exec python3 benches/compare.py --help ;; esac

target=${CARGO_TARGET_DIR:-$PWD/target}
cargo build --locked --release --manifest-path benches/compare/Cargo.toml --target-dir "$target/compare"
if [ -z "${SEAM_BIN:-}" ]; then
    cargo build --locked --release --target-dir "$target"
    SEAM_BIN=$target/release/seam
fi
exec env COMPARE_BIN="$target/compare/release" SEAM_BIN="$(realpath "$SEAM_BIN")" python3 benches/compare.py "$@"
