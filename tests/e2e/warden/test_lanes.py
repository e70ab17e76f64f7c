#!/usr/bin/env python3
"""The network of started sandboxes: none, unless one is started with a lane; what it sends then is its own, is held
against the policy, and there is no other way out, by root's gateway and by an ordinary user's."""
import json
import os
import pathlib
import signal

from boxes import execute, inside, nothing_is_left, shell, start
from harness import main, test
from ways import asked, lanes

PYTHON = "/usr/bin/python3"
# Says "up", then asks once for each line it reads, over one connection that is kept alive: what came, or "over".
KEPT = r"""
import os, socket, sys
c = socket.create_connection(os.environ["http_proxy"][7:].rsplit(":", 1), 20)
print("up", flush=True)
for line in sys.stdin:
    try:
        c.sendall(f"GET http://{HOST}/kept HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        got = c.recv(65536)
        print(got.split(b"\r\n")[0].decode() or "over", flush=True)
    except OSError:
        print("over", flush=True)
"""
# Each way out that a process may try which follows no variable; says what was open.
OTHERWISE = r"""
import os, socket, stat, sys
found = []
def attempt(what, fn):
    try:
        fn()
    except OSError:
        return
    found.append(what)
def tcp(family, host, port):
    with socket.socket(family) as s:
        s.settimeout(2)
        s.connect((host, port))
for host, port in (("1.1.1.1", 443), ("10.0.0.1", 80), ("169.254.169.254", 80), ("127.0.0.1", int(sys.argv[1])), ("127.0.0.1", int(sys.argv[2]))):
    attempt(f"{host}:{port}", lambda: tcp(socket.AF_INET, host, port))
attempt("v6", lambda: tcp(socket.AF_INET6, "2606:4700:4700::1111", 443))
def ask(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(2)
        s.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\7example\3com\0\0\1\0\1", (server, 53))
        s.recv(512)
for server in ("127.0.0.53", "127.0.0.11", "1.1.1.1"):
    attempt("dns " + server, lambda: ask(server))
attempt("a name", lambda: socket.getaddrinfo("example.com", 443))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).sendto(b"x", ("1.1.1.1", 0)))
for top, folders, files in os.walk("/"):
    folders[:] = [] if top in ("/proc", "/sys", "/usr") else folders
    for name in files:
        attempt(f"socket {top}/{name}", lambda: stat.S_ISSOCK(os.lstat(os.path.join(top, name)).st_mode) or exec("raise OSError"))
for line in open("/proc/net/unix").read().splitlines()[1:]:
    words = line.split()
    if len(words) > 7 and words[3] == "00010000":
        found.append("listening " + words[7])
for path in ("/countersign/bundle.crt", "/countersign/ca.crt", "/etc/ssl/certs/ca-certificates.crt", "/countersign/new"):
    attempt("write " + path, lambda: open(path, "a").close())
attempt("the shim's descriptors", lambda: os.listdir("/proc/1/fd"))
print(found)
"""


class AtTerminal:
    """A lab whose gateway has a terminal, as one that somebody started by hand."""

    def __init__(self, lab):
        self.lab, self.ends = lab, os.openpty()

    def start(self, command, **more):
        if "up" in map(str, command):  # who leads a session and opens one has it
            command = ["sh", "-c", 'exec 9<>"$0" 9>&-; exec "$@"', os.ttyname(self.ends[1]), *command]
        return self.lab.start(command, **more)

    def __getattr__(self, name):
        return getattr(self.lab, name)


def lanes_of_both(function=None, at=lambda lab: lab):
    """As `both`, with the lanes' policy."""
    if function is None:
        return lambda function: lanes_of_both(function, at)
    for ordinary in (False, True):
        def case(lab, ordinary=ordinary):
            function(lab, *lanes(at(lab), ordinary))
        case.__name__ = function.__name__ + ("_by_an_ordinary_user" if ordinary else "")
        case.__doc__ = function.__doc__
        test()(case)
    return function


def sockets(gw):
    return sorted(p.name for p in (gw.state / "run").iterdir() if p.suffix == ".sock")

