#!/usr/bin/env python3
"""Real agent clients through Seam, compared with the same clients without it.

    tests/clients/run.py [--install] [--only TEXT] [--keep DIR]

Each client talks to a scripted upstream twice: directly, and through Seam. It must end the same way, and what
upstream got is checked request by request: a sender's request is untouched, a receiver's has one leading system
message with its own instructions first and the brief behind them, no transfer left in the list, pairs whole, and
the same beginning on every later turn of that holder.

The drivers and the scripted upstream are in ../shared/clients (beside the checkout); without them this prints so
and ends. --install makes a virtual environment a framework below target/clients (minutes, hundreds of megabytes), and
one folder of packages for Node.
"""
import argparse, json, os, re, shutil, signal, subprocess, sys, tempfile, time, urllib.request, venv

import responses

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
    "node": ["@openai/agents@0.20.0", "openai@7.59.0", "zod@4.6.7", "ai@6.0.326", "@ai-sdk/openai@3.0.141"],
}
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
    if env == "node":
        return shutil.which("node") if os.path.isdir(os.path.join(VENVS, env, "node_modules")) else None
    python = os.path.join(VENVS, env, "bin", "python")
    return python if os.path.exists(python) else None


def install(env):
    target = os.path.join(VENVS, env)
    print("installing", *PACKAGES[env], flush=True)
    if env == "node":
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
                              "NODE_MODULES": os.path.join(VENVS, "node"), "PYTHONDONTWRITEBYTECODE": "1"})
    return run


def record(case, through_seam, folder):
    flags = case[3]
    out = os.path.join(folder, "seam.jsonl" if through_seam else "direct.jsonl")
    mock = [sys.executable, os.path.join(DRIVERS, "mock_openai.py"), "--port", "0", "--record", out, *flags]
    with Process(mock) as upstream:
        port = int(upstream.first.strip().rsplit(":", 1)[1])
        if not through_seam:
            run = drive(case, f"http://127.0.0.1:{port}/v1")
        else:
            listen, admin = free_port(), free_port()
            env = {"PATH": os.environ["PATH"], "SEAM_UPSTREAM": f"http://127.0.0.1:{port}/v1",
                   "SEAM_LISTEN": f"127.0.0.1:{listen}", "SEAM_ADMIN_LISTEN": f"127.0.0.1:{admin}", "SEAM_LOG": "warn",
                   **{k: v for k, v in os.environ.items() if k.startswith("SEAM_") and k not in ("SEAM_BIN", "SEAM_CLIENTS")}}
            with Process([SEAM], env, wait_for="ready"):
                for _ in range(200):
                    try:
                        urllib.request.urlopen(f"http://127.0.0.1:{admin}/ready", timeout=1)
                        break
                    except OSError:
                        time.sleep(0.02)
                run = drive(case, f"http://127.0.0.1:{listen}/v1")
    rows = [json.loads(line) for line in open(out, encoding="utf-8")]
    return run, [r for r in rows if r["request"]["path"].endswith(("/chat/completions", "/responses"))]


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


def said(run):
    """What a client printed, without the ids that it makes up on every run."""
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>", run.stdout)


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


def check(case, direct, seam):
    bad = []
    if len(direct) != len(seam):
        return [f"{len(seam)} requests through Seam, {len(direct)} without"], 0
    briefs, last = 0, {}
    for k, ((agent, received), d, s) in enumerate(zip(receivers(direct), direct, seam)):
        plain, got = d["request"]["body"], s["request"]["body"]
        at = f"request {k + 1} ({agent})"
        if not received:
            # agent-framework offers its transfer tools in another order from run to run.
            for body in (plain, got):
                body["tools"] = sorted(body.get("tools") or [], key=json.dumps)
            if plain != got:
                bad.append(f"{at}: a sender's request was changed")
            continue
        briefs += 1
        head = got["messages"][0]
        leading = [text(m["content"]) for m in plain["messages"] if m["role"] == "system"]
        own = leading[-1]
        slot = text(head["content"])
        if head["role"] != plain["messages"][0]["role"] or type(head["content"]) is not type(plain["messages"][0]["content"]):
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
    ap.add_argument("--only", default="")
    ap.add_argument("--keep", default="", help="keep what upstream got, one folder a case")
    a = ap.parse_args()
    if not os.path.isdir(DRIVERS):
        print("SKIPPED: the clients' drivers (../shared/clients) are not beside this checkout")
        return 0
    cases = [c for c in CASES if a.only in c[0]]
    if a.install:
        for name in sorted({c[1] for c in cases}):
            if not interpreter(name):
                install(name)
    failed = skipped = 0
    for case in cases:
        if not interpreter(case[1]):
            print(f"{case[0]:48} SKIPPED: not installed (--install)")
            skipped += 1
            continue
        folder = os.path.join(a.keep, re.sub(r"\W+", "-", case[0])) if a.keep else tempfile.mkdtemp()
        os.makedirs(folder, exist_ok=True)
        for old in os.listdir(folder):
            os.unlink(os.path.join(folder, old))
        run0, direct = record(case, False, folder)
        run1, seam = record(case, True, folder)
        bad, briefs = responses.check(direct, seam) if "Responses" in case[0] else check(case, direct, seam)
        if (run0.returncode, said(run0)) != (run1.returncode, said(run1)):
            bad.insert(0, f"ended differently: exit {run0.returncode} and {run1.returncode}\n    without: {run0.stdout!r}\n"
                          f"    through: {run1.stdout!r}\n    {run1.stderr[-400:]}")
        failed += bool(bad)
        print(f"{case[0]:48} {len(seam):3} requests, {briefs:2} briefs  {'ok' if not bad else 'FAILED'}", flush=True)
        for line in bad:
            print("   ", line)
    print(f"{len(cases) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
