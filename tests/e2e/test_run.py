#!/usr/bin/env python3
"""`countersign run` through the real gateway: the main job from inside a sandbox, a gateway for one command, and what
of the gateway cannot be reached from inside. (The walls of the sandbox itself: test_sandbox.py.)"""
import json
import os
import re
import secrets
import shlex
import signal
import subprocess

from gateway import Gateway, commit, git_policy, program, simple_policy
from harness import HERE, LATER, MOMENT, PATIENCE, main, test

WHO = ["-c", "user.name=Agent", "-c", "user.email=agent@sandbox.invalid"]
CURL = ["curl", "-sS", "--max-time", str(PATIENCE), "-D", "-"]


class Run:
    """A gateway with one upstream, and commands in sandboxes of it."""

    def __init__(self, lab, policy=None, secrets_=None, **more):
        self.lab, self.work = lab, lab.dir / "work"
        self.work.mkdir()
        if policy is None:
            self.up = lab.upstream()
            self.token = lab.canary(secrets.token_urlsafe(32))
            policy, secrets_ = simple_policy(self.up), {"api": self.token.encode()}
        self.gw = Gateway(lab, policy, secrets_, **more)

    def command(self, words, *options):
        return [program(), "run", "--state-dir", self.gw.state, "--workspace", self.work, *options, "--", *words]

    def __call__(self, *words, options=(), env=None, rc=0, **more):
        return self.lab.run(self.command(words, *options), env=env, rc=rc, **more)

    def start(self, *words, options=(), **more):
        return self.lab.start(self.command(words, *options), **more)

    def url(self, path="/ok"):
        return f"https://{self.up.name}:{self.up.port}{path}"

    def sandboxes(self):
        return [s["name"] for s in self.gw.cli_json("sandbox", "list")["sandboxes"]]


def git_run(lab, push="hold", **more):
    git = lab.git_server()
    run = Run(lab, git_policy(git, push), {"demo": f"{git.user}:{git.password}".encode()}, **more)
    run("git", "clone", "-q", git.url, "app")
    (run.work / "app/file").write_text(secrets.token_hex(8))
    run("git", "-C", "app", "add", "file")
    run("git", "-C", "app", *WHO, "commit", "-qm", "by an agent")
    head = run("git", "-C", "app", "rev-parse", "HEAD").out.decode().strip()
    return git, run, head


@test()
def a_push_from_a_sandbox_waits_and_lands_once_approved(lab):
    git, run, head = git_run(lab)
    push = run.start("git", "-C", "app", "push", "origin", "HEAD:main")
    ticket = run.gw.pending()
    assert git.landed() == [] and head in json.dumps(ticket), ticket
    assert ticket["session"].endswith(f"@{run.work}"), ticket["session"]
    run.gw.approve(ticket["id"])
    assert push.wait(30) == 0, push.seen
    assert [new for _, new, _ in git.landed()] == [head]
    run("git", "-C", "app", "fetch", "-q")
    assert run.gw.cli("audit", "verify").rc == 0


@test()
def a_denied_push_shows_the_operators_words_and_fails(lab):
    git, run, head = git_run(lab)
    push = run.start("git", "-C", "app", "push", "origin", "HEAD:main")
    run.gw.deny(run.gw.pending()["id"], "not on a Friday")
    assert push.wait(30) == 1 and b"not on a Friday" in push.seen, push.seen
    assert git.landed() == []


@test("E30 run")
def the_session_is_the_workspaces_a_later_run_joins_the_ticket(lab):
    git, run, head = git_run(lab, hold="inline_wait: 1s, expires: 2h")
    first = run("git", "-C", "app", "push", "origin", "HEAD:main", rc=1)
    ticket = run.gw.pending()["id"]
    assert ticket[:10].encode() in first.both, first.text()
    run.gw.approve(ticket)
    assert git.landed() == [] and run.sandboxes() == []
    run("git", "-C", "app", "push", "origin", "HEAD:main")
    assert [new for _, new, _ in git.landed()] == [head] and run.gw.tickets() == []


