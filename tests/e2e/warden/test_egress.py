#!/usr/bin/env python3
"""Egress of started sandboxes that may have only so much: requests and bytes, of one and of all of a tenant's; what is
past it is refused in words, no neighbour notices, and the count outlives pauses and dead roles."""
import re

from boxes import execute, start
from harness import main, test
from ways import asked, lanes

KIB = 1024


def answer(gw, up, name, path, *options, rc=None):
    """(curl's exit, status, bytes, what came)"""
    done = execute(gw, name, "curl", "-sS", "-m", "60", "-w", "\n%{http_code} %{size_download}", *options,
                   f"https://{up.name}:{up.port}{path}", rc=rc)
    head, _, tail = done.out.decode(errors="replace").rpartition("\n")
    code, size = tail.split()
    return done.rc, int(code), int(size), head


def used(gw, name):
    rows = [r for r in gw.cli_json("sandbox", "started")["started"] if r["name"] == name]
    return rows[0].get("egress") if rows else None


def settled(gw, name, **wanted):
    gw.lab.wait_for(f"{name} has used {wanted}", lambda: all(used(gw, name)[k] == v for k, v in wanted.items()))


@test()
def so_many_requests_and_no_more(lab):
    gw, up = lanes(lab)
    start(gw, "box", "--lane", "web", "--egress-requests", "3")
    start(gw, "other", "--lane", "web")
    for n in range(3):
        assert answer(gw, up, "box", f"/{n}")[1] == 200
    rc, status, _, body = answer(gw, up, "box", "/fourth")
    assert status == 403 and '"egress-limit"' in body and "this sandbox may use 3 requests of egress" in body, body
    assert "start one that may have more" in body, body
    assert answer(gw, up, "other", "/neighbour")[1] == 200
    assert [r["target"] for r in up.requests()] == ["/0", "/1", "/2", "/neighbour"], up.requests()
    assert gw.recorded(path="/fourth")[0]["code"] == "egress-limit"
    settled(gw, "box", requests=3, requests_used=3)
    assert used(gw, "other") is None
    top = gw.cli("sandbox", "top", "box", rc=0).out.decode()
    assert "  3 of 3  " in top, top
    # a new one of the name begins at nothing; a fork has the same limit, and begins at nothing too
    forked = gw.cli_json("sandbox", "fork", "box", "twin", "--lane", "web")
    assert asked(gw, up, "twin", "/twin") == "200", forked
    settled(gw, "twin", requests=3, requests_used=1)
    gw.cli("sandbox", "destroy", "box", rc=0)
    start(gw, "box", "--lane", "web", "--egress-requests", "1")
    assert [answer(gw, up, "box", "/anew")[1] for _ in range(2)] == [200, 403]


@test()
def requests_at_once_are_not_one_too_many(lab):
    gw, up = lanes(lab)
    start(gw, "box", "--lane", "web", "--egress-requests", "20")
    execute(gw, "box", "sh", "-c", "for n in $(seq 30); do curl -sS -m 60 -o /dev/null -w '%{http_code}\\n' "
            f"https://{up.name}:{up.port}/slow?ms=200 >/workspace/$n & done; wait")
    codes = execute(gw, "box", "sh", "-c", "cat /workspace/*").out.decode().split()
    assert sorted(codes) == ["200"] * 20 + ["403"] * 10, codes
    assert len(up.requests()) == 20


@test()
def so_many_bytes_and_no_more(lab):
    gw, up = lanes(lab)
    start(gw, "box", "--lane", "web", "--egress-bytes", "1M")
    start(gw, "other", "--lane", "web")
    rc, status, size, _ = answer(gw, up, "box", "/big?kib=600", rc=0)
    assert (status, size) == (200, 600 * KIB)
    # as long as it says it is, it does not fit: nothing of it comes, but words
    rc, status, _, body = answer(gw, up, "box", "/big?kib=600", rc=0)
    assert status == 403 and "egress-limit" in body and "1 MiB" in body, (status, body[:500])
    # what does not say how long it is ends where the limit is, and is no success
    rc, status, size, _ = answer(gw, up, "box", "/big?kib=600&chunk=16384")
    assert rc != 0 and status == 200 and size < 500 * KIB, (rc, status, size)
    rc, status, _, body = answer(gw, up, "box", "/late", rc=0)
    assert status == 403 and "egress-limit" in body, body
    assert answer(gw, up, "other", "/big?kib=600", rc=0)[1:3] == (200, 600 * KIB)
    gw.lab.wait_for("all of it is counted", lambda: KIB * KIB <= used(gw, "box")["bytes_used"] <= KIB * KIB + 4 * KIB)


@test()
def it_is_counted_on_through_pauses_and_deaths(lab):
    gw, up = lanes(lab)
    start(gw, "box", "--lane", "web", "--egress-requests", "4")
    assert asked(gw, up, "box", "/1") == "200"
    settled(gw, "box", requests_used=1)
    gw.cli("sandbox", "pause", "box", rc=0)
    gw.cli("sandbox", "resume", "box", rc=0)
    assert asked(gw, up, "box", "/2") == "200"
    settled(gw, "box", requests_used=2)
    for role in ("judge", "ledger"):
        gw.kill(role)
        gw.lab.wait_for("it goes on", lambda: asked(gw, up, "box", "/" + role, rc=None) == "200")
    gw.lab.wait_for("it is used up", lambda: used(gw, "box")["requests_used"] == 4)
    assert answer(gw, up, "box", "/more")[1] == 403
    assert len(up.requests()) == 4, up.requests()


@test()
def all_of_a_tenant_together(lab):
    gw, up = lanes(lab, config="egress: { requests: 10, tenants: [{ tenant: default, requests: 4, per: 1h }] }\n")
    start(gw, "one", "--lane", "web")
    start(gw, "two", "--lane", "web", "--egress-requests", "2")
    assert used(gw, "one")["requests"] == 10 and used(gw, "two")["requests"] == 2
    assert [asked(gw, up, "two", "/two") for _ in range(3)] == ["200", "200", "403"]
    gw.cli("sandbox", "destroy", "two", rc=0)
    assert [asked(gw, up, "one", "/one") for _ in range(2)] == ["200", "200"]
    rc, status, _, body = answer(gw, up, "one", "/one", "-D", "-")
    assert status == 403 and "all sandboxes of its tenant together may use 4 requests" in body, body
    assert re.search(r"(?i)retry-after: 3[0-9]{3}", body) and "Repeat the same request after" in body, body
    start(gw, "three", "--lane", "web")
    assert asked(gw, up, "three", "/three") == "403", "what one that has ended used is used"


main()