# A command with a lane of its own: it holds a token, listens in each way there is, and sends when it is told to.
APART = r"""
import ctypes, os, pathlib, socket, subprocess, sys, time
ports = []
for family, at in ((socket.AF_INET, ("127.0.0.1", 7000)), (socket.AF_UNIX, "\0apart"), (socket.AF_UNIX, "/tmp/apart")):
    ports.append(socket.socket(family))
    ports[-1].bind(at)
    ports[-1].listen()
home = pathlib.Path.home()
seen = [str(p) for top in ("/tmp", "/dev/shm", "/run", home) for p in pathlib.Path(top).iterdir() if p.name != "apart"]
seen += [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())]
seen += [line for line in open("/proc/self/status").read().splitlines()
         if line.startswith("Cap") and int(line.split()[1], 16) or line in ("NoNewPrivs:\t0", "Seccomp:\t0")]
try:
    seen.append(os.open("/dev/tty", os.O_RDWR))
except OSError:
    pass
shared = ctypes.CDLL(None).shmget(0x7a7a, 4096, 0o1666)
(home / "token").write_text(os.environ["TOKEN"])
pathlib.Path("/workspace/way").write_text(os.environ["http_proxy"][7:])
print("up", os.getpid(), os.getuid(), shared >= 0, seen, *(os.readlink(f"/proc/self/ns/{n}") for n in ("pid", "net", "ipc", "mnt")), flush=True)
while not os.path.exists("/workspace/go"):
    time.sleep(0.05)
ended = subprocess.run(["curl", "-sS", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", sys.argv[1]], capture_output=True)
subprocess.Popen(["sh", "-c", "while sleep 0.05; do echo >>/workspace/beats; done"], start_new_session=True,
                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while not os.path.exists("/workspace/beats"):
    time.sleep(0.05)
pathlib.Path("/workspace/file").write_text("of the one apart")
print(ended.stdout.decode() or ended.stderr, flush=True)
"""
# Its neighbour, the same user of the same sandbox: says what it got of it.
NEIGHBOUR = r"""
import ctypes, os, pathlib, signal, socket
libc, found, me = ctypes.CDLL(None, use_errno=True), [], os.getpid()
others = [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, me)]
for pid in others:
    found.append(f"process {pid}")
for pid in range(1, 400):
    try:
        if b"TOKEN=" in pathlib.Path(f"/proc/{pid}/environ").read_bytes():
            found.append(f"environ {pid}")
    except OSError:
        pass
    if pid in (1, me):
        continue
    for word, call in (("signal", lambda: os.kill(pid, 0)), ("limits", lambda: os.sched_setaffinity(pid, {0}))):
        try:
            call()
            found.append(f"{word} {pid}")
        except OSError:
            pass
    for word, number in (("ptrace", 16), ("seize", 0x4206)):
        if libc.ptrace(number, pid, None, None) == 0:
            found.append(f"{word} {pid}")
if libc.shmget(0x7a7a, 4096, 0) >= 0:
    found.append("shared memory")
host, port = pathlib.Path("/workspace/way").read_text().split(":")
for family, at in ((socket.AF_INET, (host, int(port))), (socket.AF_INET, ("127.0.0.1", 7000)), (socket.AF_UNIX, "\0apart"),
                   (socket.AF_UNIX, "/tmp/apart")):
    with socket.socket(family) as s:
        s.settimeout(5)
        try:
            s.connect(at)
            s.sendall(b"GET http://HOST/stolen HTTP/1.1\r\nHost: HOST\r\n\r\n")
            if b"403" not in (got := s.recv(200)):
                found.append(f"{at}: {got}")
        except OSError:
            pass
for top in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/home", "/workspace"):
    for path, _, names in os.walk(top):
        for name in names:
            try:
                if "t0ken" in (pathlib.Path(path) / name).read_bytes().decode("latin1"):
                    found.append(f"file {path}/{name}")
            except OSError:
                pass
print(found)
"""


def apart(gw, name):
    """A command with a lane of its own that has begun, and does not end by itself."""
    client = gw.lab.start(["countersign", "sandbox", "exec", "--lane", "web", name, "--", "sh", "-c", "echo up; exec sleep 600"],
                          env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})
    client.wait_line("up")
    assert [s for s in sockets(gw) if s.startswith("cell-")], sockets(gw)
    return client