@test()
def another_workspaces_approval_is_not_this_ones(lab):
    lab.leaves("approved", "pending")
    run = Run(lab, hold="inline_wait: 1s, expires: 2h")
    ask = [*CURL, "--data-binary", "a=1", run.url("/things")]
    run(*ask)
    run.gw.approve(run.gw.pending()["id"])
    run.work = lab.dir / "other"
    run.work.mkdir()
    run(*ask)
    assert run.up.effects() == {} and len(run.gw.tickets()) == 1


@test()
def the_status_of_the_command_is_passed_on(lab):
    run = Run(lab)
    for status in (0, 7, 255):
        run("sh", "-c", f"exit {status}", rc=status)
    run("sh", "-c", "kill -TERM $$", rc=128 + signal.SIGTERM)
    done = run("sh", "-c", "cat; echo err >&2", stdin=b"through\n")
    assert done.out == b"through\n" and done.err == b"err\n", done.text()
    assert run.sandboxes() == [] and not list(run.gw.state.glob("run/sb-*"))


@test()
def two_at_once_are_two_sandboxes(lab):
    run = Run(lab)
    both = [run.start("sh", "-c", f"echo here; cat >/dev/null; {' '.join(CURL)} {run.url('/ok')}", ready="here", stdin=-1)
            for _ in range(2)]
    names = run.sandboxes()
    assert len(names) == len(set(names)) == 2, names
    for one in both:
        one.popen.stdin.close()
        assert one.wait() == 0
        one.wait_line(r"HTTP/1.1 200")
    assert run.sandboxes() == []


@test()
def two_of_one_name_are_one_too_many(lab):
    run = Run(lab)
    first = run.start("sh", "-c", "echo inside; cat", options=("--name", "same"), ready="inside", stdin=subprocess.PIPE)
    assert "same" in run.sandboxes()
    second = run("true", options=("--name", "same"), rc=None)
    assert second.rc == 1 and b"a run of the name same is going on" in second.err, second.text()
    assert "same" in run.sandboxes(), "the second one's end took the first one's sandbox"
    first.signal(signal.SIGKILL)  # without a word: the name is free all the same
    first.wait()
    done = run(*CURL, run.url(), options=("--name", "same"))
    assert b" 200 " in done.out, done.text()


@test("G1 run-gateway", "G28 run-gateway")
def the_environment_inside_has_no_secret_and_only_the_allow_list(lab):
    run = Run(lab)
    mine = lab.canary(secrets.token_urlsafe(24))
    done = run("sh", "-c", "env; cat /proc/*/environ", env={"GITHUB_TOKEN": mine, "COUNTERSIGN_STATE": run.gw.state,
                                                            "TERM": "dumb"}, rc=None)
    names = {line.partition(b"=")[0] for line in done.out.splitlines() if b"=" in line}
    assert b"HTTPS_PROXY" in names and b"TERM" in names
    assert not names & {b"GITHUB_TOKEN", b"COUNTERSIGN_STATE", b"SSH_AUTH_SOCK"}, names
    assert mine.encode() not in done.both


@test("G3 run-gateway")
def nothing_of_the_gateway_can_be_reached_from_inside(lab):
    run = Run(lab)
    port = run.gw.page.partition("://")[2].partition("/")[0].rpartition(":")[2]
    proxy = run.gw.proxy.rpartition(":")[2]
    inside = f"""
        ls {run.gw.state} {run.gw.state}/control.sock 2>&1
        find / -xdev \\( -name control.sock -o -name keeper.sock -o -name master.key -o -name ledger.db \\) 2>/dev/null
        for port in {port} {proxy}; do curl -sS --noproxy '*' --max-time {PATIENCE} http://127.0.0.1:$port/ 2>&1; done
        for host in localhost 127.0.0.1 '[::1]' 0.0.0.0; do
            curl -s --noproxy '' --max-time {PATIENCE} -o /dev/null -w '%{{http_code}} proxied\\n' http://$host:{port}/
            curl -sk --noproxy '' --max-time {PATIENCE} -o /dev/null -w '%{{http_code}} proxied\\n' https://$host:{port}/
        done; true"""
    text = run("sh", "-c", inside).text()
    assert text.count("No such file") == 2 and text.count("Failed to connect") == 2, text
    assert not [line for line in text.splitlines() if line.startswith("/")], text
    codes = [line.split()[0] for line in text.splitlines() if line.endswith("proxied")]
    assert len(codes) == 8 and set(codes) <= {"000", "400", "403", "502"}, text


