"""The proxies that are compared: how each is started, and what the kernel says that it used."""
import os
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.sysconf("SC_PAGE_SIZE")
UPSTREAM = ("127.0.0.1", 9100)
FIRST_PORT = 9101


class Peer:
    """A proxy in front of the mock upstream; without a command it is the mock itself, asked directly."""

    def __init__(self, name, port, command=None, env=None):
        self.name, self.port, self.command, self.env = name, port, command, env or {}
        self.process, self.pids = None, []

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self, work):
        """Starts it and gives the milliseconds until it took a connection."""
        if self.command is None:
            return None
        # The settings are those given here, and no proxy's of the machine is meant.
        kept = {k: v for k, v in os.environ.items() if not k.startswith("SEAM_") and not k.lower().endswith("_proxy")}
        with open(os.path.join(work, self.name + ".out"), "ab") as out:
            began = time.monotonic()
            self.process = subprocess.Popen(
                self.command, env={**kept, **self.env}, cwd=work, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True)
        while not listening(self.port):
            if self.process.poll() is not None or time.monotonic() - began > 60:
                self.stop()
                raise RuntimeError(f"{self.name} does not listen; see {work}/{self.name}.out")
            time.sleep(0.0005)
        took = (time.monotonic() - began) * 1e3
        time.sleep(0.3)
        self.pids = descendants(self.process.pid)
        return took

    def stop(self):
        if self.process is None:
            return
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
                self.process.wait(5)
                break
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
        self.process, self.pids = None, []

    def cpu(self):
        """Seconds on a CPU, over all living threads."""
        total = 0
        for pid in self.pids:
            for line in each_task(pid):
                total += int(line.split()[0])
        return total / 1e9

    def rss(self):
        """MB resident now, over its processes."""
        return sum(status(pid, "VmRSS") for pid in self.pids) / 1024

    def peak(self):
        """The most MB that were resident since it started."""
        return sum(status(pid, "VmHWM") for pid in self.pids) / 1024


def listening(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def each_task(pid):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                yield file.read()
        except OSError:
            continue


def status(pid, field):
    try:
        with open(f"/proc/{pid}/status") as file:
            return next((int(line.split()[1]) for line in file if line.startswith(field + ":")), 0)
    except OSError:
        return 0


def descendants(root):
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            parents.setdefault(parent, []).append(int(pid))
        except OSError:
            continue
    found, todo = [], [root]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def configured(name, work, port):
    with open(os.path.join(HERE, "conf", name)) as file:
        text = file.read()
    for word, value in {"@WORK@": work, "@LISTEN@": f"127.0.0.1:{port}", "@PORT@": str(port),
                        "@UPSTREAM@": "%s:%d" % UPSTREAM, "@UPSTREAM_PORT@": str(UPSTREAM[1])}.items():
        text = text.replace(word, value)
    path = os.path.join(work, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def program(variable, *names):
    if os.environ.get(variable):
        return os.environ[variable]
    paths = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    return next(filter(None, (shutil.which(name, path=paths) for name in names)), None)


def seam(name, port, binary, **settings):
    env = {"SEAM_LISTEN": f"127.0.0.1:{port}", "SEAM_ADMIN_LISTEN": f"127.0.0.1:{port + 50}",
           "SEAM_UPSTREAM": "http://%s:%d/v1" % UPSTREAM, **settings}
    return Peer(name, port, [binary], env)


def peers(work, binary, only):
    """Every peer that can be started here, by name, and what is missing for the others."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384) if hard > 0 else 16384, hard))
    port = iter(range(FIRST_PORT, FIRST_PORT + 50))
    found = [Peer("direct", UPSTREAM[1])]
    missing = []

    nginx = program("NGINX_BIN", "nginx")
    at = next(port)
    if nginx:
        command = [nginx, "-c", configured("nginx.conf", work, at), "-p", work, "-g", "daemon off;"]
        found.append(Peer("nginx", at, command))
    else:
        missing.append("nginx: install the package nginx (Debian: apt-get install nginx-light), or set NGINX_BIN")
    found.append(seam("seam", next(port), binary))
    found.append(seam("seam-inject", next(port), binary, SEAM_CONTRACT="inject"))
    haproxy = program("HAPROXY_BIN", "haproxy")
    at = next(port)
    if haproxy:
        found.append(Peer("haproxy", at, [haproxy, "-f", configured("haproxy.cfg", work, at), "-db"]))
    else:
        missing.append("haproxy: install the package haproxy, or set HAPROXY_BIN")
    envoy = program("ENVOY_BIN", "envoy")
    at = next(port)
    if envoy:
        command = [envoy, "-c", configured("envoy.yaml", work, at), "-l", "error", "--use-dynamic-base-id"]
        command += ["--concurrency", str(os.cpu_count())]
        found.append(Peer("envoy", at, command))
    else:
        missing.append("envoy: set ENVOY_BIN to a binary")
    for key in sorted(os.environ):
        if key.startswith("PEER_") and key.endswith("_CMD"):
            name = key[len("PEER_"):-len("_CMD")]
            found.append(Peer(name.lower(), int(os.environ[f"PEER_{name}_PORT"]), shlex.split(os.environ[key])))
    needed = {"direct", "nginx", "seam", "seam-inject"}
    if only is not None:
        found = [peer for peer in found if peer.name in needed or peer.name in only]
    return {peer.name: peer for peer in found}, missing
