#!/usr/bin/env python3
"""The lab itself: its servers do what tests rely on, and its searches and checks can fail."""
import base64
import os
import sqlite3
import subprocess
import sys

import harness
from gateway import Text, TextFile
from harness import main, test


@test()
def the_canary_search_sees_every_form(lab):
    done = lab.run([sys.executable, harness.HERE / "lab/canary.py", "--self-test"], rc=0)
    assert b"\nok canary: nothing found where nothing is\n" in done.out


@test()
def the_search_of_memory_sees_a_planted_secret(lab):
    done = lab.run([sys.executable, harness.HERE / "lab/memory.py", "--self-test"], rc=0)
    assert b"\nok canary: nothing found in a process that has none\n" in done.out and b"found in a process as literal" in done.out


@test()
def the_git_server_takes_pushes_and_counts_them(lab):
    git = lab.git_server()
    again = lab.run([git.program, "start", git.dir], rc=0)
    assert f"port={git.port}\n".encode() in again.out
    # The client reads the password from a file outside what is searched, as the gateway would.
    helper = f"!f() {{ echo username=demo; echo password=$(cat {git.password_file}); }}; f"
    env = {"GIT_SSL_CAINFO": git.ca, "GIT_TERMINAL_PROMPT": "0"}
    url = f"https://localhost:{git.port}/demo/app.git"
    here = ["git", "-c", f"credential.helper={helper}", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    lab.run(["git", "clone", "-q", url, "anonymous"], env, rc=128)
    lab.run(here + ["clone", "-q", url, "app"], env, rc=0)
    (lab.dir / "app/big").write_bytes(bytes(range(256)) * 8192 + harness.os.urandom(3 << 20))
    lab.run(here + ["add", "big"], env, lab.dir / "app", rc=0)
    lab.run(here + ["commit", "-qm", "big"], env, lab.dir / "app", rc=0)
    lab.run(here + ["push", "-q"], env, lab.dir / "app", rc=0)
    assert [ref for _, _, ref in git.landed()] == ["refs/heads/main"]
    posts = [r for r in git.log() if r["method"] == "POST" and r["uri"].endswith("/git-receive-pack")]
    assert len(posts) == 2 and int(posts[1]["bytes"]) > 3 << 20, posts  # a probe, then the pack in chunks
    assert all(r["user"] == "demo" for r in posts)


def curl(lab, up, path, *more, rc=0):
    return lab.run(["curl", "-sS", "--cacert", up.ca, "--resolve", f"{up.name}:{up.port}:127.0.0.1", *more,
                    f"https://{up.name}:{up.port}{path}"], rc=rc)


@test()
def the_upstream_records_and_counts(lab):
    up = lab.upstream("api.test", "old.test:expired")
    curl(lab, up, "/x?y=1", "-d", "hello")
    curl(lab, up, "/x", "-H", "Transfer-Encoding: chunked", "-d", "hello")
    assert up.effects() == {"POST /x": 2}
    one, two = up.requests()
    assert up.raw(one["conn"]).startswith(b"POST /x?y=1 HTTP/1.1\r\nHost: api.test")
    assert up.raw(one["conn"]).endswith(b"\r\n\r\nhello")
    assert up.body(two["n"]) == b"hello" and b"\r\n5\r\nhello\r\n0\r\n\r\n" in up.raw(two["conn"])
    curl(lab, up, "/drop", rc=52)
    curl(lab, up, "/early?bytes=5", rc=18)
    up.script({"GET /y": "/status?code=418&reason=Teapot"})
    assert curl(lab, up, "/y", "-i").out.startswith(b"HTTP/1.1 418 Teapot\r\n")
    lab.run(["curl", "-sS", "--cacert", up.ca, "--resolve", f"old.test:{up.port}:127.0.0.1",
             f"https://old.test:{up.port}/"], rc=60)


@test()
def the_upstream_echoes_in_every_form(lab):
    up = lab.upstream("api.test")
    field = ("-H", "X-Field: probe/+value")
    want = b"probe/+value"
    assert curl(lab, up, "/echo?only=x-field&chunk=3,1", *field).out == want
    assert curl(lab, up, "/echo?only=x-field&form=base64&shift=1", *field).out == base64.b64encode(b"~" + want)
    assert curl(lab, up, "/echo?only=x-field&form=percent", *field).out.startswith(b"%70%72%6F")
    zipped = curl(lab, up, "/echo?only=x-field&enc=gzip", *field).out
    assert zipped.startswith(b"\x1f\x8b")
    assert curl(lab, up, "/echo?only=x-field&enc=gzip", "--compressed", *field).out == want
    basic = curl(lab, up, "/echo?form=basic", "-u", "a:b").out
    assert basic == b"a:b"


@test()
def a_gate_holds_the_next_event(lab):
    up = lab.upstream("api.test")
    client = lab.start(["curl", "-sSN", "--cacert", up.ca, "--resolve", f"api.test:{up.port}:127.0.0.1",
                        f"https://api.test:{up.port}/sse?n=2&gate=g"], ready=r"id: 0\n")
    assert b"id: 1" not in client.seen
    up.release("g")
    client.wait_line(r"id: 1\n")
    assert client.wait() == 0


@test()
def verdaccio_serves_npm(lab):
    registry = lab.verdaccio()
    registry.publish("lab-left-pad", "1.0.0", {"index.js": "module.exports = 1\n"})
    status, body = registry.ask("GET", "lab-left-pad")
    assert status == 200 and b'"1.0.0"' in body
    try:
        registry.password, kept = "wrong", registry.password
        registry.ask("GET", "lab-left-pad")
        raise AssertionError("a wrong password was taken")
    except harness.servers.urllib.request.HTTPError as refused:
        assert refused.code in (401, 403), refused
    finally:
        registry.password = kept


NPM = """#!/bin/sh
[ "$1" != --version ] || { echo 10.0.0; exit 0; }
echo "$1" >>"$RUNS"
until [ -e "$RUNS.go" ]; do sleep 0.02; done
mkdir node_modules
"""


@test()
def packages_are_installed_once_when_two_ask(lab):
    """With nothing cached, and both at once: one installs, and the other one waits until all of it is there."""
    tools, runs = lab.dir / "tools", lab.dir / "runs"
    tools.mkdir()
    (tools / "npm").write_text(NPM)
    (tools / "npm").chmod(0o755)
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "COUNTERSIGN_LAB_CACHE": lab.dir / "cache", "RUNS": runs}
    code = f"import sys; sys.path.insert(0, {str(harness.HERE / 'lab')!r}); import pathlib, servers; print('asks', flush=True);" \
           f"place = servers.npm_modules(pathlib.Path({str(harness.HERE / 'npm')!r})); print('has', (place / 'node_modules').is_dir())"
    both = [lab.start([sys.executable, "-c", code], env=env, ready="asks") for _ in range(2)]
    lab.wait_for("the first one's npm", runs.exists)
    (lab.dir / "runs.go").touch()
    for one in both:
        one.wait_line("has True")
        assert one.wait() == 0
    assert runs.read_text() == "ci\n", runs.read_text()