@test()
def not_even_a_policy_that_names_the_gateway_itself_leads_there(lab):
    """Listed as an upstream on loopback, by mistake or by malice, it is not dialled."""
    up = lab.upstream()
    run = Run.__new__(Run)
    run.lab, run.work, run.up = lab, lab.dir / "work", up
    run.work.mkdir()
    run.gw = Gateway(lab, simple_policy(up), {"api": lab.canary(secrets.token_urlsafe(32)).encode()})
    ports = [int(run.gw.page.partition("://")[2].partition("/")[0].rpartition(":")[2]), int(run.gw.proxy.rpartition(":")[2])]
    more = "".join(f'  - {{ host: own{n}.test, port: {port}, address: 127.0.0.1, allow_private: ["127.0.0.1/32"] }}\n'
                   for n, port in enumerate(ports))
    rules = "".join(f"  - id: own{n}\n    match: {{ host: own{n}.test, scheme: http, port: {port}, effect: read }}\n    decide: allow\n"
                    for n, port in enumerate(ports))
    run.gw.policy.write_text(simple_policy(up, extra=rules).replace("credentials:", more + "credentials:", 1))
    run.gw.cli("reload", rc=0)
    for n, port in enumerate(ports):
        done = run(*CURL, f"http://own{n}.test:{port}/")
        assert b"HTTP/1.1 502" in done.out and b"<html" not in done.out.lower(), done.text()


@test("G14 run-gateway")
def a_workspace_that_overlaps_the_state_is_refused(lab):
    run = Run(lab)
    for work in (run.gw.state, run.gw.state / "store", lab.dir):
        run.work = work
        done = run("true", rc=2)
        assert b"state" in done.both, done.text()


@test()
def with_a_credential_the_gateway_must_hold_it(lab):
    run = Run(lab)
    done = run(*CURL, run.url(), options=["--with", "api"])
    assert b" 200" in done.out
    assert ["Authorization", f"Bearer {run.token}"] in [list(f) for f in run.up.requests()[-1]["fields"]]
    done = run("true", options=["--with", "nothing-such"], rc=1)
    assert b"the policy has no credential named `nothing-such`" in done.both, done.text()
    assert b"no credential named `aip`; did you mean --with api?" in run("true", options=["--with", "aip"], rc=1).err
    run.gw.policy.write_text(run.gw.policy.read_text().replace("store: api", "store: key"))
    run.gw.cli("reload", rc=0)
    done = run("true", options=["--with", "api"], rc=1)
    assert b"`api` has no value yet: `countersign secret set key`" in done.both, done.text()
    done = run("true", options=["--with", "key"], rc=1)
    assert b"its credential `api` uses that secret: --with api" in done.both, done.text()
    assert run.sandboxes() == []


@test()
def when_the_gateway_ends_the_command_is_told_and_goes_on(lab):
    run = Run(lab)
    inside = run.start("sh", "-c", f"{' '.join(CURL)} {run.url()}; cat; {' '.join(CURL)} {run.url()}; exit 9",
                       ready=r"HTTP/1.1 200 OK\r\n\r\n|ok", stdin=-1)
    run.gw.stop()
    inside.popen.stdin.close()
    assert inside.wait() == 9
    assert b"curl: (" in inside.seen, inside.seen


def private(lab, up, n=0, policy=None, env=None):
    """What runs one command with a gateway of its own, on its own state."""
    work, state, file = (lab.dir / f"{what}{n}" for what in ("work", "state", "policy"))
    work.mkdir(exist_ok=True)
    file.write_text(policy or simple_policy(up, secret="env: MY_API_TOKEN"))
    return state, [program(), "run", "--policy", file, "--state-dir", state, "--workspace", work]