@lanes_of_both(at=AtTerminal)
def a_command_with_a_lane_of_its_own_is_apart(lab, gw, up):
    """G3 G7 G24: its neighbours in the sandbox have nothing of it, and what it sends is its own, in its lane, until it ends."""
    url = f"https://{up.name}:{up.port}"
    stat = pathlib.Path(f"/proc/{gw.process.popen.pid}/stat").read_text()
    assert stat.rpartition(")")[2].split()[4] != "0", stat  # it has a terminal, which no command may have
    for n, (name, options) in enumerate((("none", ()), ("docs", ("--lane", "docs"))), 1):
        made = start(gw, name, *options)
        shell(gw, name, "touch /tmp/mine ~/mine /dev/shm/mine /run/mine")
        one = gw.lab.start(["countersign", "sandbox", "exec", "--lane", "web", "--env", "TOKEN=t0ken", name, "--", PYTHON, "-c", APART,
                            url + "/apart"], env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})
        one.wait_line("up")
        assert one.seen.startswith(b"up 2 1000 True [] "), one.seen
        shared = {os.readlink(f"/proc/self/ns/{n}") for n in ("pid", "net", "ipc", "mnt")}  # neither the machine's nor its sandbox's
        shared |= set(shell(gw, name, "for n in pid net ipc mnt; do readlink /proc/self/ns/$n; done").out.decode().split())
        assert len(shared) == 8 and not shared & set(one.seen.decode().split()), (shared, one.seen)
        spy = (PYTHON, "-c", NEIGHBOUR.replace("HOST", f"{up.name}:{up.plain_port}"))
        assert (spied := execute(gw, name, *spy)).out == b"[]\n", spied.out
        assert len(sockets(gw)) == n, sockets(gw)
        held, paused = "cgroup" in made["held_by"], gw.cli("sandbox", "pause", name)
        assert paused.rc == 0 if held else b"a command with a lane of its own runs in it" in paused.err, paused.text()
        if held:
            gw.cli("sandbox", "resume", name, rc=0)
        shell(gw, name, "touch go")
        assert one.wait() == 0 and one.seen.splitlines()[1] == b"200", one.seen
        lab.wait_for("its way closed", lambda: not [s for s in sockets(gw) if s.startswith("cell-")])
        shell(gw, name, "a=$(wc -c <beats); sleep 0.3; test $a = $(wc -c <beats) && cat file && rm file")
        sent = gw.recorded(n, kind="result", path="/apart")[-1]
        assert (sent["sandbox"], sent["generation"], sent["step"], sent["rule"]["id"]) == (name, 2 if held else 1, "1.2", "reads"), sent
        shell(gw, name, "TOKEN=t0ken sleep 600 >/dev/null 2>&1 &")  # who is not apart
        assert all(word in (spied := execute(gw, name, *spy)).out for word in (b"environ", b"signal", b"ptrace")), spied.out
        limits = "ulimit -d; ulimit -n"
        assert shell(gw, name, limits, options=("--lane", "web")).out == (said := shell(gw, name, limits).out), said
        assert held or b"unlimited" not in said, said
        room = "stat -f -c '%b %S' /tmp"
        own, whole = ([int(n) for n in shell(gw, name, room, options=o).out.split()] for o in (("--lane", "web"), ()))
        assert own[0] * own[1] * (1 if held else 16) == whole[0] * whole[1], (own, whole)
        shell(gw, name, "chmod 0 .")
        execute(gw, name, "true", options=("--lane", "web", "--dir", "/tmp"))
        shell(gw, name, "chmod 755 /workspace", options=("--dir", "/tmp"))
        assert asked(gw, up, name, "/others", rc=6 if n == 1 else 0) == ("000" if n == 1 else "403")
    assert {r["target"] for r in up.requests()} == {"/apart"}
    runs = [json.loads(row) for row in gw.cli("runs", "list", "--json", "-n", "100", rc=0).out.splitlines()]
    lane = {json.loads(gw.cli("runs", "show", r["id"], "--json", rc=0).out)["begin"].get("lane") for r in runs if r.get("command") == "1.2"}
    assert lane == {"web"}, lane
    apart(gw, "none").stop()
    lab.wait_for("the end of what nobody waits for", lambda: sockets(gw) == ["sb-docs.sock"])
    late = execute(gw, "none", "sleep", "600", rc=124, options=("--lane", "web", "--timeout", "1s"))
    assert sockets(gw) == ["sb-docs.sock"] or lab.wait_for("its end", lambda: sockets(gw) == ["sb-docs.sock"]), late
    for wrong, why in (("nowhere", b"no scope of the policy asks for the label lane with nowhere"), ("Web", b"a lane's name"), ("", b"a lane's name")):
        assert why in gw.cli("sandbox", "exec", "--lane", wrong, "none", "--", "true", rc=125).err, wrong
    for name in ("none", "docs"):
        gw.cli("sandbox", "destroy", name, rc=0)


