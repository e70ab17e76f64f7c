#!/usr/bin/env python3
"""Leases through the real gateway: a command has one in the variable its tools read and never the credential; whoever
else has it, wherever else it goes and whenever its time is over, it is worth nothing."""
import hashlib
import hmac
import json
import re
import secrets

import room  # noqa: F401
from gateway import Gateway, program, upstream_yaml
from harness import PATIENCE, main, test

CURL = ["curl", "-sS", "--max-time", str(PATIENCE), "-D", "-"]


class Leased:
    """A gateway whose only credential is given to who brings a lease of it, and commands in sandboxes of it."""

    def __init__(self, lab, more="", form="github"):
        self.lab, self.work = lab, lab.dir / "work"
        self.work.mkdir()
        self.up = lab.upstream("upstream.test", "other.test")
        self.secret = lab.canary(secrets.token_urlsafe(32))
        place = f"host: {self.up.name}, port: {self.up.port}"
        self.gw = Gateway(lab, f"""version: 1
name: leased
upstreams:
{upstream_yaml(self.up.name, self.up.port, self.up.ca)}{upstream_yaml("other.test", self.up.port, self.up.ca)}
credentials:
  api:
    source: {{ store: api }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    lease: {form}
    require_lease: true{more}
    only: [{{ {place} }}]
rules:
  - {{ id: all, match: {{ {place} }}, decide: allow, use: api }}
  - {{ id: other, match: {{ host: other.test, port: {self.up.port}, effect: read }}, decide: allow }}
""", {"api": self.secret.encode()})

    def command(self, words, *options):
        return [program(), "run", "--state-dir", self.gw.state, "--workspace", self.work, *options, "--", *words]

    def __call__(self, *words, options=(), rc=0):
        return self.lab.run(self.command(words, *options), rc=rc)

    def start(self, *words, **more):
        return self.lab.start(self.command(words), **more)

    def url(self, path="/ok"):
        return f"https://{self.up.name}:{self.up.port}{path}"

    def sandboxes(self):
        return [s["name"] for s in self.gw.cli_json("sandbox", "list")["sandboxes"]]


def code(answer):
    found = re.search(rb'"code":"([a-z-]+)"', answer.out)
    return found[1].decode() if found else None


@test()
def who_asks_without_a_lease_first_is_asked_for_it(lab):
    """As clients do that bring a credential when a 401 asks for it; who brings something else is told what is wrong."""
    run = Leased(lab)
    ask = " ".join(CURL)
    done = run("sh", "-c", f"{ask} --anyauth -u me:$GITHUB_TOKEN {run.url()}; {ask} -u me:another-password {run.url()}", options=("--with", "api"))
    assert re.findall(rb"HTTP/1.1 (\d+) (?!Connection)", done.out) == [b"401", b"200", b"403"], done.text()
    assert done.out.count(b'WWW-Authenticate: Basic realm="a lease of countersign, as the password"\r\n') == 1, done.text()
    assert code(done) == "lease-required" and len(run.up.requests()) == 1


@test()
def a_command_has_a_lease_and_not_the_credential(lab):
    run = Leased(lab)
    lab.expects("a lease of sandbox")
    ask = " ".join(CURL)
    done = run("sh", "-c", f'echo "$GITHUB_TOKEN" "$GH_TOKEN"; {ask} -H "Authorization: token $GITHUB_TOKEN" {run.url("/echo?only=authorization")}; '
               f'{ask} {run.url()}; {ask} -H "Authorization: Bearer ghp_000000000000000000000000000000000000" {run.url()}; env; cat /proc/*/environ; true',
               options=("--with", "api"))
    lease = re.match(rb"(ghp_[0-9A-Za-z]{36}) \1\n", done.out)
    assert lease, done.text()
    assert done.out.count(b"HTTP/1.1 200 OK") == 1 and done.out.count(b'"code":"lease-required"') == 2, done.text()
    assert b"countersign: the lease of api is in GITHUB_TOKEN, GH_TOKEN, GH_ENTERPRISE_TOKEN\n" in done.err, done.text()
    assert b": it brings no lease of its credential: `countersign run --with api` gives one\n" in done.err, done.text()
    (asked,) = run.up.requests()
    sent = json.dumps(asked)
    assert f"Bearer {run.secret}" in sent and lease[1].decode() not in sent, sent
    assert run.secret.encode() not in done.both
    # It ended with the command: nothing of it is good for the next one, and somebody is told.
    again = run(*CURL, "-H", f"Authorization: Bearer {lease[1].decode()}", run.url())
    assert code(again) == "lease-leaked", again.text()
    (leak,) = run.gw.recorded(kind="lease-leaked")
    assert leak["used_by"] != leak["sandbox"] and leak["host"] == run.up.name, leak
    listed = run.gw.cli_json("lease", "list")["leases"]
    assert [r["state"] for r in listed] == ["leaked"], listed
    assert run.gw.cli("audit", "verify").rc == 0
    assert b"lease of" not in run("true", options=("--with", "api", "--quiet")).err