@test()
def with_a_policy_and_no_gateway_one_runs_for_this_command_alone(lab):
    up, token = lab.upstream(), lab.canary(secrets.token_urlsafe(32))
    state, run = private(lab, up)
    url = f"https://{up.name}:{up.port}"
    done = lab.run([*run, "--", "sh", "-c", f"env; {' '.join(CURL)} {url}/ok; exit 5"], env={"MY_API_TOKEN": token}, rc=5)
    assert b"HTTP/1.1 200" in done.out and b"MY_API_TOKEN" not in done.out, done.text()
    assert ["Authorization", f"Bearer {token}"] in [list(f) for f in up.requests()[-1]["fields"]]
    assert not [p for p in state.rglob("*") if p.is_socket()]
    # What is held is decided from another terminal, on the same state.
    client = lab.start([*run, "--", *CURL, "--data-binary", "a=1", url + "/things"], env={"MY_API_TOKEN": token})
    here = {"COUNTERSIGN_STATE": state, "PATH": os.environ["PATH"]}

    def waiting():
        done = lab.run([program(), "approvals", "list", "--json"], env=here)
        return done.rc == 0 and json.loads(done.out)["tickets"]
    ticket = lab.wait_for("a ticket", waiting)[0]["id"]
    assert b" approved, and sent\n" in lab.run([program(), "approvals", "approve", ticket], env=here, rc=0).out
    assert client.wait() == 0 and b"HTTP/1.1 200" in client.seen, client.seen
    assert up.effects()["POST /things"] == 1
    # After it no gateway runs: how to decide then, and how to read what was decided, is said.
    for how in ("approve", "deny"):
        done = lab.run([program(), "approvals", how, ticket], env=here, rc=4)
        assert f"run the command again and {how} it while it runs, or start one that stays, `countersign up --policy FILE`".encode() in done.err, done.text()
    done = lab.run([program(), "audit", "tail"], env=here, rc=4)
    assert b"no gateway runs" in done.err and b"it needs no policy" in done.err and b"No such file" not in done.err, done.text()


@test()
def an_upstream_that_is_down_is_said_to_who_started_the_gateway_and_not_to_the_sandbox(lab):
    up = lab.upstream()
    state, run = private(lab, up, policy=simple_policy(up, secret="env: MY_API_TOKEN").replace(str(up.port), "1"))
    done = lab.run([*run, "--", *CURL, f"https://{up.name}:1/ok"], env={"MY_API_TOKEN": secrets.token_urlsafe(32)}, rc=0)
    assert b"upstream-failed" in done.out and b"refused" not in done.out, done.text()
    assert f"countersign: not sent: GET {up.name}:1/ok: connect-failed: the upstream could not be reached\n".encode() in done.err, done.text()
    assert b"not sent" not in lab.run([*run, "--", "true"], env={"MY_API_TOKEN": secrets.token_urlsafe(32)}, rc=0).err  # an earlier one's


@test()
def a_policy_that_the_command_can_change_is_warned_of(lab):
    run = Run(lab)
    words = b"lies in the workspace"
    assert words not in run("true").err
    run.gw.policy.rename(run.work / "policy.yaml")
    run.gw.policy.symlink_to(run.work / "policy.yaml")
    done = run("true")
    assert f"warning: {run.work}/policy.yaml lies in the workspace {run.work}".encode() in done.err, done.text()
    assert run("true", options=["--quiet"]).err == b""
    up = lab.upstream()
    _, private_run = private(lab, up, policy=simple_policy(up, secret="env: MY_API_TOKEN"))
    env = {"MY_API_TOKEN": secrets.token_urlsafe(32)}
    assert words not in lab.run([*private_run, "--", "true"], env=env, rc=0).err
    (lab.dir / "policy0").rename(lab.dir / "work0/policy0")
    private_run[private_run.index("--policy") + 1] = lab.dir / "work0/policy0"
    assert words in lab.run([*private_run, "--", "true"], env=env, rc=0).err


@test()
def two_private_gateways_do_not_stand_in_each_others_way(lab):
    up, token = lab.upstream(), lab.canary(secrets.token_urlsafe(32))
    both = []
    for n in range(2):
        _, run = private(lab, up, n)
        both.append(lab.start([*run, "--", "sh", "-c", f"echo here; cat; {' '.join(CURL)} https://{up.name}:{up.port}/ok"],
                              env={"MY_API_TOKEN": token}, ready="here", stdin=-1))
    for one in both:
        one.popen.stdin.close()
        assert one.wait() == 0
        one.wait_line(r"HTTP/1.1 200")


