#!/usr/bin/env python3
"""A role that dies takes its exchanges with it, never its clients: each is answered soon, in words, and the next
request goes through. And how the whole begins and ends: signals, a second start, a reload."""
import base64
import ctypes
import errno
import json
import os
import re
import secrets
import signal
import socket
import time

from gateway import ROLES, Gateway, commit, git_setup, simple_policy
from harness import PATIENCE, Skip, main, test
from watch import UNHEARD

CURL = ["curl", "-sS", "--max-time", str(PATIENCE), "--suppress-connect-headers", "-D", "-"]


def setup(lab, named=False, **more):
    """named: an upstream whose name the resolver must look up."""
    up = lab.upstream("localhost" if named else "upstream.test")
    policy = simple_policy(up)
    if more.pop("allow", False):
        policy = simple_policy(up, write="allow").replace('say: "Writes are off, ask in #platform."', "use: api")
    if named:
        policy = policy.replace(", address: 127.0.0.1", "").replace("127.0.0.1/32", "127.0.0.0/8\", \"::1/128")
    return up, Gateway(lab, policy, {"api": lab.canary(secrets.token_urlsafe(32)).encode()}, **more)


def cut_off(lab, role, path="/ok", data=None, named=False, warm=True):
    """A request that finds the role stopped, and then the role dies. The answer and the upstream."""
    up, gw = setup(lab, named, allow=True)
    url = f"https://{up.name}:{up.port}"
    ask = [*CURL, *(["--data-binary", data] if data else []), url + path]
    env = gw.client_env()
    if warm:
        lab.run([*CURL, url + "/ok"], env=env, rc=0)
        lab.wait_for("its record", lambda: [r for r in gw.audit() if r["kind"] == "result"])
        time.sleep(1.1)  # longer than a released credential is used again
    else:  # the sandbox's own process has begun, or what is said of that to the role stands for the request below
        lab.run([*CURL, f"http://{up.name}:1/ok"], env=env, rc=0)
    before = len(up.requests())
    old = gw.pid(role)
    lab.stops(old)
    client = lab.start(ask, env=env)
    lab.wait_for("the request at its door", lambda: gw.unread(old))
    if role == "carrier":  # what was asked of it for the request may be on its way
        lab.expects(r'judge: credential "api" was not released: carrier-lost')
    assert client.popen.poll() is None, client.seen
    lab.kills(old)
    client.wait()
    client.reader.join(5)
    lab.wait_for("the next request", lambda: b" 200" in lab.run([*CURL, url + "/ok"], env=env).out)
    assert gw.cli("audit", "verify").rc == 0
    return client.seen, len(up.requests()) - before - 1, gw, up


def refusal(seen):
    """The problem document of an answer inside TLS, or the status of a refused CONNECT."""
    head, _, body = seen.replace(b"\r\n", b"\n").partition(b"\n\n")
    assert head.split(b" ")[1] in (b"409", b"502", b"503", b"504"), seen
    assert b"Countersign-Decision:" in head, seen
    return json.loads(body)["code"]


@test()
def what_is_past_the_limits_of_the_configuration_is_refused_in_words(lab):
    up, gw = setup(lab, config="limits: { sandboxes: 2, connections: 2 }\n")
    target, (host, port) = f"{up.name}:{up.port}", gw.proxy.split(":")
    lab.expects("no front for third: 2 are running")
    standing = []

    def connect(name):
        """What a CONNECT is answered; the connection stands."""
        sock = socket.create_connection((host, int(port)), PATIENCE)
        standing.append(sock)
        login = base64.b64encode(f"{name}:{gw.token(name)}".encode()).decode()
        sock.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {login}\r\n\r\n".encode())
        said = sock.recv(4096)
        while said and (b"\r\n\r\n" not in said or b" 503 " in said) and (more := sock.recv(4096)):
            said += more
        return said

    for name in ("first", "first", "second"):
        assert b" 200 " in connect(name), name
    assert b"too-many-connections" in connect("first")
    assert b" 200 " in connect("second")
    assert b"too-many-sandboxes" in connect("third")
    standing[0].close()  # makes room for another one of its own
    lab.wait_for("room", lambda: b" 200 " in connect("first"))
    for sock in standing:
        sock.close()