@test("D32 run")
def anywhere_else_it_is_worth_nothing(lab):
    run = Leased(lab, "\n    on_leak: freeze")
    lab.expects("a lease of sandbox")
    url, other = run.url(), f"https://other.test:{run.up.port}/ok"
    ask = " ".join(CURL)
    own = '-H "Authorization: Bearer $GITHUB_TOKEN"'
    places = [f'"{url}?k=$GITHUB_TOKEN"', f'-H "X-Key: $GITHUB_TOKEN" {url}', f'-A "$GITHUB_TOKEN" {url}', f'--data "$GITHUB_TOKEN" {url}',
              f'-b "a=$GITHUB_TOKEN" {url}',
              f'-H "X-Key: $(printf x$GITHUB_TOKEN | base64 -w0)" {url}', f'-u "$GITHUB_TOKEN:$GITHUB_TOKEN" {url}']
    script = "; ".join(f"{ask} {p}; echo" for p in places)
    leak = f'{ask} {own} {other}; echo; {ask} {own} {url}; echo; {ask} --data b {own} {url}'
    done = run("sh", "-c", f"{ask} {own} {url}; {script}; {leak}", options=("--with", "api"))
    codes = [c.decode() for c in re.findall(rb'"code":"([a-z-]+)"', done.out)]
    assert codes == ["lease-misplaced"] * len(places) + ["lease-leaked", "lease-ended", "lease-ended"], (codes, done.text())
    assert done.out.count(b"HTTP/1.1 200 OK") == 1, done.text()
    (told,) = run.gw.recorded(kind="lease-leaked")
    assert told["host"] == "other.test" and told["freeze"], told
    text = (run.gw.state / "ledger/ledger.db")
    lease = run.gw.cli_json("lease", "list")["leases"][0]
    assert lease["state"] == "leaked", lease
    # Nothing of the lease's own text was kept; the environment of the command had it, so look for the store alone.
    assert not text.exists() or b"ghp_" not in text.read_bytes()


