#!/usr/bin/env python3
"""Real agent clients through Seam, compared with the same clients without it.

    tests/clients/run.py [--install] [--only REGEX] [--keep DIR] [--strict PROFILE] [--inject]

Each client talks to a scripted upstream twice: directly, and through Seam. It must end the same way, and what
upstream got is checked request by request: a sender's request is untouched, a receiver's has one leading system
message with its own instructions first and the brief behind them, no transfer left in the list, pairs whole, and
the same beginning on every later turn of that holder.

With --strict the upstream is the fake of that profile (`tests/it/support/fake/`): it refuses what the profile's server
refuses, streams as oddly and gives ids as that server does; Seam runs with the profile. Without Seam the same fake takes
everything, so that a client can be compared with itself. A request that Seam passes as its client wrote it, and that the
server refuses, is the client's own: printed as such, and no failure.

With --inject Seam asks the senders for the contract; inject.py says what is checked then.

The drivers and the scripted upstream are in ../shared/clients (beside the checkout); without them this prints so
and ends. --install makes a virtual environment a framework below target/clients (minutes, hundreds of megabytes), and
one folder of packages for Node.
"""
import argparse, contextlib, json, os, re, shutil, signal, subprocess, sys, tempfile, time, urllib.request, venv

import inject, responses

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DRIVERS = os.path.join(os.path.dirname(ROOT), "shared", "clients")
VENVS = os.environ.get("SEAM_CLIENTS") or os.path.join(ROOT, "target", "clients")
SEAM = os.environ.get("SEAM_BIN") or os.path.join(ROOT, "target", "release", "seam")

