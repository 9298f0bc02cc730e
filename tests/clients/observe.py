#!/usr/bin/env python3
"""Real agent clients through a Seam that only watches: every byte passes, and the report tells what it would have done.

    tests/clients/observe.py [--only REGEX] [--report]

A client has one conversation with a transfer, through a tap, Seam with SEAM_MODE=observe, another tap and the scripted
upstream of run.py. What both taps saw has to be the same: each request's and each reply's body, byte by byte, their
status, and their headers, save those that belong to a connection. The client has to end as it does without Seam.
Then `seam report` is asked of the Seam that still runs: it has to know the transfer as one that was observed and taken
up, with established facts, and how large the receiver's list would have been with its brief. --report prints each.

Environments, drivers and their folders are those of run.py.
"""
import argparse, collections, contextlib, hashlib, http.client, http.server, json, os, re, subprocess, sys, threading

import run as clients

# Of a connection, or changed by design: where Seam reads a reply, it asks for one that is not compressed.
OF_CONNECTION = {"host", "connection", "keep-alive", "transfer-encoding", "content-length", "te", "accept-encoding", "date",
                 "server"}


class Tap(http.server.ThreadingHTTPServer):
    """Passes requests on and keeps what went by."""
    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Handler)
        self.to, self.seen = port, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def pass_on(self):
        body = self.body()
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in ("host", "connection", "transfer-encoding", "content-length")}
        up = http.client.HTTPConnection("127.0.0.1", self.server.to, timeout=120)
        up.request(self.command, self.path, body or None, headers)
        reply = up.getresponse()
        self.send_response_only(reply.status, reply.reason)
        for name, value in reply.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        got = b""
        while part := reply.read1(65536):
            got += part
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.server.seen.append((self.command, self.path, kept(self.headers.items()), body, reply.status,
                                 kept(reply.getheaders()), got))
        self.wfile.write(b"0\r\n\r\n")
        up.close()

    do_GET = do_POST = do_DELETE = pass_on


def kept(headers):
    return tuple(sorted((name.lower(), value) for name, value in headers if name.lower() not in OF_CONNECTION))


def differences(before, behind):
    """What one tap saw and the other did not, of exchanges that may have run side by side."""
    short = lambda e: f"{e[0]} {e[1]} {hashlib.sha256(e[3]).hexdigest()[:12]} -> {e[4]} {hashlib.sha256(e[6]).hexdigest()[:12]}"
    one, other = collections.Counter(before), collections.Counter(behind)
    out = [f"only {side} Seam: {short(e)} {sorted(set(e[2]) | set(e[5]))}" for side, seen in
           (("before", one - other), ("behind", other - one)) for e in seen]
    return out


def report(process, *arguments):
    env = {"PATH": os.environ["PATH"], "SEAM_ADMIN_LISTEN": f"127.0.0.1:{process.admin}"}
    return subprocess.run([clients.SEAM, "report", *arguments], env=env, capture_output=True, text=True, check=True).stdout


def observe(case):
    """The client's end, both taps' exchanges, and the report as JSON and as text."""
    mock = [sys.executable, os.path.join(clients.DRIVERS, "mock_openai.py"), "--port", "0", "--record", os.devnull, *case[3]]
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(clients.Process(mock)).port()
        behind = stack.enter_context(Tap(port))
        seam = stack.enter_context(clients.seam_before(behind.server_port, None))
        before = stack.enter_context(Tap(seam.listens))
        ended = clients.drive(case, f"http://127.0.0.1:{before.server_port}/v1")
        return ended, before.seen, behind.seen, json.loads(report(seam, "--format", "json")), report(seam)


def without_seam(case):
    mock = [sys.executable, os.path.join(clients.DRIVERS, "mock_openai.py"), "--port", "0", "--record", os.devnull, *case[3]]
    with clients.Process(mock) as process:
        return clients.drive(case, f"http://127.0.0.1:{process.port()}/v1")


def faults(told):
    every = told["all"]
    established = sum(every["facts"].get(outcome, 0) for outcome in ("verified", "reformatted", "quoted"))
    checks = [
        (every["transfers"] > 0, "the report knows no transfer"),
        (set(told["arms"]) == {"observe"}, f"arms: {sorted(told['arms'])}"),
        (every["states"].get("taken_up", 0) > 0, f"nobody took up: {every['states']}"),
        (established > 0, f"nothing is established: {every['facts']}"),
        (every["tokens_after"] > every["tokens_before"] > 0 or every["tokens_after"] > 0,
         f"the brief has no size: {every['tokens_before']} and {every['tokens_after']} tokens"),
    ]
    return [what for holds, what in checks if not holds]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", default="")
    ap.add_argument("--report", action="store_true", help="print what the report says")
    a = ap.parse_args()
    if not os.path.isdir(clients.DRIVERS):
        print("SKIPPED: the clients' drivers (../shared/clients) are not beside this checkout")
        return 0
    os.environ["SEAM_MODE"] = "observe"
    failed = skipped = 0
    cases = [case for case in clients.CASES if re.search(a.only, case[0])]
    for case in cases:
        if not clients.interpreter(case[1]):
            print(f"{case[0]:48} SKIPPED: not installed (run.py --install)")
            skipped += 1
            continue
        plain = without_seam(case)
        ended, before, behind, told, text = observe(case)
        bad = differences(before, behind) + faults(told)
        if not before:
            bad.append("nothing was asked")
        if (plain.returncode, clients.said(plain)) != (ended.returncode, clients.said(ended)):
            bad.append(f"ended differently: exit {plain.returncode} and {ended.returncode}\n{ended.stderr[-400:]}")
        sent, got = sum(len(e[3]) for e in before), sum(len(e[6]) for e in before)
        every = told["all"]
        print(f"{case[0]:48} {len(before):3} exchanges, {sent:6} and {got:6} bytes unchanged; {every['transfers']} observed, "
              f"{every['tokens_before']} -> {every['tokens_after']} tokens  {'ok' if not bad else 'FAILED'}", flush=True)
        for line in bad:
            print("   ", line)
        if a.report:
            print(text)
        failed += bool(bad)
    print(f"{len(cases) - failed - skipped} of {len(cases)} ok, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
