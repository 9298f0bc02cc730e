#!/usr/bin/env python3
"""Recorded conversations, played by a real client through Seam.

    tests/clients/recorded.py [--cuts N] [--direct]

Each cut of ../shared/transcripts/transfers.jsonl is played by the OpenAI Agents SDK as two agents with a transfer put
in: plain, streamed, and with `remove_all_tools` on the transfer. Upstream plays the record and refuses broken lists.
A run is good when the client plays the record to its end (`whole`) and upstream found no fault.

Printed last: of the values that the receiver will need next (arguments of its later calls that a tool or the customer
had said before the transfer), how many stand in the receiver's first request with `remove_all_tools`; --direct prints
the same without Seam.
"""
import argparse, json, os, re, subprocess, sys, tempfile, time, urllib.request
from concurrent.futures import ThreadPoolExecutor

from run import DRIVERS, QUIET, SEAM, VENVS, Process, free_port, text

TRANSCRIPTS = os.path.join(os.path.dirname(DRIVERS), "transcripts")


def load():
    rows = {}
    for name in sorted(os.listdir(TRANSCRIPTS)):
        if name.endswith(".jsonl") and name != "transfers.jsonl":
            for line in open(os.path.join(TRANSCRIPTS, name), encoding="utf-8"):
                row = json.loads(line)
                rows[row["id"]] = row
    with open(os.path.join(TRANSCRIPTS, "transfers.jsonl"), encoding="utf-8") as lines:
        cuts = [json.loads(line) for line in lines]
    return rows, cuts


def scalars(value):
    if isinstance(value, dict):
        for v in value.values():
            yield from scalars(v)
    elif isinstance(value, list):
        for v in value:
            yield from scalars(v)
    elif not isinstance(value, bool) and value is not None:
        yield str(value)


def stands_in(value, said):
    return re.search(r"(?<![A-Za-z0-9_.])" + re.escape(value.lower()) + r"(?![A-Za-z0-9_]|\.\d)", said) is not None


def worth(v):
    return 3 <= len(v) <= 60 and len(v.split()) <= 6 and (any(c.isdigit() for c in v) or len(v) >= 5)


def all_text(messages):
    out = []
    for m in messages:
        out.append(text(m.get("content")) if m.get("content") else "")
        out += [c["function"]["name"] + " " + c["function"]["arguments"] for c in m.get("tool_calls") or []]
    return "\n".join(out)


def needed(messages, cut):
    known = all_text([m for m in messages[:cut] if m["role"] in ("tool", "user")]).lower()
    need = set()
    for m in messages[cut:]:
        for call in m.get("tool_calls") or []:
            try:
                arguments = json.loads(call["function"]["arguments"] or "{}")
            except ValueError:
                continue
            need |= {v for v in scalars(arguments) if worth(v) and stands_in(v, known)}
    return need


def play(row, cut, flags, direct):
    with tempfile.TemporaryDirectory() as folder:
        got = os.path.join(folder, "got.jsonl")
        upstream = [sys.executable, os.path.join(DRIVERS, "recorded_upstream.py"), "--port", "0", "--transcripts", TRANSCRIPTS,
                    "--id", row["id"], "--cut", str(cut), "--strict", "--record", got]
        with Process(upstream) as up:
            port = int(up.first)
            listen, admin = free_port(), free_port()
            seam = None
            if not direct:
                env = {"PATH": os.environ["PATH"], "SEAM_UPSTREAM": f"http://127.0.0.1:{port}/v1", "SEAM_LOG": "warn",
                       "SEAM_LISTEN": f"127.0.0.1:{listen}", "SEAM_ADMIN_LISTEN": f"127.0.0.1:{admin}"}
                seam = Process([SEAM], env, wait_for="ready").__enter__()
                for _ in range(200):
                    try:
                        urllib.request.urlopen(f"http://127.0.0.1:{admin}/ready", timeout=1)
                        break
                    except OSError:
                        time.sleep(0.02)
            try:
                run = subprocess.run(
                    [os.path.join(VENVS, "oai", "bin", "python"), os.path.join(DRIVERS, "drive_openai_agents_recorded.py"),
                     "--transcripts", TRANSCRIPTS, "--id", row["id"], "--cut", str(cut), *flags],
                    capture_output=True, text=True, timeout=240, cwd=DRIVERS,
                    env={**os.environ, **QUIET, "PYTHONDONTWRITEBYTECODE": "1",
                         "OPENAI_BASE_URL": f"http://127.0.0.1:{port if direct else listen}/v1"})
            finally:
                if seam:
                    seam.__exit__()
        seen = [json.loads(line) for line in open(got, encoding="utf-8")]
        first = next((r["body"]["messages"] for r in seen if "You are the specialist." in text(r["body"]["messages"][0]["content"])), None)
        faults = [f for r in seen for f in r["faults"]]
        whole = run.returncode == 0 and run.stdout.rstrip().endswith("whole")
        briefed = first is not None and "[Seam handoff " in text(first[0]["content"])
        why = "" if whole else (run.stderr.strip().splitlines() or ["no output"])[-1][:200]
        return whole, faults, first, briefed, why


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--cuts", type=int, default=24)
    ap.add_argument("--direct", action="store_true", help="without Seam, for comparison")
    a = ap.parse_args()
    if not os.path.isdir(TRANSCRIPTS):
        print("SKIPPED: the recorded conversations (../shared/transcripts) are not beside this checkout")
        return 0
    if not os.path.exists(os.path.join(VENVS, "oai", "bin", "python")):
        print("SKIPPED: tests/clients/run.py --install --only openai-agents first")
        return 0
    rows, cuts = load()
    # Spread over the sources, those first whose receiver needs something.
    cuts = [(rows[c["transcript_id"]], c["cut"]) for c in cuts]
    cuts = [(r, c) for r, c in cuts if needed(r["messages"], c) and any(m["role"] == "assistant" for m in r["messages"][c:])]
    step = max(1, len(cuts) // a.cuts)
    cuts = cuts[::step][: a.cuts]
    jobs = [(r, c, flags) for r, c in cuts for flags in ([], ["--stream"], ["--remove-tools"])]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda job: play(*job, a.direct), jobs))
    bad = need = carried = broken = 0
    for (row, cut, flags), (whole, faults, first, briefed, why) in zip(jobs, results):
        good = whole and not faults and first is not None and (briefed or a.direct)
        if not good and not a.direct and not play(row, cut, flags, True)[0]:
            # Call ids that come twice: this client keeps one of the two, and its own list is refused.
            print(row["id"], cut, " ".join(flags) or "plain", "SKIPPED: the client's list is refused without Seam too")
            broken += 1
            continue
        bad += not good
        if not good:
            print(row["id"], cut, " ".join(flags) or "plain", "FAILED:", "no brief" if whole and not briefed else "", faults[:2], why)
        if flags == ["--remove-tools"] and first is not None:
            # The receiver's own instructions repeat the policy; what they hold was not carried by the handoff.
            said = all_text(first).lower()
            want = needed(row["messages"], cut)
            need += len(want)
            carried += sum(stands_in(v, said) for v in want)
    print(f"coverage of the receiver's first request with remove_all_tools: {carried} of {need} values, {100 * carried / max(1, need):.1f} %")
    print(f"{len(jobs) - bad - broken} passed, {bad} failed, {broken} skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