PACKAGES = {
    "oai": ["openai-agents==0.24.0"],
    "langgraph": ["langgraph==1.2.24", "langgraph-swarm==0.1.0", "langchain==1.5.2", "langchain-openai==1.7.4",
                  "langgraph-supervisor==0.0.31"],
    "autogen": ["autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"],
    "msaf": ["agent-framework-core==1.23.0", "agent-framework-openai==1.17.0", "agent-framework-orchestrations==1.4.0"],
    "strands": ["strands-agents[openai]==1.62.0"],
    "llama": ["llama-index-core==0.14.25", "llama-index-llms-openai-like==0.8.1"],
    "sk": ["semantic-kernel==1.45.0", "protobuf"],
    "adk": ["google-adk==2.13.0", "litellm==1.110.2"],
    "ag2old": ["ag2[openai]==0.14.0"],
    "pydai": ["pydantic-ai-slim[openai]==2.68.0"],
    "crewai": ["crewai==1.15.30"],
    "agno": ["agno==3.1.10", "openai==3.57.0"],
    "lgjs": ["@langchain/langgraph-swarm@1.0.4", "@langchain/langgraph@1.7.3", "@langchain/core@1.4.0",
             "@langchain/openai@1.5.8", "zod@4.6.7"],
    "mastra": ["@mastra/core@0.24.9", "@ai-sdk/openai@2.0.131", "zod"],
    "node": ["@openai/agents@0.20.0", "openai@7.59.0", "zod@4.6.7", "ai@6.0.326", "@ai-sdk/openai@3.0.141"],
}
# Environments of packages for Node.
NODE = ("node", "lgjs", "mastra")
# name, virtual environment, driver and its options, flags of the scripted upstream
CASES = [
    ("openai-agents", "oai", ["drive_openai_agents.py"], []),
    ("openai-agents stream", "oai", ["drive_openai_agents.py", "--stream"], ["--prose"]),
    ("openai-agents input_type", "oai", ["drive_openai_agents.py", "--mode", "input_type"], []),
    ("openai-agents input_type stream", "oai", ["drive_openai_agents.py", "--mode", "input_type", "--stream"], []),
    ("openai-agents remove_tools", "oai", ["drive_openai_agents.py", "--mode", "remove_tools"], []),
    ("openai-agents remove_tools stream", "oai", ["drive_openai_agents.py", "--mode", "remove_tools", "--stream"], []),
    ("openai-agents nest", "oai", ["drive_openai_agents.py", "--mode", "nest"], []),
    ("openai-agents nest stream", "oai", ["drive_openai_agents.py", "--mode", "nest", "--stream"], []),
    ("langgraph-swarm", "langgraph", ["drive_langgraph_swarm.py"], []),
    ("langgraph-swarm stream", "langgraph", ["drive_langgraph_swarm.py", "--stream"], ["--prose"]),
    ("langgraph-supervisor", "langgraph", ["drive_langgraph_supervisor.py"], []),
    ("langgraph-supervisor stream", "langgraph", ["drive_langgraph_supervisor.py", "--stream"], []),
    ("autogen Swarm", "autogen", ["drive_autogen_swarm.py"], []),
    ("autogen Swarm stream", "autogen", ["drive_autogen_swarm.py", "--stream"], ["--prose"]),
    ("agent-framework", "msaf", ["drive_ms_agent_framework.py"], []),
    ("agent-framework stream", "msaf", ["drive_ms_agent_framework.py", "--stream"], []),
    ("strands (streams)", "strands", ["drive_strands_swarm.py"], []),
    ("llama-index", "llama", ["drive_llama_index.py"], []),
    ("llama-index stream", "llama", ["drive_llama_index.py", "--stream"], []),
    ("semantic-kernel (streams)", "sk", ["drive_semantic_kernel.py"], []),
    ("google-adk", "adk", ["drive_google_adk.py"], []),
    ("ag2", "ag2old", ["drive_ag2.py"], []),
    ("pydantic-ai", "pydai", ["drive_pydantic_ai.py"], []),
    ("pydantic-ai stream", "pydai", ["drive_pydantic_ai.py", "--stream"], []),
    ("@openai/agents", "node", ["drive_openai_agents_js.mjs"], []),
    ("@openai/agents stream", "node", ["drive_openai_agents_js.mjs", "--stream"], ["--prose"]),
    ("AI SDK", "node", ["drive_ai_sdk.mjs"], []),
    ("AI SDK stream", "node", ["drive_ai_sdk.mjs", "--stream"], []),
    ("langgraph-swarm JS", "lgjs", ["drive_langgraph_swarm_js.mjs"], []),
    ("langgraph-swarm JS stream", "lgjs", ["drive_langgraph_swarm_js.mjs", "--stream"], []),
    ("crewai", "crewai", ["drive_crewai.py"], []),
    ("crewai stream", "crewai", ["drive_crewai.py", "--stream"], []),
    ("agno Team", "agno", ["drive_agno_team.py"], []),
    ("agno Team stream", "agno", ["drive_agno_team.py", "--stream"], []),
    ("mastra", "mastra", ["drive_mastra.mjs"], []),
    ("mastra stream", "mastra", ["drive_mastra.mjs", "--stream"], []),
]
OAI_RESPONSES = ["drive_openai_agents.py", "--api", "responses"]
# The same of the Responses API, each plain and streamed.
CASES += [(f"{name}, Responses{kind}", env, [*driver, *stream], flags)
          for name, env, driver, flags in [
              ("openai-agents", "oai", OAI_RESPONSES, []),
              ("openai-agents prose", "oai", OAI_RESPONSES, ["--prose"]),
              ("openai-agents input_type", "oai", [*OAI_RESPONSES, "--mode", "input_type"], []),
              ("openai-agents remove_tools", "oai", [*OAI_RESPONSES, "--mode", "remove_tools"], []),
              ("openai-agents nest", "oai", [*OAI_RESPONSES, "--mode", "nest"], []),
              ("openai-agents prev-id", "oai", [*OAI_RESPONSES, "--prev-id"], []),
              ("openai-agents prev-id prose", "oai", [*OAI_RESPONSES, "--prev-id"], ["--prose"]),
              ("openai-agents prev-id parallel transfers", "oai", [*OAI_RESPONSES, "--prev-id"], ["--parallel", "transfers"]),
              ("openai-agents parallel transfers", "oai", OAI_RESPONSES, ["--parallel", "transfers", "--prose"]),
              ("openai-agents parallel tool", "oai", OAI_RESPONSES, ["--parallel", "tool"]),
              ("@openai/agents", "node", ["drive_openai_agents_js.mjs", "--responses"], []),
              ("langgraph-swarm", "langgraph", ["drive_langgraph_swarm.py", "--responses"], []),
              ("agent-framework", "msaf", ["drive_ms_agent_framework.py", "--responses"], []),
              ("agent-framework prose", "msaf", ["drive_ms_agent_framework.py", "--responses"], ["--prose"]),
              ("AI SDK", "node", ["drive_ai_sdk.mjs", "--responses"], []),
              ("AI SDK prose", "node", ["drive_ai_sdk.mjs", "--responses"], ["--prose"]),
              ("pydantic-ai", "pydai", ["drive_pydantic_ai.py", "--responses"], []),
          ] for kind, stream in [("", []), (" stream", ["--stream"])]]