@lanes_of_both
def what_it_sends_is_its_own(lab, gw, up):
    made = start(gw, "box", "--lane", "web")
    assert made["lane"] == "web", made
    start(gw, "other", "--lane", "docs")
    start(gw, "none")
    assert asked(gw, up, "box", "/mine") == "200"
    assert asked(gw, up, "other", "/others") == "403"
    assert asked(gw, up, "none", "/nobodys", rc=6) == "000"  # not even a name
    assert execute(gw, "none", "curl", "-sS", "-x", "http://127.0.0.1:3128", "http://x.test/", rc=7).out == b""
    assert shell(gw, "none", "ls /countersign; env | grep -ic proxy", rc=1).out == b"countersign-shim\n0\n"
    assert execute(gw, "box", PYTHON, "-c", "import os,urllib.request as u; print(u.urlopen(os.sys.argv[1]).status)",
                   f"https://{up.name}:{up.port}/python").out == b"200\n"
    assert [r["target"] for r in up.requests()] == ["/mine", "/python"], up.requests()
    read = gw.recorded(kind="result", path="/mine")[0]
    assert (read["sandbox"], read["generation"], read["rule"]["id"]) == ("box", 1, "reads"), read
    denied = gw.recorded(path="/others", verdict="deny")[0]
    assert (denied["sandbox"], denied["generation"]) == ("other", 1), denied
    born = gw.recorded(kind="sandbox", sandbox="box")[0]
    assert born["lane"] == "web" and "lane" not in gw.recorded(kind="sandbox", sandbox="none")[0], born
    listed = {s["name"]: s.get("lane") for s in gw.cli_json("sandbox", "started")["started"]}
    assert listed == {"box": "web", "other": "docs", "none": None}, listed
    assert b"lane web" in gw.cli("sandbox", "started", rc=0).out
    assert sockets(gw) == ["sb-box.sock", "sb-other.sock"]
    for words in (("sandbox", "create", "box"), ("run", "--name", "box", "--workspace", "/usr/share/doc", "--", "true")):
        assert gw.cli(*words).rc != 0, words  # nobody else is it
    for wrong in ("", "Web", "-web", "x" * 64):
        assert b"a lane's name" in gw.cli("sandbox", "start", "--lane", wrong, rc=1).err, wrong
    for name in ("box", "other", "none"):
        gw.cli("sandbox", "destroy", name, rc=0)
    assert sockets(gw) == []


@lanes_of_both
def each_request_names_the_command_that_sent_it(lab, gw, up):
    """The sandbox, its generation and its step: in the audit and with the run; also of what a command of before left behind."""
    url = f"https://{up.name}:{up.port}"
    start(gw, "box", "--lane", "web")
    left = ("sh", "-c", f"(while ! test -e go; do sleep 0.05; done; curl -sS {url}/left; curl -sS https://{up.name}:1/refused; touch went) "
            ">/dev/null 2>&1 & curl -sS -o /dev/null " + url + "/first")
    execute(gw, "box", *left)
    gw.cli("sandbox", "pause", "box", rc=0)
    gw.cli("sandbox", "resume", "box", rc=0)
    assert asked(gw, up, "box", "/second") == "200"
    shell(gw, "box", "touch go; while ! test -e went; do sleep 0.05; done; echo $JAVA_TOOL_OPTIONS | grep -c proxyHost=127.128.0.3")
    said = {path: gw.recorded(kind="result", path=path)[0] for path in ("/first", "/second", "/left")}
    assert {p: (r["sandbox"], r["generation"], r["step"]) for p, r in said.items()} == {
        "/first": ("box", 1, "1.1"), "/second": ("box", 2, "1.2"), "/left": ("box", 2, "1.1")}, said
    assert gw.recorded(path="/refused", verdict="deny")[0]["step"] == "1.1"
    for way in ("127.0.0.1:3128", "127.128.0.0:3128", "127.128.15.66:3128", "127.0.0.2:3128"):  # of no command
        told = execute(gw, "box", "curl", "-sS", "-x", way, f"http://{up.name}:{up.plain_port}/nobodys").out
        assert b"Which command of this sandbox sends this is not known" in told, told
    assert {r["target"] for r in up.requests()} == {"/first", "/second", "/left"}
    runs = {}
    def whole():
        for row in gw.cli("runs", "list", "--json", "-n", "100", rc=0).out.splitlines():
            row = json.loads(row)
            if row["what"] == "command":
                runs[row["command"]] = json.loads(gw.cli("runs", "show", row["id"], "--json", rc=0).out)
        return runs["1.1"]["effects"]["requests"] == 2 and runs["1.2"]["effects"]["requests"] == 1
    lab.wait_for("what each sent", whole)
    effects = runs["1.1"]["effects"]
    assert effects["refused"] == 1 and effects["exchanges"] == [said["/first"]["exchange"], said["/left"]["exchange"]], effects
    assert effects["bytes_in"] == said["/first"]["bytes_in"] + said["/left"]["bytes_in"] > 0, effects
    assert runs["1.1"]["begin"]["lane"] == "web" and runs["1.2"]["end"]["egress"]["requests"] <= 1, runs["1.2"]
    assert b"what it sent:" in gw.cli("runs", "show", runs["1.1"]["id"], rc=0).out
    gw.cli("sandbox", "destroy", "box", rc=0)