@test()
def a_private_gateway_ends_with_a_killed_run(lab):
    up, token = lab.upstream(), lab.canary(secrets.token_urlsafe(32))
    state, run = private(lab, up)
    one = lab.start([*run, "--", "sh", "-c", "echo here; cat"], env={"MY_API_TOKEN": token}, ready="here", stdin=-1)
    lab.expects("parent: nobody waits on --ready-fd")
    one.signal(signal.SIGKILL)
    one.popen.stdin.close()
    one.wait()
    lab.wait_for("the end of the gateway", lambda: lab.run(["pgrep", "-f", str(state)]).rc != 0)
    assert not [p for p in state.rglob("*") if p.is_socket()]


@test()
def what_cannot_be_started_is_refused_in_words(lab):
    up = lab.upstream()
    state, run = private(lab, up, policy=simple_policy(up).replace("decide: allow", "decide: alow"))
    done = lab.run([*run, "--", "true"], rc=3)
    assert re.search(r"policy0:\d+:\d+: decide cannot be \"alow\".* \(P008\)\n", done.both.decode()) and b" more" not in done.both, done.text()
    _, several = private(lab, up, n=1, policy=simple_policy(up).replace("decide: allow", "decide: alow").replace("decide: hold", "decied: hold"))
    done = lab.run([*several, "--", "true"], rc=3)
    assert f"(P008); 1 more: countersign policy check {lab.dir}/policy1\n".encode() in done.both, done.text()
    done = lab.run([program(), "run", "--state-dir", state, "--workspace", lab.dir / "work0", "--", "true"], rc=4)
    assert b"countersign up" in done.both and b"--policy" in done.both, done.text()
    gateway = Run(lab)
    done = gateway("true", options=["--policy", gateway.gw.policy], rc=2)
    assert b"runs already" in done.both, done.text()


@test()
def what_waits_is_said_once_with_where_to_decide_it_and_then_what_became_of_it(lab):
    run = Run(lab)
    ask = [*CURL, "--data-binary", "a=1", run.url("/things")]
    client = run.start(*ask)
    ticket = run.gw.pending()
    page = run.gw.cli_json("status")["page"]
    client.wait_line(rf"waits for approval: [^\n]*\n.* approvals approve {ticket['id'][:10]} --state-dir {run.gw.state}\n"
                     rf".*countersign signin.* {page}/tickets/{ticket['id']}\n")
    assert b"sign-in" not in client.seen, client.seen
    run.gw.approve(ticket["id"])
    assert client.wait() == 0 and b" 200 " in client.seen
    assert client.seen.count(b"waits for approval") == 1, client.seen
    assert re.search(rf"{ticket['id'][:10]} approved by \w+", client.seen.decode()), client.seen
    client = run.start(*ask)
    client.wait_line("waits for approval")  # else it is said as what was decided before anybody waited
    run.gw.deny(run.gw.pending()["id"], "not on a \x1b[31mFriday")
    assert client.wait() == 0 and b" 403 " in client.seen
    assert re.search(r"denied by [\w ]+: not on a", client.seen.decode()) and b"\x1b" not in client.seen, client.seen


@test()
def what_is_still_open_at_the_end_is_said_and_told_from_what_an_earlier_run_left(lab):
    lab.leaves("pending", "approved")
    run = Run(lab, hold="inline_wait: 1s, expires: 2h")
    ask = [*CURL, "--data-binary", "a=1", run.url("/things")]
    again = rf"is open until {LATER}: once it is approved, repeat the request or run this again\n"
    said = run(*ask).err.decode()
    assert "waits for approval: POST" in said and re.search(again, said) and "another run" not in said, said
    # It waits since an earlier run of this workspace: said when the next one begins, and at its end only if it asked too.
    said = run("sleep", "1").err.decode()
    assert re.search(rf"waits for approval, from another run \({MOMENT}\): POST", said) and not re.search(again, said), said
    assert said.count("countersign:") == 1, said
    assert re.search(again, run("sh", "-c", f"sleep 1; {shlex.join(map(str, ask))}").err.decode())
    assert run(*ask, options=("--quiet",)).err == b""
    # Approved while nobody waits: it is sent when the request comes again.
    ticket = run.gw.pending()["id"]
    done = run.gw.cli("approvals", "approve", ticket, rc=0).out.decode()
    assert re.search(r"approved; no client waits for it: it is sent when the same request comes again, until \d{4}-", done), done
    assert run.up.effects() == {}
    run(*ask)
    assert run.up.effects() == {"POST /things": 1}
    second = run.start("sh", "-c", f"{' '.join(CURL)} --data-binary a=2 {run.url('/things')}; read line", stdin=subprocess.PIPE)
    second.wait_line(r"HTTP/1.1 403")
    run.gw.approve(run.gw.pending()["id"])
    second.wait_line(r"approved by \w+")
    second.popen.stdin.close()
    second.wait()
    assert re.search(rb"is approved and not sent yet: repeat the request, or run this again, before \d", second.seen), second.seen
    run.work = lab.dir / "another"
    run.work.mkdir()
    assert run("sleep", "1").both == b"", "another workspace's request was told"