@test()
def narrowed_counted_and_revoked_by_hand(lab):
    run = Leased(lab)
    box = run.start("sh", "-c", f"echo ready; while read line; do eval \"$line\"; echo; echo done-$n; done", ready="ready", stdin=-1)
    (name,) = run.sandboxes()
    count = 0

    def ask(lease, path="/ok", *more):
        nonlocal count
        count += 1
        words = " ".join(CURL) + f' -H "Authorization: Bearer {lease}" {" ".join(more)} {run.url(path)}'
        before = len(box.seen)
        box.popen.stdin.write(f"n={count}; {words}\n".encode())
        box.popen.stdin.flush()
        box.wait_line(rf"(?m)^done-{count}$")
        seen = box.seen[before:]
        found = re.search(rb'"code":"([a-z-]+)"', seen)
        return found[1].decode() if found else re.findall(rb"HTTP/1.1 (\d+) (?!Connection)", seen)[-1].decode()

    def issue(*words):
        return run.gw.cli_json("lease", "issue", "api", "--sandbox", name, *words)

    def gone(lease, want):
        return lab.wait_for(f"{want}", lambda: ask(lease) == want)

    lease = issue("--method", "GET", "--method", "POST")
    text = lease["lease"]
    assert ask(text) == "200" and ask(text, "/ok", "--data", "x") == "200" and ask(text, "/ok", "-X", "PUT") == "lease-not-for-this"
    child = run.gw.cli_json("lease", "narrow", lease["id"], "--child", "--path", "/ok", "--uses", "2")["lease"]
    assert child != text
    assert [ask(child), ask(child, "/echo"), ask(child), ask(child)] == ["200", "lease-not-for-this", "200", "lease-used-up"]
    run.gw.cli("lease", "narrow", lease["id"], "--effect", "read", rc=0)
    assert ask(text) == "200" and ask(text, "/ok", "--data", "x") == "lease-not-for-this"
    run.gw.cli("lease", "revoke", lease["id"], "--reason", "enough", rc=0)
    assert ask(text) == "lease-ended" and ask(child) == "lease-ended"
    shown = run.gw.cli("lease", "list", "--sandbox", name, rc=0).out.decode()
    assert shown.count("revoked") == 2 and "enough" in shown, shown
    env = run.gw.cli("lease", "env", "api", "--sandbox", name, "--format", "docker", rc=0).out.decode()
    (var,) = re.findall(r"^GITHUB_TOKEN=(\S+)$", env, re.M)
    assert ask(var) == "200"
    box.popen.stdin.close()
    box.wait()
    assert {r["state"] for r in run.gw.cli_json("lease", "list")["leases"]} == {"revoked"}


@test()
def narrowed_by_who_has_it_without_asking(lab):
    """For a tool or another agent, that has no use for all of it; whoever has that can make it no more again."""
    run = Leased(lab)
    lab.expects("a lease of sandbox")

    def narrow(text, *bounds, rc=0):
        made = run.gw.cli("lease", "narrow", "-", *bounds, stdin=text.encode() + b"\n", rc=rc)
        return made.out.decode().strip()

    def ask(text, path="/ok", *more, who="agent"):
        done = lab.run([*CURL, "--suppress-connect-headers", "-H", f"Authorization: Bearer {text}", *more, run.url(path)], env=run.gw.client_env(who), rc=0)
        return code(done) or done.out.split(b" ", 2)[1].decode()

    def asks(text):
        return ask(text), ask(text, "/echo"), ask(text, "/ok", "--data", "x")

    run.gw.token("agent")
    run.gw.token("thief")
    whole = run.gw.cli_json("lease", "issue", "api", "--sandbox", "agent")
    text = whole["lease"]
    less = narrow(text, "--path", "/ok", "--for", "5m")
    least = narrow(less, "--effect", "read")
    no = "lease-not-for-this"
    assert [asks(t) for t in (text, less, least)] == [("200",) * 3, ("200", no, "200"), ("200", no, no)]
    wider = least.replace(least.split(".")[3] + ".", "")  # without what was added last
    changed = [wider, least[:-1] + ("0" if least[-1] != "0" else "1"), less[:20] + ("0" if less[20] != "0" else "1") + less[21:]]
    assert [ask(t) for t in changed] == ["lease-unproven", "lease-unproven", "lease-unknown"]
    assert ask(text, f"/ok?t={less}") == "lease-misplaced"
    narrow(less, "--uses", "1", rc=2)
    narrow("nothing", "--path", "/", rc=1)
    assert ask(wider, who="thief") == "lease-unproven" and ask(text) == "200"
    assert ask(less, who="thief") == "lease-leaked" and ask(text) == ask(least) == "lease-ended"


