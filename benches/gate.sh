#!/usr/bin/env bash
# Counts the engine's instructions, step by step, and compares them with benches/baseline.tsv.
#
#   benches/gate.sh             fails where a step takes more than the tolerance (TOLERANCE, 3 percent) above its baseline
#   benches/gate.sh --update    writes the baseline anew
#
# Needs valgrind. Instructions do not depend on what else the machine does, but on compiler and processor: write the
# baseline anew, in a change of its own, where those change.
set -euo pipefail
cd "$(dirname "$0")/.."

baseline=benches/baseline.tsv
tolerance=${TOLERANCE:-3}
command -v valgrind > /dev/null || { echo "missing: valgrind (Debian: apt-get install valgrind)" >&2; exit 2; }
case "${1:-}" in
    "" | --update) ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

engine=$(cargo bench --locked --no-run --bench engine 2>&1 | tee /dev/stderr | sed -n 's/.*Executable.*(\(.*\)).*/\1/p')
[ -x "$engine" ] || { echo "the benchmark was not built" >&2; exit 2; }

# Instructions of one run.
count() {
    local refs
    refs=$(valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "$engine" once "$@" 2>&1 > /dev/null |
        sed -n 's/.*I *refs: *//p')
    echo "${refs//,/}"
}

counted=$(mktemp)
trap 'rm -f "$counted"' EXIT
for step in $("$engine" names); do
    printf '%s\t%s\n' "$step" "$(($(count "$step") - $(count "$step" unrun)))" >> "$counted"
done

if [ "${1:-}" = --update ]; then
    cp "$counted" "$baseline"
    echo "written: $baseline"
    cat "$baseline"
    exit
fi

awk -F '\t' -v tolerance="$tolerance" -v file="$baseline" '
    FNR == NR { before[$1] = $2; next }
    FNR == 1 { printf "%-20s %14s %14s %8s\n", "step", "baseline", "now", "change" }
    !($1 in before) { printf "%-20s %14s %14d %8s  NEW: add it with --update\n", $1, "-", $2, "-"; worse++; next }
    {
        change = ($2 / before[$1] - 1) * 100
        said = ""
        if (change > tolerance) { said = "  WORSE"; worse++ }
        else if (change < -tolerance) said = "  better: keep it with --update"
        printf "%-20s %14d %14d %+7.1f%%%s\n", $1, before[$1], $2, change, said
    }
    END {
        if (worse) printf "\n%d step(s) cost over %s %% more than %s says, or stand not in it.\n", worse, tolerance, file
        exit worse > 0
    }
' "$baseline" "$counted"