@test("F15 keeper")
def a_dead_keeper_is_no_credential_and_nothing_sent(lab):
    seen, sent, gw, up = cut_off(lab, "keeper", "/things", "a=1")
    assert refusal(seen) == "credential-unavailable" and sent == 0, seen


@test("F15 keeper-connect")
def a_dead_keeper_is_no_certificate(lab):
    seen, sent, gw, up = cut_off(lab, "keeper", warm=False)
    assert b"503" in seen and sent == 0, seen


@test("F15 resolver")
def a_dead_resolver_is_an_upstream_that_cannot_be_reached(lab):
    seen, sent, gw, up = cut_off(lab, "resolver", "/things", "a=1", named=True)
    assert refusal(seen) == "upstream-failed" and sent == 0, seen


@test("F15 carrier")
def a_dead_carrier_leaves_a_read_refused_and_a_write_unknown(lab):
    seen, sent, gw, up = cut_off(lab, "carrier")
    assert refusal(seen) == "gateway-restarting" and sent == 0, seen


@test("F15 carrier-write")
def a_dead_carrier_leaves_a_write_unknown(lab):
    seen, sent, gw, up = cut_off(lab, "carrier", "/things", "a=1")
    assert refusal(seen) == "outcome-unknown" and sent == 0, seen
    assert b"may have" in seen.lower(), seen
    results = gw.recorded(kind="result", path="/things")
    assert [r["outcome"] for r in results] == ["unknown"], results


@test("F15 judge")
def a_dead_judge_refuses_the_connect(lab):
    seen, sent, gw, up = cut_off(lab, "judge")
    assert b"CONNECT tunnel failed, response 503" in seen and sent == 0, seen