@test()
def each_of_two_runs_at_once_knows_its_own_request(lab):
    run = Run(lab)
    runs = [run.start("sh", "-c", f"echo here; read line; {shlex.join(CURL)} --data-binary a={n} {run.url(f'/{n}')}; read line; true",
                      ready="here", stdin=subprocess.PIPE) for n in range(2)]
    for n in (1, 0):  # the one that began last asks first
        runs[n].popen.stdin.write(b"go\n")
        runs[n].popen.stdin.flush()
        run.gw.pending(2 - n)
    own = r"waits for approval: POST [^\n]*/{}\n.* approvals approve {}"
    other = rf"waits for approval, from another run \({MOMENT}\): POST [^\n]*/{{}} \({{}}: approve or deny it, or say --quiet\)\n"
    by_path = {t["path"]: t["id"][:10] for t in run.gw.tickets()}
    for n, one in enumerate(runs):
        one.wait_line(own.format(n, by_path[f"/{n}"]))
        one.wait_line(other.format(1 - n, by_path[f"/{1 - n}"]))
        assert one.seen.count(b"waits for approval: ") == one.seen.count(b"approvals approve") == 1, one.seen
    for ticket in run.gw.tickets():
        run.gw.deny(ticket["id"], "no")
    for one in runs:
        one.popen.stdin.close()
        assert one.wait() == 0


@test()
def of_what_many_other_runs_left_a_few_are_named(lab):
    lab.leaves("pending")
    run = Run(lab, hold="inline_wait: 1s, expires: 2h")
    run("sh", "-c", " & ".join(f"{shlex.join(CURL)} --data-binary a={n} {run.url()}" for n in range(5)) + "; wait")
    said = run("sleep", "1").err.decode()
    assert said.count("from another run (") == 3, said
    assert said.count("countersign: more waits from other runs; see countersign approvals list\n") == 1, said
    run.work = lab.dir / "another"
    run.work.mkdir()
    assert run("sleep", "1").both == b"", "another workspace's requests were told"


@test()
def what_is_denied_is_said_once_for_each_reason_and_host(lab):
    up = lab.upstream()
    run = Run(lab, simple_policy(up, write="deny"), {"api": lab.canary(secrets.token_urlsafe(32)).encode()})
    run.up = up
    client = run.start("sh", "-c", f"{shlex.join(CURL)} -d a=1 {run.url('/one')}; {shlex.join(CURL)} -d a=2 {run.url('/two')}; "
                       f"{shlex.join(CURL)} https://elsewhere.example/; read line", stdin=subprocess.PIPE)
    client.wait_line(rf"countersign: denied: POST {up.name}:{up.port}/one: by rule writes \([^\n]*policy.yaml:\d+\)\n")
    client.wait_line(r"countersign: denied: [^\n]*elsewhere.example[^\n]*: no rule names this host with this port and scheme\n")
    client.popen.stdin.close()
    client.wait()
    assert client.seen.count(b"countersign: denied: ") == 2, client.seen
    assert run(*CURL, "-d", "a=1", run.url(), options=("--quiet",)).err == b""


