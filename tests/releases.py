"""Holds two builds of Seam against each other on one Redis: a transfer's sender, its receiver's first request and the next
ones go through either, in every order, and the upstream has to get the same bytes."""

import http.client
import http.server
import itertools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

OLD, NEW = sys.argv[1:]
HEAD = {"content-type": "application/json", "authorization": "Bearer one-tenant"}
got = []


class Upstream(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        got.append(body)
        asked = json.loads(body)
        transfers = asked["messages"][-1]["role"] == "tool" and "desk" in asked["messages"][0]["content"]
        message = {"role": "assistant", "content": None, "tool_calls": [transfer(asked["user"])]} if transfers else {
            "role": "assistant", "content": "I have your booking."}
        reply = json.dumps({"id": "r", "model": "m", "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if transfers else "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


def transfer(case):
    arguments = {"task": "Repair the brakes.", "established": [
        {"key": "quote", "value": "318.40", "of": case, "source": "tool_result", "evidence": "call_1"}]}
    return {"id": f"call_{case}", "type": "function",
            "function": {"name": "transfer_to_workshop", "arguments": json.dumps(arguments)}}


def call(name, at, arguments="{}"):
    return {"role": "assistant", "content": None, "tool_calls": [
        {"id": at, "type": "function", "function": {"name": name, "arguments": arguments}}]}


def conversation(case):
    """The sender's request, the receiver's first one, and its second one. The transfer is hidden from the receiver."""
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
             for name in ("find_booking", "transfer_to_workshop")]
    customer = {"role": "user", "content": f"My brakes squeal, case {case}. Never call me before noon."}
    looked_up = [call("find_booking", "call_1"),
                 {"role": "tool", "tool_call_id": "call_1", "content": json.dumps({"booking": case, "quote": "318.40"})}]

    def request(system, messages, offered):
        return json.dumps({"model": "m", "user": case, "tools": offered,
                           "messages": [{"role": "system", "content": system}, *messages]}).encode()

    moved = [{"role": "assistant", "content": None, "tool_calls": [transfer(case)]},
             {"role": "tool", "tool_call_id": f"call_{case}", "content": "ok"}]
    first = [customer, *looked_up, *moved]
    then = [*first, {"role": "assistant", "content": "I have your booking."}, {"role": "user", "content": "Good. When?"}]
    workshop = "You are the workshop agent of a garage."
    return (request("You are the intake desk of a garage.", [customer, *looked_up], tools),
            request(workshop, first, tools[:1]), request(workshop, then, tools[:1]))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nobody listens on {port}")


def ask(port, body):
    """Sends a request through a Seam, and gives what the upstream got of it."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.request("POST", "/v1/chat/completions", body, HEAD)
    reply = client.getresponse()
    reply.read()
    assert reply.status == 200, reply.status
    return got[-1]


def main():
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        redis_port = free_port()
        started = [subprocess.Popen(["redis-server", "--port", str(redis_port), "--bind", "127.0.0.1", "--save", ""],
                                    cwd=folder, stdout=subprocess.DEVNULL)]
        try:
            wait_for(redis_port)
            seams = {}
            for name, binary in (("old", OLD), ("new", NEW)):
                port = free_port()
                settings = {"SEAM_UPSTREAM": f"http://127.0.0.1:{upstream.server_port}/v1",
                            "SEAM_LISTEN": f"127.0.0.1:{port}", "SEAM_ADMIN_LISTEN": f"127.0.0.1:{free_port()}",
                            "SEAM_STORE": f"redis://127.0.0.1:{redis_port}/0", "SEAM_STORE_TIMEOUT": "5s",
                            "SEAM_LOG": "warn"}
                started.append(subprocess.Popen([binary], env={**settings, "PATH": os.environ["PATH"]}))
                wait_for(port)
                seams[name] = port
            compare(seams)
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait()


def compare(seams):
    for number, (sends, takes_up) in enumerate(itertools.product(seams, repeat=2)):
        sender, first, then = conversation(f"bk-{number}")
        ask(seams[sends], sender)
        read = ask(seams[takes_up], first)
        assert read != first, "the receiver reads a brief"
        assert b"318.40" in json.loads(read)["messages"][0]["content"].encode(), "with the fact that was found"
        for name, port in seams.items():
            assert ask(port, first) == read, f"{name} gives the first request other bytes"
        later = {name: ask(port, then) for name, port in seams.items()}
        assert later["old"] == later["new"], "the two give the next request other bytes"
        brief = json.loads(read)["messages"][0]
        assert json.loads(later["new"])["messages"][0] == brief, "the brief is frozen"
        print(f"sent through the {sends} build, taken up by the {takes_up} one: the same {len(read)} bytes from both")


main()