QUIET = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "OPENAI_API_KEY": "sk-test", "OPENAI_AGENTS_DISABLE_TRACING": "1",
         "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OTEL_SDK_DISABLED": "true", "LANGSMITH_TRACING": "false",
         "ANONYMIZED_TELEMETRY": "false", "AGNO_TELEMETRY": "false"}
BRIEF = "[Seam handoff "
TRANSFER = re.compile(r"transfer_to|handoff|transfer_back")
# Clients that begin each customer turn in a new conversation: what an earlier turn established is in another run.
FORGETFUL = ("strands",)


class Process:
    """A child process that is ended by its own id."""

    def __init__(self, argv, env=None, wait_for=None):
        self.p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.first = self.p.stdout.readline() if wait_for is None else None

    def port(self):
        """The port in the first line that names one."""
        while not re.search(r":\d+$", self.first.strip()):
            self.first = self.p.stdout.readline()
            if not self.first:
                raise RuntimeError(self.p.stderr.read()[-2000:])
        return int(self.first.strip().rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.send_signal(signal.SIGTERM)
        try:
            self.p.wait(10)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def interpreter(env):
    """What runs the drivers of this environment; none where it is not installed."""
    if env in NODE:
        return shutil.which("node") if os.path.isdir(os.path.join(VENVS, env, "node_modules")) else None
    python = os.path.join(VENVS, env, "bin", "python")
    return python if os.path.exists(python) else None


def install(env):
    target = os.path.join(VENVS, env)
    print("installing", *PACKAGES[env], flush=True)
    if env in NODE:
        os.makedirs(target, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--prefix", target, *PACKAGES[env]], check=True)
    else:
        venv.create(target, with_pip=True)
        subprocess.run([os.path.join(target, "bin", "pip"), "install", "-q", *PACKAGES[env]], check=True)


def drive(case, base):
    _, env, driver, _ = case
    run = subprocess.run([interpreter(env), os.path.join(DRIVERS, driver[0]), *driver[1:]], capture_output=True, text=True,
                         timeout=180, cwd=DRIVERS,
                         env={**os.environ, **QUIET, "OPENAI_BASE_URL": base, "OPENAI_API_BASE": base,
                              "NODE_MODULES": os.path.join(VENVS, env if env in NODE else "node"), "PYTHONDONTWRITEBYTECODE": "1"})
    return run


def fakes():
    """The program that holds the fakes."""
    built = subprocess.run(["cargo", "test", "--locked", "--no-run", "--test", "it", "--message-format", "json"], cwd=ROOT,
                           capture_output=True, text=True, check=True).stdout
    made = [json.loads(line) for line in built.splitlines()]
    return next(m["executable"] for m in made if m.get("executable") and m["target"]["name"] == "it")


def fake(strict, author, out, notes):
    """The fake of a profile, whose words are `author`'s."""
    profile, program = strict
    env = {"PATH": os.environ["PATH"], "FAKE_SERVER": profile, "FAKE_AUTHOR": f"127.0.0.1:{author}", "FAKE_RECORD": out,
           **({"FAKE_NOTES": "1"} if notes else {})}
    argv = [program, "--ignored", "--exact", "--nocapture", "support::fake::door::serve_real_clients"]
    return Process(argv, env)


def record(case, through_seam, folder, strict=None):
    out = os.path.join(folder, "seam.jsonl" if through_seam else "direct.jsonl")
    kept = os.path.join(folder, "author.jsonl") if strict else out
    mock = [sys.executable, os.path.join(DRIVERS, "mock_openai.py"), "--port", "0", "--record", kept, *case[3]]
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(Process(mock)).port()
        if strict:
            port = stack.enter_context(fake(strict, port, out, not through_seam)).port()
        if through_seam:
            port = stack.enter_context(seam_before(port, strict)).listens
        run = drive(case, f"http://127.0.0.1:{port}/v1")
    rows = [json.loads(line) for line in open(out, encoding="utf-8")]
    return run, [r for r in rows if r["request"]["path"].endswith(("/chat/completions", "/responses"))]


def seam_before(port, strict):
    """Seam in front of an upstream."""
    listen, admin = free_port(), free_port()
    env = {"PATH": os.environ["PATH"], "SEAM_UPSTREAM": f"http://127.0.0.1:{port}/v1",
           "SEAM_LISTEN": f"127.0.0.1:{listen}", "SEAM_ADMIN_LISTEN": f"127.0.0.1:{admin}", "SEAM_LOG": "warn",
           **{k: v for k, v in os.environ.items() if k.startswith("SEAM_") and k not in ("SEAM_BIN", "SEAM_CLIENTS")},
           **({"SEAM_PROFILE": strict[0]} if strict else {})}
    process = Process([SEAM], env, wait_for="ready")
    process.listens, process.admin = listen, admin
    for _ in range(200):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{admin}/ready", timeout=1)
            break
        except OSError:
            time.sleep(0.02)
    return process


def text(content):
    return content if isinstance(content, str) else "\n".join(p.get("text", "") for p in content or [])


OWN_TOOL = {"lookup_order": "triage", "issue_refund": "refunds", "send_notification": "notifications"}


def agent_of(body):
    """By its own tool: pydantic-ai leaves the sender's system text in place."""
    for tool in body.get("tools") or []:
        for name, agent in OWN_TOOL.items():
            if tool["function"]["name"].endswith(name):
                return agent
    return "?"


def transfers_to(row, agent):
    """Whether the reply of an exchange transfers to this agent, by name or by argument."""
    body = row["response"]["body"]
    names = row["mock_decision"]["calls"]
    said = body if isinstance(body, str) else json.dumps(body)
    return any(TRANSFER.search(name) and (agent in name or agent in said) for name in names)


def faults(messages):
    out, waiting = [], []
    for i, m in enumerate(messages):
        if m["role"] in ("system", "developer") and i:
            out.append(f"system message at {i}")
        if m["role"] == "tool":
            if m.get("tool_call_id") in waiting:
                waiting.remove(m["tool_call_id"])
            else:
                out.append(f"tool message {i} answers no open call")
            continue
        if waiting:
            out.append(f"message {i} while {waiting} are unanswered")
        waiting = [c["id"] for c in m.get("tool_calls") or []]
    if waiting:
        out.append(f"{waiting} unanswered at the end")
    if not any(m["role"] == "user" for m in messages):
        out.append("no user message")
    return out


def masked(text):
    """A text without what differs from run to run: ids that a client makes up, clocks, durations."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>", text)
    text = re.sub(r"\d\d-\d\d \d\d:\d\d:\d\d", "<time>", text)
    return re.sub(r"\d+\.\d+s\b", "<duration>", text)


def said(run):
    """What a client printed."""
    return masked(run.stdout)


def receivers(rows):
    """Which requests are a receiver's: those of an agent that a transfer has brought here."""
    out, entry, moved = [], None, False
    for k, row in enumerate(rows):
        agent = agent_of(row["request"]["body"])
        entry = entry or agent
        if agent == entry:
            earlier = rows[k - 1] if k else None
            other = earlier is not None and agent_of(earlier["request"]["body"]) != agent
            back = other and transfers_to(earlier, agent)
            invented = any(c["function"]["name"].startswith("transfer_back") for m in row["request"]["body"]["messages"][-2:]
                           for c in m.get("tool_calls") or [])
            if other:
                moved = back or invented
        else:
            moved = True
        out.append((agent, moved))
    return out


def own_fault(rows):
    """What the server refused of a request that is nobody's receiver's: it went up as its client wrote it."""
    refused = [(k, row) for k, row in enumerate(rows) if row["response"]["status"] >= 400]
    told = [(k, row) for k, row in refused if not receivers(rows)[k][1]]
    return f"request {told[0][0] + 1}: {'; '.join(told[0][1]['faults'][:2])}" if told else ""


def check(case, direct, seam, strict=None):
    bad = [f"request {k + 1}: refused: {'; '.join(row['faults'])}" for k, row in enumerate(seam) if row["response"]["status"] >= 400]
    if len(direct) != len(seam):
        return [*bad, f"{len(seam)} requests through Seam, {len(direct)} without"], 0
    briefs, last = 0, {}
    for k, ((agent, received), d, s) in enumerate(zip(receivers(direct), direct, seam)):
        plain, got = d["request"]["body"], s["request"]["body"]
        at = f"request {k + 1} ({agent})"
        if not received:
            # agent-framework offers its transfer tools in another order from run to run.
            for body in (plain, got):
                body["tools"] = sorted(body.get("tools") or [], key=json.dumps)
            if masked(json.dumps(plain)) != masked(json.dumps(got)):
                bad.append(f"{at}: a sender's request was changed")
            continue
        briefs += 1
        head = got["messages"][0]
        leading = [text(m["content"]) for m in plain["messages"] if m["role"] in ("system", "developer")]
        own = leading[-1]
        slot = text(head["content"])
        same_role = head["role"] == plain["messages"][0]["role"] or (strict and head["role"] == "system")
        if not same_role or type(head["content"]) is not type(plain["messages"][0]["content"]):
            bad.append(f"{at}: the system message changed its role or form")
        if not slot.startswith(own) or BRIEF not in slot:
            bad.append(f"{at}: no brief behind its own instructions")
            continue
        brief = slot[len(own):]
        first_turn = len([m for m in plain["messages"] if m["role"] == "user"]) < 2 and agent == "refunds"
        if (first_turn or not case[0].startswith(FORGETFUL)) and (
                "ord_1001" not in brief or "lookup_order" not in brief and "call_" not in brief):
            bad.append(f"{at}: ord_1001 is not established with its provenance")
        if any(TRANSFER.search(c["function"]["name"]) for m in got["messages"] for c in m.get("tool_calls") or []):
            bad.append(f"{at}: a transfer is left in the list")
        bad += [f"{at}: {f}" for f in faults(got["messages"])]
        tail = got["messages"][-1]
        if tail["role"] == "assistant" and plain["messages"][-1] is not tail and k and last.get(agent) is None:
            bad.append(f"{at}: the list ends in an assistant message")
        hop = (agent, slot)
        if hop in last and got["messages"][: len(last[hop])] != last[hop] and plain["messages"][: len(last[hop, 0])] == last[hop, 0]:
            bad.append(f"{at}: the beginning differs from the holder's turn before")
        last[hop], last[hop, 0] = got["messages"], plain["messages"]
        for key in plain:
            same = (lambda v: sorted(json.dumps(t) for t in v)) if key == "tools" else (lambda v: v)
            if key != "messages" and same(plain[key]) != same(got.get(key)):
                bad.append(f"{at}: field {key} changed")
    if not briefs:
        bad.append("no receiver got a brief")
    return bad, briefs


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--install", action="store_true")
    ap.add_argument("--inject", action="store_true", help="with SEAM_CONTRACT=inject")
    ap.add_argument("--only", default="")
    ap.add_argument("--keep", default="", help="keep what upstream got, one folder a case")
    ap.add_argument("--strict", default="", metavar="PROFILE", help="in front of the fake that refuses what this profile's server refuses")
    a = ap.parse_args()
    if not os.path.isdir(DRIVERS):
        print("SKIPPED: the clients' drivers (../shared/clients) are not beside this checkout")
        return 0
    if a.inject:
        os.environ["SEAM_CONTRACT"] = "inject"
    cases = [c for c in CASES + (inject.CASES if a.inject else []) if re.search(a.only, c[0]) and not (a.strict and "Responses" in c[0])]
    strict = (a.strict, fakes()) if a.strict else None
    if a.install:
        for name in sorted({c[1] for c in cases}):
            if not interpreter(name):
                install(name)
    failed = skipped = own = 0
    for case in cases:
        if not interpreter(case[1]):
            print(f"{case[0]:48} SKIPPED: not installed (--install)")
            skipped += 1
            continue
        folder = os.path.join(a.keep, re.sub(r"\W+", "-", case[0])) if a.keep else tempfile.mkdtemp()
        os.makedirs(folder, exist_ok=True)
        for old in os.listdir(folder):
            os.unlink(os.path.join(folder, old))
        run0, direct = record(case, False, folder, strict)
        run1, seam = record(case, True, folder, strict)
        fault = own_fault(seam) and f"refused as its client wrote it, {own_fault(seam)}" if strict else ""
        if strict and not fault and not any(received for _, received in receivers(direct)):
            fault = "its client never transfers in front of this server, with Seam or without"
        if fault:
            own += 1
            print(f"{case[0]:48} {len(seam):3} requests: {fault}", flush=True)
            continue
        note, unasked = "", False
        if a.inject:
            seam, tools, calls, filled = inject.stripped(direct, seam)
            note = f", {tools:2} tools asked, {calls:2} contracts put back, {filled:2} briefs by the sender"
            unasked = not tools and not inject.declares(case)
        bad, briefs = responses.check(direct, seam) if "Responses" in case[0] else check(case, direct, seam, strict)
        bad += ["nobody was asked"] * unasked
        if (run0.returncode, said(run0)) != (run1.returncode, said(run1)):
            bad.insert(0, f"ended differently: exit {run0.returncode} and {run1.returncode}\n    without: {run0.stdout!r}\n"
                          f"    through: {run1.stdout!r}\n    {run1.stderr[-400:]}")
        failed += bool(bad)
        print(f"{case[0]:48} {len(seam):3} requests, {briefs:2} briefs{note}  {'ok' if not bad else 'FAILED'}", flush=True)
        for line in bad:
            print("   ", line)
    clients = f", {own} that their clients cannot do in front of this server" if strict else ""
    print(f"{len(cases) - failed - skipped - own} passed, {failed} failed, {skipped} skipped{clients}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