@test()
def what_is_refused_while_writes_are_frozen_and_by_an_earlier_denial_is_said_with_what_to_do(lab):
    run = Run(lab)
    ask = [*CURL, "--data-binary", "a=1", run.url("/things")]
    run.gw.cli("freeze", rc=0)
    said = run(*ask).err.decode()
    assert re.search(r"countersign: denied: POST [^\n]*: writes were frozen: `countersign thaw` ends that\n", said), said
    run.gw.cli("thaw", rc=0)
    client = run.start(*ask)
    client.wait_line(r"countersign: waits for approval: ")  # a denial before that is told as one that stands already
    run.gw.deny(run.gw.pending()["id"], "not on a Monday")
    client.wait()
    assert client.seen.count(b"not on a Monday\n") == 1 and b"countersign: denied: " not in client.seen, client.seen
    said = run("sh", "-c", f"{shlex.join(map(str, ask))}; {shlex.join(map(str, ask))}").err.decode()
    still = rf"countersign: denied: POST [^\n]*/things: since {MOMENT}, and until {LATER}, by \w+: not on a Monday\n"
    assert re.search(still, said) and said.count("countersign:") == 1, said


@test()
def an_address_that_is_private_is_said_with_what_would_allow_it(lab):
    up = lab.upstream()
    policy = simple_policy(up, secret="env: MY_API_TOKEN", extra="""  - id: inner
    match: { host: 10.255.255.1, effect: read }
    decide: allow
""")
    _, run = private(lab, up, policy=policy)
    said = lab.run([*run, "--", *CURL, "https://10.255.255.1/"], env={"MY_API_TOKEN": secrets.token_urlsafe(32)}, rc=0).err.decode()
    assert re.search(r"not sent: GET 10.255.255.1/: private-address: [^\n]*upstreams: needs allow_private\n", said), said


@test()
def at_a_terminal_what_waits_is_said_in_lines_that_end_there(lab):
    run = Run(lab)
    ask = run.command([*CURL, "--data-binary", "a=1", run.url("/things")])
    terminal = lab.start(["script", "-qefc", shlex.join(map(str, ask)), "/dev/null"])
    terminal.wait_line(r"countersign: waits for approval: POST [^\n]*\r\n")
    run.gw.approve(run.gw.pending()["id"])
    assert terminal.wait() == 0 and b" approved by " in terminal.seen, terminal.seen


@test()
def at_a_terminal_nothing_is_said_in_json(lab):
    up = lab.upstream()
    _, run = private(lab, up, policy=simple_policy(up))  # its secret was not set
    terminal = lab.start(["script", "-qefc", shlex.join(map(str, [*run, "--", "curl", "-sSo", "answer", f"https://{up.name}:{up.port}/ok"])),
                          "/dev/null"])
    assert terminal.wait() == 0
    assert b"countersign secret set" in terminal.seen and b'{"' not in terminal.seen, terminal.seen
    assert b"not sent: GET " in terminal.seen and b": credential-unavailable: its credential is not there" in terminal.seen, terminal.seen


@test()
def at_a_terminal_tables_stand_under_their_heads_and_an_empty_one_says_so(lab):
    run = Run(lab)
    for name in ("a", "a-longer-name"):
        run.gw.token(name)

    def at_terminal(*words):
        command = shlex.join(map(str, [program(), *words, "--state-dir", run.gw.state]))
        return lab.run(["script", "-qefc", command, "/dev/null"], rc=0).out.decode().replace("\r", "").splitlines()
    head, *rows = at_terminal("sandbox", "list")
    assert head.split() == ["NAME", "KIND", "GENERATION", "SINCE", "WAITING", "SESSION"] and len(rows) == 2, (head, rows)
    for row in rows:
        for title, cell in (("NAME", "a"), ("KIND", "token"), ("GENERATION", "1"), ("SINCE", "20"), ("WAITING", "0"), ("SESSION", "a")):
            assert row[head.index(title):].startswith(cell) and (" " + row)[head.index(title)] == " ", (head, row)
    assert at_terminal("lease", "list") == ["There is no lease."] and at_terminal("approvals", "list") == ["Nothing waits."]
    # Elsewhere there is no head, each cell says what it is, and what is empty is said beside the output.
    plain = run.gw.cli("sandbox", "list", rc=0).out.decode().splitlines()
    assert all(re.fullmatch(r"(a|a-longer-name)  token  generation 1  20[-\d]+ [:\d]+  0 waiting  session \1", row) for row in plain), plain
    done = run.gw.cli("lease", "list", rc=0)
    assert done.out == b"" and done.err == b"There is no lease.\n", done.text()


