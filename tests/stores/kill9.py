#!/usr/bin/env python3
"""Kills Seam again and again and looks for what it had acknowledged.

    tests/stores/kill9.py [--rounds 200] [--seam target/debug/seam]

Every round, desks transfer conversations to a workshop through Seam with a store in a file, several at once and without a
pause, and the process gets SIGKILL at a moment of chance, in the middle of them. A transfer is acknowledged once its reply
came whole. After the restart every transfer that was acknowledged in this round has to give its receiver a brief with
what the desk had found, and some of earlier rounds the brief they gave before, byte for byte. Exits 1 if one is lost.
"""

import argparse
import http.client
import http.server
import json
import os
import pathlib
import random
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

DESK = "You are the intake desk of a garage."
WORKSHOP = "You are the workshop agent of a garage."
AT_ONCE = 3


def tool(name, *properties):
    parameters = {"type": "object", "properties": {name: {"type": "string"} for name in properties}}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def call(ident, name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": ident, "type": "function", "function": function}]}


class Talk:
    """One conversation, told apart from all others by the plate of its car."""

    def __init__(self, plate):
        self.plate = plate
        self.booking = f"bk-{plate}"
        self.opening = {"role": "user", "content": f"My brakes squeal, plate {plate}. Never call me before noon."}
        self.lookup = call(f"find-{plate}", "find_booking", {"plate": plate})
        self.found = {"role": "tool", "tool_call_id": f"find-{plate}",
                      "content": json.dumps({"booking": self.booking, "plate": plate, "quote": "318.40"})}

    def desk(self):
        """The desk's two exchanges: what it asks, and what upstream answers."""
        tools = [tool("find_booking", "plate"), tool("transfer_to_workshop")]
        moved = call(f"t-{self.plate}", "transfer_to_workshop", {})
        yield self.body(DESK, [self.opening], tools), self.lookup
        yield self.body(DESK, [self.opening, self.lookup, self.found], tools), moved

    def workshop(self):
        """The workshop's first request, from a client that hides the transfer."""
        tools = [tool("open_job", "booking"), tool("transfer_to_intake_desk")]
        return self.body(WORKSHOP, [self.opening], tools), {"role": "assistant", "content": f"Job of {self.plate} is open."}

    @staticmethod
    def body(instructions, messages, tools):
        return {"model": "m", "messages": [{"role": "system", "content": instructions}, *messages], "tools": tools}


class Upstream(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Answers what the request's own header says, and shows the last body it got for each id."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.got = {}

    def handle_error(self, request, client_address):
        pass  # Seam was killed: that is what this is about.


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got[self.headers["x-id"]] = body
        message = json.loads(self.headers["x-answer"])
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        reply = json.dumps({"id": "c", "object": "chat.completion", "model": "m",
                            "choices": [{"index": 0, "message": message, "finish_reason": finish}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


class Seam:
    def __init__(self, binary, upstream, store, log):
        self.port, admin = free_port(), free_port()
        environment = {
            "SEAM_UPSTREAM": f"http://127.0.0.1:{upstream.server_port}/v1",
            "SEAM_LISTEN": f"127.0.0.1:{self.port}",
            "SEAM_ADMIN_LISTEN": f"127.0.0.1:{admin}",
            "SEAM_STORE": f"file:{store}",
            "SEAM_STORE_TIMEOUT": "10s",
            "SEAM_PENDING_TTL": "1d",
            "SEAM_LOG": "warn",
        }
        began = time.monotonic()
        self.process = subprocess.Popen([binary], env=environment, stderr=log)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() - began > 30:
                    raise SystemExit("Seam does not start; see its log")
                time.sleep(0.002)
        self.started_in = time.monotonic() - began

    def exchange(self, upstream, ident, body, answer):
        """What upstream got; an OSError or HTTPException if the reply did not come whole."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            headers = {"content-type": "application/json", "authorization": "Bearer garage", "x-id": ident,
                       "x-answer": json.dumps(answer)}
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            reply = connection.getresponse()
            json.loads(reply.read())
            return upstream.got.pop(ident)
        finally:
            connection.close()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def brief_in(body):
    slot = json.loads(body)["messages"][0]["content"]
    at = slot.find("[Seam handoff ")
    return slot[at:] if at >= 0 else None


def transfer_until_killed(seam, upstream, prefix, acknowledged):
    """Transfers one conversation after the other; notes those that were acknowledged."""
    number = 0
    while True:
        talk = Talk(f"{prefix}-{number}")
        number += 1
        try:
            for step, (body, answer) in enumerate(talk.desk()):
                seam.exchange(upstream, f"{talk.plate}-{step}", body, answer)
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            return
        acknowledged.append(talk)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=200)
    options.add_argument("--seam", default="target/debug/seam")
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    chance = random.Random(options.seed)
    upstream = Upstream()
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    folder = tempfile.TemporaryDirectory(prefix="seam-kill9-")
    store, log = pathlib.Path(folder.name, "records"), pathlib.Path(folder.name, "seam.log").open("w")
    known, lost, changed, checked, total, began, slowest = {}, [], [], 0, 0, time.monotonic(), 0.0

    for round_number in range(options.rounds):
        seam = Seam(options.seam, upstream, store, log)
        acknowledged = []
        senders = [threading.Thread(target=transfer_until_killed,
                                    args=(seam, upstream, f"{round_number}-{n}", acknowledged)) for n in range(AT_ONCE)]
        for sender in senders:
            sender.start()
        time.sleep(chance.uniform(0.02, 0.25))
        seam.kill()
        for sender in senders:
            sender.join()
        total += len(acknowledged)

        seam = Seam(options.seam, upstream, store, log)
        slowest = max(slowest, seam.started_in)
        earlier = chance.sample(sorted(known), min(3, len(known)))
        for talk in acknowledged + [Talk(plate) for plate in earlier]:
            brief = brief_in(seam.exchange(upstream, f"{talk.plate}-w", *talk.workshop()))
            checked += 1
            if brief is None or talk.booking not in brief:
                lost.append(talk.plate)
            elif known.setdefault(talk.plate, brief) != brief:
                changed.append(talk.plate)
        seam.kill()

    took = time.monotonic() - began
    size = os.path.getsize(store) / 2**20
    print(f"{options.rounds} rounds in {took:.0f} s, {2 * options.rounds} kills: {total} transfers acknowledged, "
          f"{checked} briefs looked at, {len(lost)} lost, {len(changed)} changed; "
          f"the file has {size:.1f} MiB, the slowest restart took {slowest * 1000:.0f} ms")
    for plate in (lost + changed)[:10]:
        print(f"  {'lost' if plate in lost else 'changed'}: {plate}")
    if not total:
        print("nothing was acknowledged: this run shows nothing")
    return 0 if total and not lost and not changed else 1


if __name__ == "__main__":
    sys.exit(main())