@lanes_of_both
def a_lane_is_the_one_way_out(lab, gw, up):
    """G3 G4 G6 G7 G8 G22 G25: nor is there a socket, a descriptor or a file in there to find another by."""
    start(gw, "box", "--lane", "web")
    desk = gw.page.split("/")[2].rpartition(":")[2]
    done = execute(gw, "box", PYTHON, "-c", OTHERWISE, desk, str(up.port))
    assert done.out == b"[]\n", done.text()
    assert execute(gw, "box", "curl", "-sS", "--noproxy", "*", f"https://{up.name}:{up.port}/around", rc=6).out == b""
    for port in (desk, gw.proxy.rpartition(":")[2]):  # what is on this machine is no upstream
        assert execute(gw, "box", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--noproxy", "",
                       f"http://127.0.0.1:{port}/").out == b"403"
    assert up.requests() == []
    assert asked(gw, up, "box", "/there") == "200"
    gw.cli("sandbox", "destroy", "box", rc=0)


def kept_connection(gw, up, name):
    return gw.lab.start(["countersign", "sandbox", "exec", "--stdin", name, "--", PYTHON, "-c",
                         f"HOST = '{up.name}:{up.plain_port}'" + KEPT],
                        env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]}, stdin=-1)


def once_more(client, want):
    n = client.seen.count(b"\n")
    client.popen.stdin.write(b"\n")
    client.popen.stdin.flush()
    client.lab_wait(lambda: client.seen.count(b"\n") > n)
    assert client.seen.splitlines()[-1] == want, client.seen


@lanes_of_both
def what_was_connected_before_a_pause_is_dead_after_it(lab, gw, up):
    """Each generation is another one to the gateway, and no connection leads from one into the next."""
    start(gw, "box", "--lane", "web")
    client = kept_connection(gw, up, "box")
    client.lab_wait = lambda fn: lab.wait_for("what it says", fn)
    client.wait_line("up")
    once_more(client, b"HTTP/1.1 200 OK")
    once_more(client, b"HTTP/1.1 200 OK")
    gw.cli("sandbox", "pause", "box", rc=0)
    gw.cli("sandbox", "resume", "box", rc=0)
    once_more(client, b"over")
    client.popen.stdin.close()
    assert client.wait() == 0, client.seen
    assert asked(gw, up, "box", "/second") == "200"
    assert gw.recorded(kind="result", path="/second")[0]["generation"] == 2
    assert {r["generation"] for r in gw.recorded(2, kind="result", path="/kept")} == {1}
    assert b"lane web" in gw.cli("sandbox", "started", rc=0).out
    gw.cli("sandbox", "destroy", "box", rc=0)
    start(gw, "box", "--lane", "docs")
    assert asked(gw, up, "box", "/third") == "403"
    assert gw.recorded(path="/third", verdict="deny")[0]["generation"] == 3
    gw.cli("sandbox", "destroy", "box", rc=0)
    start(gw, "box")
    assert asked(gw, up, "box", "/fourth", rc=6) == "000" and sockets(gw) == []
    gw.cli("sandbox", "destroy", "box", rc=0)