@test()
def a_secret_is_sealed_where_no_gateway_runs_and_used_by_the_next_one(lab):
    up, token = lab.upstream(), lab.canary(secrets.token_urlsafe(32))
    state, run = private(lab, up, "", policy=simple_policy(up))

    def secret(*words, stdin=None, rc=0):
        return lab.run([program(), "secret", *words, "--state-dir", state], stdin=stdin, rc=rc)
    secret("set", "api", stdin=token.encode())
    assert secret("list").out.startswith(b"api  changed ") and b"not used since" in secret("list").out
    assert not [p for p in state.rglob("*") if p.is_socket()]
    assert b"shorter than" in secret("set", "api", stdin=b"short", rc=1).err
    done = lab.run([*run, "--with", "api", "--", *CURL, f"https://{up.name}:{up.port}/ok"], rc=0)
    assert b"HTTP/1.1 200" in done.out and b"no variable for api: it has no `lease:`" in done.err, done.text()
    assert ["Authorization", f"Bearer {token}"] in [list(f) for f in up.requests()[-1]["fields"]]
    # It is in the record, like one that a running gateway was given.
    gw = Gateway(lab, simple_policy(up))
    acts = [r["what"] for r in gw.recorded(about="secret")]
    assert [(a["secret"], a["act"]) for a in acts] == [("api", "set")], acts
    assert secret("rm", "api").out == b"api is forgotten\n" and secret("list").out == b""  # and now by the one that runs


@test()
def the_readmes_first_steps_work_as_written(lab):
    """From an empty directory to a write that a person let go, and to a request with a key."""
    up = lab.upstream()
    text = re.search(r"server of your own\n(.*?)\n## ", (HERE.parents[1] / "README.md").read_text(), re.S)[1].replace("8000", str(up.plain_port))
    policy, credential = re.findall(r"```yaml\n(.*?)```\n", text, re.S)
    commands = [shlex.split(line.partition("  #")[0]) for line in text.splitlines() if line.startswith("    countersign")]
    (lab.dir / "app").mkdir()
    (lab.dir / "mine.yaml").write_text(policy)
    env = {"COUNTERSIGN_STATE": lab.dir / "state", "PATH": os.environ["PATH"]}
    look, change, seal, look_with_key = commands
    lab.run(look, cwd=lab.dir / "app", env=env, rc=0)
    client = lab.start(change, cwd=lab.dir / "app", env=env)
    approve = client.wait_line(r"countersign:   (countersign approvals approve \w+)\n")[1].decode()
    lab.run(shlex.split(approve), env=env, rc=0)
    assert client.wait() == 0 and up.effects() == {"GET /": 1, "POST /": 1}, (client.seen, up.effects())
    (lab.dir / "mine.yaml").write_text(re.sub("(    decide: .*\n)", r"\1    use: mykey\n", policy)
                                       .replace(" }\n", ", cleartext_credentials: true }\n", 1) + credential)
    said = lab.run(["countersign", "policy", "check", lab.dir / "mine.yaml"], rc=0)
    assert b" 0 warnings" in said.out, said.text()
    lab.run(seal, stdin=b"key-of-mine", env=env, rc=0)
    lab.run(look_with_key, cwd=lab.dir / "app", env=env, rc=0)
    assert ["Authorization", "Bearer key-of-mine"] in [list(f) for f in up.requests()[-1]["fields"]], up.requests()[-1]
    # The lease that a program starts with.
    (lab.dir / "mine.yaml").write_text((lab.dir / "mine.yaml").read_text() + "    lease: generic\n")
    *first, url = look_with_key
    end = first.index("--")
    said = lab.run([*first[:end], "--with", "mykey", "--", "sh", "-c", f'curl -sS -H "Authorization: Bearer $API_KEY" {url}; echo "$API_KEY"'],
                   cwd=lab.dir / "app", env=env, rc=0)
    assert ["Authorization", "Bearer key-of-mine"] in [list(f) for f in up.requests()[-1]["fields"]], up.requests()[-1]
    assert b"the lease of mykey is in API_KEY" in said.err and b"key-of-mine" not in said.out and said.out.splitlines()[-1], said.text()


if __name__ == "__main__":
    main()
