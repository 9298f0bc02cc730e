"""The agent stack beside Seam in tests/image.sh: a scripted upstream and its client, in one network namespace.

Hands a customer over through Seam, looks for the brief in what the upstream got, then reads an event stream during which
Seam is told to end."""

import http.client
import http.server
import json
import threading
import time

SEAM, UPSTREAM = 8484, 9000
CALL = {"id": "call_9", "type": "function", "function": {"name": "transfer_to_workshop", "arguments": "{}"}}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("find_booking", "transfer_to_workshop")
]
BEFORE = [
    {"role": "user", "content": "My brakes squeal, plate KA 17 XR."},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "find_booking", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": '{"booking": "bk_4471", "quote": "318.40"}'},
]
got = []


class Upstream(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        got.append(body)
        self.send_response(200)
        if body.get("stream"):
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for event in ["1", "2", "3", "[DONE]"]:
                data = f"data: {event}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
                time.sleep(1)
            self.wfile.write(b"0\r\n\r\n")
            return
        transfers = len(got) == 1
        message = {"role": "assistant", "content": None, "tool_calls": [CALL]} if transfers else {
            "role": "assistant", "content": "I have your booking."}
        reply = json.dumps({"id": "r", "model": "m", "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if transfers else "stop"}]}).encode()
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


def ask(body):
    client = http.client.HTTPConnection("127.0.0.1", SEAM, timeout=30)
    head = {"content-type": "application/json", "authorization": "Bearer k"}
    client.request("POST", "/v1/chat/completions", json.dumps(body), head)
    return client.getresponse()


def request(system, messages, tools):
    return {"model": "m", "tools": tools, "messages": [{"role": "system", "content": system}, *messages]}


upstream = http.server.ThreadingHTTPServer(("127.0.0.1", UPSTREAM), Upstream)
threading.Thread(target=upstream.serve_forever, daemon=True).start()
assert ask(request("You are the intake desk.", BEFORE, TOOLS)).status == 200
after = [{"role": "assistant", "content": None, "tool_calls": [CALL]},
         {"role": "tool", "tool_call_id": "call_9", "content": "ok"}]
reply = ask(request("You are the workshop agent.", BEFORE + after, TOOLS[:1]))
assert reply.status == 200 and reply.getheader("seam-outcome") == "taken_up", reply.getheaders()
system = got[1]["messages"][0]["content"]
assert system.startswith("You are the workshop agent.") and "318.40" in system, system
print("the receiver read a brief", flush=True)

stream = ask({"model": "m", "stream": True, "messages": BEFORE[:1]})
first = stream.read1()
print("a stream runs", flush=True)
text = first + stream.read()
assert text == b"data: 1\n\ndata: 2\n\ndata: 3\n\ndata: [DONE]\n\n", text
print("the stream ended whole", flush=True)
