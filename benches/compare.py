#!/usr/bin/env python3
"""Runs the comparison that docs/benchmarks.md explains, and prints it as Markdown. Start it by compare.sh."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "compare"))
from peers import UPSTREAM, Peer, peers  # noqa: E402

PACED, PACED_ONE, FLOOD, HELD_OPEN = "20000,32", "2000,64", "0,200", "50000,40"
CPU, ADDED = "CPU", "added p50"
GROW_TURNS = 21


class Scenario:
    """One load, and the bars that it is held to: (which peer, what of it, at most so many times nginx's)."""

    def __init__(self, name, what, body, connections, bars, stream=None, grow=None, warm=None):
        self.name, self.what, self.body, self.connections = name, what, body, connections
        self.bars, self.stream, self.grow = bars, stream, grow
        self.warm = warm if warm is not None else max(20, 3 * connections)

    def arguments(self, folder):
        arguments = ["--connections", str(self.connections), "--warm", str(self.warm)]
        if self.stream:
            arguments += ["--stream", self.stream]
        if self.grow:
            return [*arguments, "--grow", self.grow]
        return [*arguments, "--body", os.path.join(folder, self.body + ".json")]


def grow(kind):
    return f"{kind},50000,{GROW_TURNS}"


SCENARIOS = [
    Scenario("plain-2k", "pass-through, 2 KB", "plain-2k", 64, [("seam", CPU, 1.1)]),
    Scenario("plain-2k-one", "pass-through, 2 KB", "plain-2k", 1, [("seam", ADDED, 1.2)]),
    Scenario("plain-50k", "pass-through, 50 KB", "plain-50k", 64, [("seam", CPU, 1.1)]),
    Scenario("plain-50k-one", "pass-through, 50 KB", "plain-50k", 1, [("seam", ADDED, 1.2)]),
    Scenario("plain-500k", "pass-through, 500 KB", "plain-500k", 64, [("seam", CPU, 1.3)]),
    Scenario("plain-500k-one", "pass-through, 500 KB", "plain-500k", 1, [("seam", CPU, 2.0)]),
    Scenario("plain-grow", "pass-through, growing, 50 KB", None, 64, [("seam", CPU, 1.1)], grow=grow("plain")),
    Scenario("offered-50k", "transfer tools offered, 50 KB", "offered-50k", 64,
             [("seam", CPU, 1.2), ("seam-inject", CPU, 1.4)]),
    Scenario("offered-grow", "transfer tools offered, growing, 50 KB", None, 64,
             [("seam", CPU, 1.2), ("seam-inject", CPU, 1.4)], grow=grow("offered")),
    Scenario("held-50k", "rewritten, steady state, 50 KB", "held-50k", 64, [("seam", CPU, 1.6)]),
    Scenario("held-500k", "rewritten, steady state, 500 KB", "held-500k", 64, [("seam", CPU, 2.5)]),
    Scenario("held-grow", f"rewritten, growing, 50 KB (a take-up every {GROW_TURNS} requests)", None, 64,
             [("seam", CPU, 1.6)], grow=grow("held")),
    # A sidecar that has seen transfers, and an agent that has nothing to do with them.
    Scenario("beside-50k", "pass-through beside runs, 50 KB", "plain-50k", 64, [("seam", CPU, 1.1)]),
    Scenario("sse-paced", "SSE paced", "plain-2k-stream", 64,
             [("seam", CPU, 1.1), ("seam", "delay", 1.2), ("seam", "per read", 1.05)], PACED),
    Scenario("sse-paced-one", "SSE paced", "plain-2k-stream", 1, [("seam", "delay", 1.2)], PACED_ONE, warm=2),
    Scenario("sse-flood", "SSE flood", "plain-2k-stream", 16, [("seam", CPU, 1.0)], FLOOD),
    Scenario("sse-paced-offered", "SSE paced, transfer tools offered", "offered-2k-stream", 64,
             [("seam", CPU, 1.2)], PACED),
    Scenario("sse-flood-offered", "SSE flood, transfer tools offered", "offered-2k-stream", 16,
             [("seam", CPU, 1.5)], FLOOD),
]
MEMORY = [
    ("512 open streams", Scenario("mem-streams", "", "plain-2k-stream", 512, [], HELD_OPEN, warm=0), 45),
    ("64 x 500 KB in flight", Scenario("mem-500k", "", "plain-500k", 64, [], warm=0), 110),
]
# What a long run is made of: every request the same, and every conversation new.
FLAT = [
    ("pass-through, 2 KB", Scenario("flat-plain", "", "plain-2k", 64, [], warm=0)),
    ("transfer tools offered, growing, 20 KB", Scenario("flat-offered", "", None, 64, [], warm=0, grow="offered,20000,8")),
]
IDLE_BAR, START_BAR, FLAT_BAR = 15, 50, 1.05
UNITS = {CPU: "CPU", ADDED: "added p50", "delay": "chunk delay p50", "per read": "chunks per read"}


def parse():
    parser = argparse.ArgumentParser(prog="benches/compare.sh", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each scenario; figures are medians over them")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each peer is loaded in a round")
    parser.add_argument("--scenarios", help="only those whose names begin with one of these, comma separated")
    parser.add_argument("--peers", help="beside direct, nginx and seam, only these, comma separated")
    parser.add_argument("--requests", type=int, default=200_000, help="requests of the run that looks for growth")
    parser.add_argument("--json", help="a file for every single measurement")
    return parser.parse_args()


class Comparison:
    def __init__(self, options):
        self.options = options
        self.bin = os.environ["COMPARE_BIN"]
        self.seam = os.environ["SEAM_BIN"]
        self.work = tempfile.mkdtemp(prefix="seam-compare-")
        self.bodies = os.path.join(self.work, "bodies")
        only = None if options.peers is None else options.peers.split(",")
        self.peers, self.missing = peers(self.work, self.seam, only)
        self.measured, self.verdicts, self.loads = [], [], 0
        upstream = [os.path.join(self.bin, "mock"), "%s:%d" % UPSTREAM]
        self.mock = Peer("mock", UPSTREAM[1], upstream)

    def chosen(self, name):
        wanted = self.options.scenarios
        return not wanted or any(name.startswith(part) for part in wanted.split(","))

    def run(self):
        subprocess.run([os.path.join(self.bin, "bodies"), self.bodies], check=True)
        print(self.preamble(), flush=True)
        self.mock.start(self.work)
        try:
            scenarios = [scenario for scenario in SCENARIOS if self.chosen(scenario.name)]
            if scenarios:
                self.compare(scenarios)
            if self.chosen("memory"):
                self.memory()
            if self.chosen("flat"):
                self.flat()
            if self.chosen("start"):
                self.start_up()
        finally:
            for peer in [*self.peers.values(), self.mock]:
                peer.stop()
        self.print_verdicts()
        if self.options.json:
            with open(self.options.json, "w") as file:
                json.dump({"about": self.preamble(), "runs": self.measured, "bars": self.verdicts}, file, indent=1)

    def preamble(self):
        with open("/proc/cpuinfo") as file:
            model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown CPU")
        lines = [
            f"- Machine: {os.cpu_count()} cores, {model}; {platform.system()} {platform.release()}; "
            f"load {os.getloadavg()[0]:.1f} at the start",
            f"- Date: {time.strftime('%Y-%m-%d %H:%M')}",
            f"- Command: `{' '.join(['benches/compare.sh', *sys.argv[1:]])}`",
            f"- Rounds: {self.options.rounds}, {self.options.seconds} s a peer each",
            "- Versions: " + ", ".join(self.versions()),
        ]
        return "\n".join(lines + [f"- Left out: {what}" for what in self.missing])

    def versions(self):
        flags = {"nginx": "-v", "haproxy": "-v", "seam": "--version", "envoy": "--version"}
        for name, flag in flags.items():
            if name in self.peers:
                got = subprocess.run([self.peers[name].command[0], flag], capture_output=True, text=True)
                text = (got.stdout + got.stderr).strip()
                yield text.splitlines()[0] if text else name
        commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True)
        if commit.returncode == 0:
            yield "commit " + commit.stdout.strip()

    def start_all(self):
        for name, peer in list(self.peers.items()):
            try:
                peer.start(self.work)
            except (OSError, RuntimeError) as error:
                if name in ("nginx", "seam", "seam-inject"):
                    raise
                print(f"- Left out: {name}: {error}")
                del self.peers[name]

    def stop_all(self):
        for peer in self.peers.values():
            peer.stop()

    def load(self, peer, scenario, extra=None, sample=None):
        """Loads one peer and gives what was measured; `sample` is called a few times a second meanwhile."""
        arguments = extra or ["--seconds", str(self.options.seconds)]
        # No two loads hold the same conversations: a run that is known already costs less.
        self.loads += 1
        arguments = [*arguments, "--seed", str(self.loads)]
        command = [os.path.join(self.bin, "load"), peer.address, *scenario.arguments(self.bodies), *arguments]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not process.stdout.readline():
            raise RuntimeError(f"the load generator gave up on {peer.name}")
        over = threading.Event()
        sampler = threading.Thread(target=repeat, args=(sample, over)) if sample else None
        before = peer.cpu()
        process.stdin.write("go\n")
        process.stdin.flush()
        if sampler:
            sampler.start()
        line = process.stdout.readline()
        used = peer.cpu() - before
        over.set()
        process.wait()
        got = json.loads(line)
        got["cpu_s"] = used
        got["cpu"] = used * 1e6 / max(1, got["chunks"] if scenario.stream else got["requests"])
        self.measured.append({"scenario": scenario.name, "peer": peer.name, **got})
        return got

    def compare(self, scenarios):
        self.start_all()
        for scenario in scenarios:
            runs = {name: [] for name in self.peers}
            for turn in range(self.options.rounds):
                order = list(self.peers)
                for name in reversed(order) if turn % 2 else order:
                    runs[name].append(self.load(self.peers[name], scenario))
            self.print_table(scenario, runs)
            for name, what, bar in scenario.bars:
                self.judge(scenario, runs, name, what, bar)
        self.stop_all()

    def judge(self, scenario, runs, name, what, bar):
        # Chunks are held against what the upstream sends, everything else against nginx.
        base = "direct" if what == "per read" else "nginx"
        if base not in runs:
            return
        rounds = range(len(runs[name]))
        own, other = ([figure(runs, peer, what, n) for n in rounds] for peer in (name, base))
        ratio = statistics.median(a / b if b > 0 else float("inf") for a, b in zip(own, other))
        unit = "chunk" if scenario.stream else "request"
        path = f"{scenario.what}, {scenario.connections} conn." + (" (inject)" if name == "seam-inject" else "")
        label = f"{UNITS[what]} per {unit}" if what == CPU else UNITS[what]
        scale = "" if what == "per read" else " us"
        self.verdict(path, f"{label} / {base}", f"{statistics.median(own):.1f}{scale}",
                     f"{statistics.median(other):.1f}{scale}", ratio, bar)
        if any(run["errors"] for run in runs[name]):
            self.verdict(path, "errors", str(sum(run["errors"] for run in runs[name])), "", 1.0, 0.0)

    def verdict(self, path, what, own, other, value, bar):
        self.verdicts.append({"path": path, "what": what, "seam": own, "other": other, "value": value, "bar": bar,
                              "pass": value <= bar})

    def print_table(self, scenario, runs):
        streamed = scenario.stream is not None
        columns = ["peer", "per s", "p50 us", "p99 us", "added p50 us"]
        if streamed:
            columns += ["first byte p50 us", "chunk delay p50 us", "p99 us", "chunks per read", "CPU us per chunk"]
        else:
            columns += ["CPU us per request"]
        columns += ["x nginx", "body up KB", "RSS MB", "errors"]
        print(f"\n### {scenario.what}, connections: {scenario.connections} (`{scenario.name}`)\n")
        print("| " + " | ".join(columns) + " |")
        print("|---|" + "--:|" * (len(columns) - 1))
        for name in runs:
            middle = lambda value: statistics.median(value(run) for run in runs[name])  # noqa: E731
            rounds = range(len(runs[name]))
            added = statistics.median(figure(runs, name, ADDED, n) for n in rounds)
            cells = [name, f"{middle(lambda run: run['requests'] / run['seconds']):.0f}",
                     f"{middle(lambda run: run['latency']['p50']):.0f}",
                     f"{middle(lambda run: run['latency']['p99']):.0f}", f"{added:.0f}"]
            if streamed:
                cells += [f"{middle(lambda run: run['first']['p50']):.0f}",
                          f"{middle(lambda run: run['delay']['p50']):.0f}",
                          f"{middle(lambda run: run['delay']['p99']):.0f}",
                          f"{middle(lambda run: run['chunks'] / max(1, run['reads'])):.2f}"]
            ratio = ""
            if name != "direct" and "nginx" in runs:
                ratio = statistics.median(figure(runs, name, CPU, n) / figure(runs, "nginx", CPU, n) for n in rounds)
                ratio = f"{ratio:.2f}"
            cells += ["" if name == "direct" else f"{middle(lambda run: run['cpu']):.2f}", ratio,
                      f"{middle(lambda run: run['received']) / 1e3:.1f}",
                      "" if name == "direct" else f"{self.peers[name].rss():.0f}",
                      str(sum(run["errors"] for run in runs[name]))]
            why = next((run["error"] for run in runs[name] if run["error"]), None)
            print("| " + " | ".join(cells) + (f" ({why[:60]})" if why else "") + " |")
        sys.stdout.flush()

    def memory(self):
        """Each load on processes that have just been started: memory once used is not always given back."""
        print("\n### Memory\n\n| peer | idle MB | " + " | ".join(f"{what}, peak MB" for what, _, _ in MEMORY) + " |")
        print("|---|" + "--:|" * (1 + len(MEMORY)))
        proxies = [peer for peer in self.peers.values() if peer.command]
        for peer in proxies:
            cells = []
            for what, scenario, bar in MEMORY:
                peer.start(self.work)
                idle = peer.rss()
                got = self.load(peer, scenario, extra=["--seconds", "3"])
                peak = peer.peak()
                peer.stop()
                if not cells:
                    cells.append(f"{idle:.1f}")
                    if peer.name == "seam":
                        self.verdict("memory", "idle MB", f"{idle:.1f}", "", idle, IDLE_BAR)
                cells.append(f"{peak:.1f}" + (f" ({got['errors']} errors)" if got["errors"] else ""))
                if peer.name == "seam":
                    self.verdict("memory", f"{what}, peak MB", f"{peak:.1f}", "", peak, bar)
            print(f"| {peer.name} | " + " | ".join(cells) + " |", flush=True)

    def flat(self):
        print(f"\n### Memory over {self.options.requests} requests (seam)\n")
        print("| load | after a tenth MB | after a half MB | at the end MB | most of the second half / of the first |")
        print("|---|--:|--:|--:|--:|")
        seam = self.peers["seam"]
        for what, scenario in FLAT:
            seam.start(self.work)
            sizes = []
            self.load(seam, scenario, ["--requests", str(self.options.requests)], lambda: sizes.append(seam.rss()))
            seam.stop()
            if len(sizes) < 10:
                print(f"| {what} | too short to tell: give more `--requests` | | | |", flush=True)
                continue
            half = len(sizes) // 2
            growth = max(sizes[half:]) / max(sizes[:half])
            cells = [what, *(f"{size:.1f}" for size in (sizes[len(sizes) // 10], sizes[half - 1], sizes[-1]))]
            print("| " + " | ".join(cells) + f" | {growth:.3f} |", flush=True)
            self.verdict("memory", f"{what}: second half / first of {self.options.requests} requests",
                         f"{sizes[-1]:.1f} MB", "", growth, FLAT_BAR)

    def start_up(self):
        print("\n### Start\n\n| peer | ms until it listens, median | most |\n|---|--:|--:|")
        for peer in [peer for peer in self.peers.values() if peer.command]:
            times = []
            for _ in range(max(5, self.options.rounds)):
                times.append(peer.start(self.work))
                peer.stop()
            middle = statistics.median(times)
            print(f"| {peer.name} | {middle:.1f} | {max(times):.1f} |", flush=True)
            if peer.name == "seam":
                self.verdict("start", "ms until it listens", f"{middle:.1f}", "", middle, START_BAR)

    def print_verdicts(self):
        print("\n### Against the bars\n\n| path | what | seam | other | measured | bar | |\n|---|---|--:|--:|--:|--:|---|")
        for it in self.verdicts:
            verdict = "pass" if it["pass"] else "**miss**"
            print(f"| {it['path']} | {it['what']} | {it['seam']} | {it['other']} | {it['value']:.2f} | {it['bar']:g} "
                  f"| {verdict} |")


def figure(runs, name, what, turn):
    """What one round says of a peer."""
    run = runs[name][turn]
    if what == ADDED:
        return run["latency"]["p50"] - runs["direct"][turn]["latency"]["p50"]
    if what == "delay":
        return run["delay"]["p50"]
    if what == "per read":
        return run["chunks"] / max(1, run["reads"])
    return max(run["cpu"], 1e-9)


def repeat(work, over):
    while not over.wait(0.2):
        work()


if __name__ == "__main__":
    try:
        Comparison(parse()).run()
    except RuntimeError as error:
        sys.exit(f"compare: {error}")