@test()
def a_wait_ends_with_the_server_it_is_for(lab):
    server = lab.start(["sh", "-c", "echo ready; read line; echo no further; exit 3"], ready="ready", stdin=subprocess.PIPE)
    try:
        lab.wait_for("what never comes", server.popen.stdin.close)  # it ends while it is waited for, not before
    except AssertionError as why:
        assert "ended (3)" in str(why) and "no further" in str(why), why
    else:
        raise AssertionError("it waited to the end")


@test()
def a_change_that_fits_nowhere_is_seen(lab):
    text, file = Text("decide: hold\n"), TextFile(lab.dir / "policy.yaml")
    file.write_text("a: 1\n" + text + "b: 2\n")
    assert text.replace("hold", "deny") == "decide: deny\n"
    for one in (text, file.read_text(), text.replace("hold", "deny"), "a: 1\n" + text, text + "b: 2\n"):
        try:
            one.replace("decide: alow", "decide: deny")
        except AssertionError as e:
            assert "nothing to replace" in str(e)
        else:
            raise AssertionError(f"{one!r} was changed nowhere, and that was not said")


@test()
def what_is_left_running_is_seen(lab):
    inner = harness.Lab("inner")
    subprocess.run(["setsid", "-f", "sleep", "600"], check=True)
    wrong = [] if not (left := harness.leftovers(grace=0.2)) else [c for _, c in left]
    assert wrong == ["sleep 600"], wrong
    inner.canary("canary-0123456789")
    inner.capture("page", base64.b64encode(b"ab canary-0123456789"))
    wrong = inner.close()
    assert len(wrong) == 1 and "the canary is in" in wrong[0], wrong
    harness.shutil.rmtree(inner.dir)


@test()
def what_no_test_announced_is_seen(lab):
    """A role that dies, before or at the end; an error line; a sanitizer's report; a ticket left open; a gateway that
    ends by itself. And each of them, announced, is not."""
    died = '{"time":"t","role":"parent","pid":1,"level":"warn","msg":"the judge (pid 7) ended by signal 11; restarting it"}'
    lost = '{"time":"t","role":"ledger","pid":1,"level":"error","msg":"the store failed: disk \\"x\\""}'
    asan = "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x1"
    for announced in (False, True):
        inner = harness.Lab("inner")
        said = "\n".join(("countersign is up", died, lost, '{"level":"error"}', ""))
        inner.start(["sh", "-c", 'printf %s "$1"', "-", said]).wait()
        if not announced:
            inner.start(["sh", "-c", "echo; echo '" + asan + "'"]).wait()
        (inner.dir / "state/store").mkdir(parents=True)
        store = sqlite3.connect(inner.dir / "state/store/ledger.db")
        store.executescript("CREATE TABLE ticket (state TEXT); INSERT INTO ticket VALUES ('done'), ('unknown'), ('unknown')")
        store.close()
        program = inner.dir / "gateway"
        program.write_text("#!/bin/sh\nexit 3\n")
        program.chmod(0o755)
        gateway = inner.start([program, "up"])
        gateway.wait()
        if announced:
            inner.expects(r"parent: the judge \(pid 7\) ended", "ledger: the store failed: ")
            inner.leaves("unknown")
            gateway.told = True
        wrong = inner.close()
        seen = [any(part in text for text in wrong) for part in
                ("the judge (pid 7) ended by signal 11", 'the store failed: disk "x"', "AddressSanitizer: heap", "2 tickets are left unknown",
                 "ended with status 3")]
        assert seen == [not announced] * 5 and len(wrong) == (0 if announced else 5), wrong
        harness.shutil.rmtree(inner.dir)


main()
