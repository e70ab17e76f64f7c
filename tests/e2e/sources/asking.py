"""A gateway whose credential `api` comes from a source, and what tests ask of it."""
import json

from gateway import NOT_RELEASED, Gateway, simple_policy


BEARER = 'header: Authorization, format: "Bearer {}"'


def gateway(lab, source, counterpart, store=(), env=None, inject=BEARER, config=""):
    """(upstream, gateway) with an entry of upstreams: for the counterpart."""
    up = lab.upstream()
    text = simple_policy(up, secret=source).replace(BEARER, inject)
    text = text.replace("credentials:\n", counterpart.yaml + "credentials:\n", 1) if counterpart else text
    lab.expects(NOT_RELEASED)
    return up, Gateway(lab, text, dict(store), env=env, config=config)


def ask(lab, gw, up, path="/ok"):
    return lab.run(["curl", "-sS", "--suppress-connect-headers", "-D", "-", f"https://{up.name}:{up.port}{path}"],
                   env=gw.client_env())


def passes(lab, gw, up):
    done = ask(lab, gw, up)
    assert b" 200" in done.out.splitlines()[0], done.text() + gw.cli("secret", "check", "api").text()


def bearers(up):
    return [v for r in up.requests() for n, v in r["fields"] if n.lower() == "authorization"]


HANGS = ("did not answer in time", "it took more than ")  # a source's own clock and the one of its whole time run side by side


def is_said(word, said):
    return any(w in said for w in HANGS) if word in HANGS else word in said


def refused(lab, gw, up, *words):
    """Nothing is sent, and the operator is told which step failed, without a value."""
    sent = len(up.requests())
    done = ask(lab, gw, up)
    assert b"502" in done.out.splitlines()[0] and b"credential-unavailable" in done.out, done.text()
    assert len(up.requests()) == sent
    check = gw.cli("secret", "check", "api")
    said = check.out.decode()
    assert check.rc == 1 and all(is_said(w, said) for w in words) and "canary" not in said, check.text()


def told_by_doctor(lab, gw, *words):
    """So does doctor: which step failed, and no value."""
    def found():
        done = gw.cli("doctor", "--json")
        whats = [f["what"] for f in json.loads(done.out)["findings"] if f["check"] == "secrets" and f["state"] == "bad"]
        return whats if done.rc == 1 and whats else None
    (what,) = lab.wait_for("doctor's word", found)
    assert what.startswith("the policy names the credential api, and it has no value: ") and all(is_said(w, what) for w in words), what
    assert "canary" not in what, what


def memory(pid):
    """All that a process has written or read, as root sees it."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            span, mode = line.split()[:2]
            if mode.startswith("rw") and "[v" not in line:
                begin, end = (int(x, 16) for x in span.split("-"))
                mem.seek(begin)
                yield mem.read(end - begin)