@lanes_of_both
def files_that_outlive_it_open_no_lane(lab, gw, up):
    """What begins with its files has a lane of its own, or none; and none of what it was given is in them."""
    start(gw, "box", "--lane", "web")
    shell(gw, "box", "echo kept > file; cp -r /countersign /proc/self/environ . 2>/dev/null; true")
    kept = gw.cli_json("sandbox", "snapshot", "box", "was")["id"]
    gw.cli("sandbox", "fork", "box", "twin", rc=0)
    gw.cli("sandbox", "fork", "box", "lane", "--lane", "docs", rc=0)
    gw.cli("sandbox", "restore", "was", "again", rc=0)
    gw.cli("sandbox", "restore", "was", "open", "--lane", "web", rc=0)
    listed = {s["name"]: s.get("lane") for s in gw.cli_json("sandbox", "started")["started"]}
    assert listed == {"box": "web", "twin": None, "lane": "docs", "again": None, "open": "web"}, listed
    for name, said, rc in (("box", "200", 0), ("twin", "000", 6), ("lane", "403", 0), ("again", "000", 6), ("open", "200", 0)):
        assert asked(gw, up, name, f"/{name}", rc=rc) == said, name
        assert shell(gw, name, "cat file").out == b"kept\n"
    assert sorted(r["target"] for r in up.requests()) == ["/box", "/open"]
    assert kept and gw.recorded(kind="result", path="/open")[0]["generation"] == 1
    for name in listed:
        gw.cli("sandbox", "destroy", name, rc=0)


@test()
def whoever_is_killed_nothing_stays_open(lab):
    """G24 G25: it has its lane or no network, whichever role ends; and with it ends its lane."""
    gw, up = lanes(lab)
    start(gw, "box", "--lane", "web")
    assert asked(gw, up, "box", "/before") == "200"
    for role in ("front", "judge", "carrier", "keeper", "ledger", "desk", "lobby", "resolver"):
        gw.kill(role)
        lab.wait_for(f"its lane without that {role}", lambda: asked(gw, up, "box", f"/{role}", rc=None) == "200")
    one = apart(gw, "box")
    shim = min(pid for pid, words in inside(gw) if words.startswith(b"/countersign/countersign-shim"))
    lab.kills(shim)
    lab.wait_for("its end", lambda: not gw.cli_json("sandbox", "started")["started"])
    assert sockets(gw) == [] and one.wait() == 125, one.seen
    start(gw, "box", "--lane", "web")
    assert asked(gw, up, "box", "/again") == "200"
    one = apart(gw, "box")
    gw.kill("warden")
    lab.wait_for("its end", lambda: sockets(gw) == [])
    nothing_is_left(gw)
    lab.wait_for("another", lambda: gw.cli("sandbox", "start", "box", "--lane", "web").rc == 0)
    assert asked(gw, up, "box", "/anew") == "200" and one.wait() == 125, one.seen
    apart(gw, "box")
    gw.process.signal(signal.SIGKILL)
    gw.process.wait()
    gw.up()
    assert sockets(gw) == [] and gw.cli_json("sandbox", "started")["started"] == []
    nothing_is_left(gw)
    start(gw, "box", "--lane", "web")
    assert asked(gw, up, "box", "/last") == "200"
    gw.cli("sandbox", "destroy", "box", rc=0)


@lanes_of_both
def as_many_connections_as_it_has_room_for(lab, gw, up):
    """G20: whoever opens more waits itself; commands of it begin meanwhile, and its neighbour does not notice."""
    start(gw, "greedy", "--lane", "web", "--files", "256")
    start(gw, "neighbour", "--lane", "web")
    many = ("import os, socket, time\nall = []\nway = os.environ['http_proxy'][7:].rsplit(':', 1)\ntry:\n while len(all) < 200:\n"
            "  all.append(socket.create_connection(way, 1))\n"
            "except OSError: pass\nprint(len(all), flush=True)\ntime.sleep(600)")
    client = gw.lab.start(["countersign", "sandbox", "exec", "greedy", "--", PYTHON, "-c", many],
                          env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})
    client.wait_line("200")
    for n in range(3):
        assert execute(gw, "greedy", "echo", "fine").out == b"fine\n"
        assert asked(gw, up, "neighbour", f"/{n}") == "200"
    client.stop()
    lab.wait_for("room again", lambda: asked(gw, up, "greedy", "/mine", rc=None) == "200")
    for name in ("greedy", "neighbour"):
        gw.cli("sandbox", "destroy", name, rc=0)


main()