@test("F15 judge-hold")
def a_dead_judge_is_a_gateway_that_restarts(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    client = lab.start([*CURL, "--data-binary", "a=1", f"https://{up.name}:{up.port}/things"], env=gw.client_env())
    gw.pending()
    lab.kills(gw.pid("judge"))
    client.wait()
    client.reader.join(5)
    assert refusal(client.seen) == "gateway-restarting" and b"repeat the request" in client.seen, client.seen


@test("F15 ledger")
def a_dead_ledger_is_a_write_that_was_not_sent(lab):
    seen, sent, gw, up = cut_off(lab, "ledger", "/things", "a=1")
    assert refusal(seen) == "store-unavailable" and sent == 0, seen


@test("F15 lobby")
def who_waits_at_a_dead_lobbys_door_is_let_in_by_the_next(lab):
    seen, sent, gw, up = cut_off(lab, "lobby")
    assert sent == 1 and b" 200" in seen, seen


@test("F15 front")
def a_dead_front_closes_its_connections(lab):
    seen, sent, gw, up = cut_off(lab, "front")
    assert sent == 0 and b"200" not in seen, seen


@test("F15 answer")
def an_answer_the_carrier_did_not_finish_is_cut_not_ended(lab):
    up, gw = setup(lab)
    up.script({"/long": "/big?kib=600&split=100000&gate=g"})
    client = lab.start(["curl", "-sS", "--max-time", str(PATIENCE), "-o", "part", f"https://{up.name}:{up.port}/long"], env=gw.client_env())
    lab.wait_for("the first bytes", lambda: (lab.dir / "part").exists() and (lab.dir / "part").stat().st_size)
    lab.kills(gw.pid("carrier"))
    assert client.wait() == 18, client.seen  # a partial file


@test("F15 git")
def a_push_that_waits_when_the_judge_dies_is_told_by_git(lab):
    """Not in git's own dialect (who knew that is dead), but in words git shows, and not as a success."""
    git, gw, env, work = git_setup(lab)
    commit(lab, work, env)
    push = lab.start(["git", "push", "-q", "origin", "HEAD:main"], cwd=work, env=env)
    ticket = gw.pending()["id"]
    lab.kills(gw.pid("judge"))
    assert push.wait() != 0 and b"409" in push.seen, push.seen
    lab.wait_for("the ticket", lambda: [t["id"] for t in gw.tickets()] == [ticket])
    gw.approve(ticket)
    lab.wait_for("another judge", lambda: lab.run(["git", "ls-remote", git.url], env=env).rc == 0)
    lab.run(["git", "push", "-q", "origin", "HEAD:main"], cwd=work, env=env, rc=0)
    assert len(git.landed()) == 1, git.landed()


def break_channels(pid):
    """Ends every channel of this role but the one to its parent, as a fault in both would: the processes live on."""
    libc, ended = ctypes.CDLL(None, use_errno=True), 0
    pidfd = os.pidfd_open(pid)
    for fd in [int(name) for name in os.listdir(f"/proc/{pid}/fd") if int(name) > 3]:
        got = libc.syscall(438, pidfd, fd, 0)  # pidfd_getfd(2)
        if got < 0 and ctypes.get_errno() == errno.EBADF:
            continue  # closed meanwhile
        if got < 0:
            raise Skip(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
        if not os.readlink(f"/proc/self/fd/{got}").startswith("socket:"):
            os.close(got)
            continue
        with socket.socket(fileno=got) as sock:
            if sock.family == socket.AF_UNIX and sock.type == socket.SOCK_STREAM and not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                sock.shutdown(socket.SHUT_RDWR)
                ended += 1
    os.close(pidfd)
    return ended


@test()
def a_channel_that_breaks_between_two_that_live_is_made_anew(lab):
    lab.expects("parent: the channel between .* broke; they get another one", UNHEARD)
    up, gw = setup(lab, named=True)
    url, env = f"https://{up.name}:{up.port}", gw.client_env()
    lab.run([*CURL, url + "/ok"], env=env, rc=0)
    before = {role: gw.pid(role) for role in (*ROLES, "front")}
    roles = ("judge", "carrier", "keeper", "ledger")
    healed = lambda: re.findall(rb"the channel between .* broke; they get another one", gw.process.seen)  # noqa: E731
    for role in roles:
        ask = [*CURL, "--data-binary", f"by={role}", f"{url}/things/{role}"]
        waits = lab.start(ask, env=env) if role in ("judge", "ledger") else None
        if waits:
            gw.pending()
        told = len(healed())
        broken = break_channels(before[role])
        assert broken >= 3
        lab.wait_for(f"other channels of the {role}", lambda: len(healed()) >= told + broken)
        if waits:  # what was parked over one of them is told so, and its ticket waits
            waits.wait()
            assert refusal(waits.seen) in ("gateway-restarting", "store-unavailable"), waits.seen
        lab.wait_for(f"a read past the {role}", lambda: b" 200" in lab.run([*CURL, url + "/ok"], env=env).out)
        again = lab.start(ask, env=env)
        gw.approve(gw.pending()["id"])
        assert again.wait() == 0 and b" 200" in again.seen, again.seen
    assert {role: gw.pid(role) for role in before} == before, "one was started anew"
    assert up.effects() == {"GET /ok": up.effects()["GET /ok"], **{f"POST /things/{role}": 1 for role in roles}}
    assert gw.cli("audit", "verify").rc == 0


@test()
def a_role_that_hangs_is_replaced(lab):
    """Five of them at once, stopped: each is asked for a sign of life, and ended when it gives none for a minute."""
    lab.expects("parent: the .* does not answer; it is ended", "parent: the .* ended by signal 9; ", UNHEARD)
    up, gw = setup(lab, named=True)
    url, env = f"https://{up.name}:{up.port}", gw.client_env()
    lab.run([*CURL, url + "/ok"], env=env, rc=0)
    before = {role: gw.pid(role) for role in (*ROLES, "front")}
    hung = ("judge", "carrier", "resolver", "lobby", "front")
    for role in hung:
        lab.stops(before[role])
    for role in hung:
        lab.wait_for(f"the end of the {role}", lambda: not os.path.exists(f"/proc/{before[role]}"))
    lab.wait_for("the next request", lambda: b" 200" in lab.run([*CURL, url + "/ok"], env=env).out)
    assert all(gw.pid(role) == pid for role, pid in before.items() if role not in hung), "who answered was ended"


def sockets(gw):
    return sorted(str(p.relative_to(gw.state)) for p in gw.state.rglob("*") if p.is_socket())


def ends_clean(lab, number):
    up, gw = setup(lab)
    listener = gw.cli_json("sandbox", "create", "own")
    assert listener["token"]
    lab.run([*CURL, f"https://{up.name}:{up.port}/ok"], env=gw.client_env(), rc=0)
    roles = [gw.pid(role) for role in (*ROLES, "front")]
    port = int(gw.proxy.rpartition(":")[2])
    assert "control.sock" in sockets(gw), sockets(gw)
    gw.process.signal(number)
    assert gw.process.wait() == 0
    lab.wait_for("the end of all", lambda: not any(os.path.exists(f"/proc/{pid}") for pid in roles))
    assert sockets(gw) == [], sockets(gw)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    done = gw.cli("status")
    assert done.rc != 0 and b"countersign up" in done.both, done.text()
    gw.up()
    assert gw.cli("status").rc == 0


@test("F17 term")
def term_leaves_nothing_running_and_no_socket(lab):
    ends_clean(lab, signal.SIGTERM)


@test("F17 int")
def ctrl_c_leaves_nothing_running_and_no_socket(lab):
    ends_clean(lab, signal.SIGINT)


@test("F17 group")
def ctrl_c_at_a_terminal_reaches_every_role_and_still_ends_in_order(lab):
    up, gw = setup(lab)
    os.killpg(gw.process.pid, signal.SIGINT)
    assert gw.process.wait() == 0
    assert b"restarting it" not in gw.process.seen, gw.process.seen
    assert sockets(gw) == []


@test("F17 blocked")
def signals_that_were_blocked_at_the_start_are_heeded(lab):
    """A service manager or a shell that blocks them hands that down: without SIGCHLD no role is started again."""
    theirs = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, theirs)
    try:
        up, gw = setup(lab)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    gw.kill("carrier")
    lab.wait_for("the next request", lambda: b" 200" in lab.run([*CURL, f"https://{up.name}:{up.port}/ok"], env=gw.client_env()).out)
    gw.process.signal(signal.SIGHUP)
    gw.process.wait_line("reloaded: ")
    for pid in (gw.process.pid, *(gw.pid(role) for role in (*ROLES, "front"))):
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            blocked = next(line for line in status if line.startswith("SigBlk"))
        assert int(blocked.split()[1], 16) == 0, (pid, blocked)
    gw.process.signal(signal.SIGTERM)
    assert gw.process.wait() == 0
    gw.up()
    gw.process.signal(signal.SIGINT)
    assert gw.process.wait() == 0


@test("F17 waiting")
def the_end_answers_who_waits_in_words(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    client = lab.start([*CURL, "--data-binary", "a=1", f"https://{up.name}:{up.port}/things"], env=gw.client_env())
    ticket = gw.pending()["id"]
    os.killpg(gw.process.pid, signal.SIGTERM)  # as a service manager does: to every process
    assert gw.process.wait() == 0
    client.wait()
    client.reader.join(5)
    assert refusal(client.seen) == "gateway-ending" and ticket.encode() in client.seen, client.seen
    gw.up()
    assert [t["id"] for t in gw.tickets()] == [ticket]


@test("F17 git")
def the_end_answers_git_in_its_dialect(lab):
    lab.leaves("pending")
    git, gw, env, work = git_setup(lab)
    commit(lab, work, env)
    push = lab.start(["git", "push", "origin", "HEAD:main"], cwd=work, env=env)
    gw.pending()
    gw.process.signal(signal.SIGTERM)
    assert gw.process.wait() == 0
    assert push.wait() == 1 and b"is being stopped" in push.seen, push.seen


@test("F17 effect")
def the_end_lets_what_was_sent_be_answered(lab):
    up, gw = setup(lab, allow=True)
    up.script({"POST /things": "/slow?ms=400"})
    client = lab.start([*CURL, "--data-binary", "a=1", f"https://{up.name}:{up.port}/things"], env=gw.client_env())
    lab.wait_for("the effect", lambda: up.effects().get("POST /things"))
    gw.process.signal(signal.SIGTERM)
    assert gw.process.wait() == 0
    client.wait()
    client.reader.join(5)
    assert b"HTTP/1.1 200" in client.seen, client.seen
    gw.up()
    assert [r["outcome"] for r in gw.audit() if r["kind"] == "result" and r.get("path") == "/things"] == ["answered"]


@test("F17 reads")
def the_end_loses_no_record(lab):
    up, gw = setup(lab)
    for n in range(5):
        lab.run([*CURL, f"https://{up.name}:{up.port}/ok"], env=gw.client_env(), rc=0)
    gw.process.signal(signal.SIGTERM)
    assert gw.process.wait() == 0
    gw.up()
    assert sum(r["kind"] == "result" and r.get("path") == "/ok" for r in gw.audit()) == 5


@test("F17 second")
def a_second_start_on_the_same_state_is_refused_and_harms_nothing(lab):
    up, gw = setup(lab)
    before = sockets(gw)
    done = lab.run(["countersign", "up", "--config", gw.config])
    assert done.rc not in (0, 10, 11) and b"runs on" in done.both and str(gw.state).encode() in done.both, done.text()
    assert sockets(gw) == before and gw.cli("status").rc == 0
    assert b" 200" in lab.run([*CURL, f"https://{up.name}:{up.port}/ok"], env=gw.client_env(), rc=0).out


@test()
def the_user_ids_begin_where_the_configuration_says(lab):
    if os.geteuid() != 0:
        raise Skip("an ordinary user has no others to give")
    up, gw = setup(lab, config="uid_base: 70000\n")
    users = [int(re.search(r"Uid:\s+(\d+)", open(f"/proc/{gw.pid(role)}/status").read())[1]) for role in ROLES]
    assert len(set(users)) == len(users) and all(70000 < user < 70100 for user in users), users
    assert gw.state.joinpath("keeper").stat().st_uid in users
    config, text = lab.dir / "other.yaml", gw.config.read_text().replace("state_dir: state", "state_dir: other")
    config.write_text(text.replace("70000", "70739"))  # the last one of the first gateway
    other = lab.start(["countersign", "up", "--config", config], ready=r"countersign is up")
    assert b"another gateway on this machine gives user ids from 70739 to 71478 as well" in other.seen, other.seen
    other.stop()
    config.write_text(text)
    done = lab.run(["countersign", "up", "--config", config])
    assert done.rc != 0 and b"another uid_base" in done.both and b"chown -R 700" in done.both, done.text()
    assert lab.dir.joinpath("other/keeper").stat().st_uid > 70739  # and nothing of it was changed


@test("B51 hup")
def a_hangup_with_a_broken_policy_keeps_the_old_one(lab):
    lab.expects("parent: reload refused, the old policy stays: ")
    up, gw = setup(lab)
    ask = [*CURL, f"https://{up.name}:{up.port}/ok"]
    good = gw.policy.read_text()
    gw.policy.write_text(good.replace("decide: allow", "decide: alow"))
    gw.process.signal(signal.SIGHUP)
    gw.process.wait_line(r"reload refused, the old policy stays: [^\n]*policy.yaml:\d+:\d+")
    assert b" 200" in lab.run(ask, env=gw.client_env(), rc=0).out
    gw.policy.write_text(good.replace("effect: read }\n    decide: allow\n    use: api", "effect: read }\n    decide: deny"))
    gw.process.signal(signal.SIGHUP)
    lab.wait_for("the new policy", lambda: b" 403" in lab.run(ask, env=gw.client_env(), rc=0).out)
    for role in ("judge", "keeper", "ledger"):  # who starts later gets the policy of now
        gw.kill(role)
    lab.wait_for("the same policy", lambda: b" 403" in lab.run(ask, env=gw.client_env()).out)


@test()
def a_judge_that_was_not_told_yet_who_there_is_calls_no_token_bad(lab):
    """A client that hears 407 gives its token up; one that hears 503 asks again."""
    up, gw = setup(lab)
    ask = ["curl", "-sS", "--max-time", str(PATIENCE), "-o", "/dev/null", "-w", "%{http_connect} %{http_code}", f"https://{up.name}:{up.port}/ok"]
    env = gw.client_env()
    assert lab.run(ask, env=env).out == b"200 200"
    ledger, judge = gw.pid("ledger"), gw.pid("judge")
    lab.expects("judge: the ledger (has not said a word for|speaks again)")  # on a machine that is slow enough
    os.kill(ledger, signal.SIGSTOP)
    try:
        lab.kills(judge)
        lab.wait_for("another judge", lambda: gw.pid("judge") not in (None, judge))
        gw.process.wait_line(rf'"pid":{gw.pid("judge")},"level":"info","msg":"policy ')
        said = {lab.run(ask, env=env).out for _ in range(5)}
    finally:
        os.kill(ledger, signal.SIGCONT)
    assert said == {b"503 000"}, said
    lab.wait_for("the next answer", lambda: said.add(out := lab.run(ask, env=env).out) or out == b"200 200")
    assert not any(b"40" in out for out in said), said


if __name__ == "__main__":
    main()
