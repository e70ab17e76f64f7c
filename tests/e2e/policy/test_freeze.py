#!/usr/bin/env python3
"""`countersign freeze` and `thaw`, and shadow mode."""
import secrets

import room  # noqa: F401
from attack import Rig
from gateway import Gateway, Page, simple_policy
from harness import PATIENCE, main, test


def curl(lab, gw, up, path, *more, host=None):
    done = lab.run(["curl", "-sS", "--max-time", str(PATIENCE), "--suppress-connect-headers", "-D", "-", *more,
                    f"https://{host or up.name}:{up.port}{path}"], env=gw.client_env())
    return done.out


def post(lab, gw, up, path, **more):
    return curl(lab, gw, up, path, "-X", "POST", "--data-binary", "a=1", **more)


@test()
def frozen_writes_are_refused_over_a_restart_and_approvals_wait(lab):
    up = lab.upstream()
    secret = lab.canary(secrets.token_urlsafe(32))
    gw = Gateway(lab, simple_policy(up), {"api": secret.encode()}, hold="inline_wait: 0s, expires: 2h")
    post(lab, gw, up, "/things")
    ticket = gw.pending()
    gw.approve(ticket["id"])
    said = gw.cli("freeze", "--reason", "an <b>incident</b>", rc=0)
    assert b"frozen" in said.out
    out = post(lab, gw, up, "/things")
    assert b'"frozen"' in out and b"403" in out.splitlines()[0], out
    assert b" 200" in curl(lab, gw, up, "/ok").splitlines()[0]
    gw.kill("judge")  # the next one learns it from the ledger
    lab.wait_for("the judge's return", lambda: b" 200" in curl(lab, gw, up, "/ok")[:20])
    assert b'"frozen"' in post(lab, gw, up, "/things")
    status = gw.cli("status", rc=0).out
    assert b"frozen by" in status and b"an <b>incident</b>" in status, status
    answer, page = Page(gw).ask("GET", "/")
    assert answer.status == 200 and b"Writes are frozen" in page and b"<b>incident" not in page, page
    assert "POST /things" not in up.effects(), up.effects()
    gw.cli("thaw", rc=0)
    assert b" 200" in post(lab, gw, up, "/things").splitlines()[0]
    assert up.effects()["POST /things"] == 1
    assert [r["kind"] for r in gw.recorded(2, fits=lambda r: r["kind"] in ("freeze", "thaw"))] == ["freeze", "thaw"]


@test()
def a_body_on_its_way_is_cut_off(lab):
    rig = Rig(lab)
    wire = rig.open("connect")
    wire.sock.sendall(wire.fill(wire.head("POST", "/w/x", "Content-Length: 100000")) + b"a" * 60000)
    lab.wait_for("the first bytes", lambda: sum(f.stat().st_size for f in rig.up.dir.glob("*.in")) > 50000)
    rig.gw.cli("freeze", rc=0)
    got = wire.talk(b"")
    assert got.status == [409] and got.closed and b'"outcome-unknown"' in got.data, got
    assert not any(r["complete"] for r in rig.requests()), rig.requests()
    results = rig.gw.recorded(kind="result")
    assert [(r["outcome"], r["code"]) for r in results] == [("unknown", "frozen")], results


@test()
def shadow_mode_blocks_nothing_adds_nothing_and_says_what_would_be(lab):
    up = lab.upstream("upstream.test", "unnamed.test")
    secret = lab.canary(secrets.token_urlsafe(32))
    gw = Gateway(lab, simple_policy(up), {"api": secret.encode()}, config="mode: shadow\n")
    assert b" 200" in post(lab, gw, up, "/things").splitlines()[0]
    own = curl(lab, gw, up, "/ok", "-H", "Authorization: Bearer the-agents-own")
    assert b" 200" in own.splitlines()[0], own
    seen = [[tuple(f) for f in r["fields"]] for r in up.requests()]
    assert not any(secret in v for fields in seen for _, v in fields), seen
    assert ("Authorization", "Bearer the-agents-own") in seen[-1], seen
    # A host that no rule names passes the policy, and is still dialled only where one may dial: not at a private address.
    other = curl(lab, gw, up, "/ok", host="unnamed.test")
    assert b" 502" in other.splitlines()[0], other
    lab.wait_for("the records", lambda: {("POST", "hold", False), ("GET", "allow", False)} <= {
        (r["method"], r["verdict"], r["enforced"]) for r in gw.audit() if r["kind"] == "result"})  # a read's comes a little later
    tail = gw.cli("audit", "tail", rc=0).out
    assert b"enforced, it would be held" in tail, tail
    assert b"shadow" in gw.cli("status", rc=0).out
    assert b"shadow: nothing is held or denied\n" in gw.process.seen
    assert b"shadow mode: nothing is held or denied" in gw.cli("doctor", rc=0).out
    answer, page = Page(gw).ask("GET", "/")
    assert answer.status == 200 and b"Shadow mode" in page
    assert gw.tickets() == []


if __name__ == "__main__":
    main()