@test()
def narrowed_it_cannot_be_made_wider_by_its_digest(lab):
    """Which stands in it, and is what HMAC makes of a key that is longer than its block, as a text of this form is."""
    run = Leased(lab, form="anthropic")

    def ask(text, path):
        done = lab.run([*CURL, "--suppress-connect-headers", "-H", f"Authorization: Bearer {text}", run.url(path)], env=run.gw.client_env("agent"), rc=0)
        return code(done) or done.out.split(b" ", 2)[1].decode()

    run.gw.token("agent")
    text = run.gw.cli_json("lease", "issue", "api", "--sandbox", "agent")["lease"]
    less = run.gw.cli("lease", "narrow", "-", "--path", "/ok", stdin=text.encode(), rc=0).out.decode().strip()
    tag, digest, layer, mac = less.split(".")
    assert len(text) > 64 and bytes.fromhex(digest) == hashlib.sha256(text.encode()).digest()
    assert (ask(less, "/ok"), ask(less, "/echo")) == ("200", "lease-not-for-this")
    bounds, label = bytes(8) + b"\1" + bytes(4 + 4 + 16), b"countersign narrowed lease 1"  # no list, any effect
    for key, over in ((bytes.fromhex(digest), label), (label, bytes.fromhex(digest))):
        made = hmac.digest(hmac.digest(key, over, "sha256"), bounds, "sha256")
        assert ask(f"{tag}.{digest}.{bounds.hex()}.{made.hex()}", "/echo") == "lease-unproven"
    made = hmac.digest(hmac.digest(label, text.encode(), "sha256"), bounds, "sha256")  # as its holder may
    assert ask(f"{tag}.{digest}.{bounds.hex()}.{made.hex()}", "/echo") == "200"


@test()
def what_became_of_it_is_known_after_a_restart(lab):
    """A gateway that stops and begins again: one that lived does still, and one that had ended has."""
    run = Leased(lab)
    lab.expects("a lease of sandbox")

    def ask(lease, who="agent"):
        done = lab.run([*CURL, "--suppress-connect-headers", "-H", f"Authorization: Bearer {lease['lease']}", run.url()], env=run.gw.client_env(who), rc=0)
        return code(done) or done.out.split(b" ", 2)[1].decode()

    def state(lease):
        return run.gw.cli_json("lease", "show", lease["id"])["state"]

    run.gw.token("agent")
    run.gw.token("thief")
    kept, ended, brief, alone = (run.gw.cli_json("lease", "issue", "api", "--sandbox", "agent", *more) for more in ((), (), ("--for", "1s"), ("--uses", "1")))
    run.gw.cli("lease", "revoke", ended["id"], rc=0)
    assert ask(alone) == "200" and ask(kept) == "200"
    lab.wait_for("it has expired", lambda: state(brief) == "expired")
    run.gw.stop()
    run.gw.up()
    assert [ask(lease) for lease in (kept, ended, brief, alone)] == ["200", "lease-ended", "lease-ended", "lease-used-up"]
    assert ask(kept, "thief") == "lease-leaked" and ask(kept) == "lease-ended"
    (leak,) = run.gw.recorded(kind="lease-leaked")
    assert (leak["sandbox"], leak["used_by"], leak["lease"]) == ("agent", "thief", kept["id"]), leak
    assert run.gw.cli("audit", "verify").rc == 0


@test()
def a_count_begins_with_the_first_bound_of_its_kind(lab):
    """What was used before anybody counted does not count; a bound that is tighter than one before counts on from it."""
    run = Leased(lab)
    run.gw.token("agent")

    def ask(lease):
        done = lab.run([*CURL, "--suppress-connect-headers", "-H", f"Authorization: Bearer {lease['lease']}", run.url()],
                       env=run.gw.client_env("agent"), rc=0)
        return code(done) or done.out.split(b" ", 2)[1].decode()

    free, bound = (run.gw.cli_json("lease", "issue", "api", "--sandbox", "agent", *more) for more in ((), ("--uses", "20")))
    for lease, left in ((free, 2), (bound, 1)):
        assert [ask(lease) for _ in range(4)] == ["200"] * 4
        run.gw.cli("lease", "narrow", lease["id"], "--uses", "2" if lease is free else "5", rc=0)
        assert [ask(lease) for _ in range(left + 1)] == ["200"] * left + ["lease-used-up"], lease
    run.gw.cli("lease", "narrow", bound["id"], "--uses", "19", rc=0)
    assert ask(bound) == "lease-used-up", "a wider one widens nothing"


if __name__ == "__main__":
    main()
