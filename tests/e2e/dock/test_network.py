#!/usr/bin/env python3
"""What E2B's SDK, unmodified and in both versions, says of a sandbox's network narrows what the policy lets it, by names and by
the addresses that are dialled, and nothing widens it."""
import json

import room  # noqa: F401
from boxes import execute
from docks import Box, Dock
from gateway import upstream_yaml
from harness import main, test

NAMES = ("api.test", "deep.test", "a.deep.test", "x.b.deep.test", "closed.test")
OK, NO, NONE = "200", "403", "000"


def reachable(lab, more=""):
    """A dock whose tenant acme may read all of these names but the last, and write once that is approved; and the upstream that they
    are."""
    up = lab.upstream(*NAMES)
    rules = "\n".join(f"  - id: r{i}\n    match: {{ host: {name}, port: {up.port}, effect: read }}\n    decide: {'allow' if name != 'closed.test' else 'deny'}"
                      for i, name in enumerate(NAMES))
    rules += "\n" + "\n".join(f"  - id: w{i}\n    match: {{ host: {name}, port: {up.port}, effect: write }}\n    decide: hold"
                             for i, name in enumerate(NAMES))
    places = "\n".join(upstream_yaml(name, up.port, up.ca) for name in NAMES)
    policy = f"version: 1\nname: test\nupstreams:\n{places}\nrules:\n{rules}\n"
    return Dock(lab, lanes="acme: web", policy=policy, secrets={"unused": b"x" * 20}, more=more), up


def sdk(lab, package):
    dock, up = reachable(lab)
    key = dock.key("builder", "acme")
    said = json.loads(dock.node(key.secret, "network.mjs", package, *(f"https://{name}:{up.port}/{name}" for name in NAMES)))
    got, words = said["got"], said["words"]
    narrow = [OK, NO, OK, OK, NO]
    alone = [OK, NO, NO, NO, NO]
    assert got == {"all": [OK, OK, OK, OK, NO], "names": narrow, "resumed": narrow, "idiom": alone, "ruled": alone,
                   "denied": [NO, OK, OK, NO, NO], "wins": [NO, NO, OK, OK, NO], "range": [NO] * 5,
                   "within": [OK, OK, OK, OK, NO], "without": [NO] * 5, "mixed": alone, "wider": [OK, OK, OK, OK, NO],
                   "none": [NONE] * 5, "nothing": [NONE] * 5}, got
    for what, part in {"transform": "put in by this gateway's policy", "proxy": "egressProxy` is not had here", "star": "`*` alone",
                       "bits": "10.0.0.1/8", "text": "http://api.test/", "inner": "api.*.test"}.items():
        assert part in words[what], words
    denied = dock.gw.recorded(path="/deep.test", code="network-denied")[0]
    assert denied["kind"] == "denied" and dock.gw.recorded(path="/closed.test", code="rule")


@test()
def sdk_2_51_narrows(lab):
    sdk(lab, "e2b")


@test()
def sdk_2_50_narrows(lab):
    sdk(lab, "e2b-2-50")


@test()
def it_outlives_what_forgets(lab):
    """A fork has it too, and it holds when judge, ledger and dock were others."""
    dock, up = reachable(lab)
    key = dock.key("builder", "acme")
    box = key.create(network={"allowOut": ["api.test"], "denyOut": ["10.0.0.0/8"]})

    def says(box, name):
        return box.says(f"curl -s -m 60 -o /dev/null -w '%{{http_code}}' https://{name}:{up.port}/{name}").decode()

    assert (says(box, "api.test"), says(box, "deep.test")) == (OK, NO)
    for sends in ("", "-d x "):
        words = box.says(f"curl -s -m 60 {sends}https://deep.test:{up.port}/words").decode()
        assert '"network-denied"' in words and "ask whoever created the sandbox" in words, words
    assert not dock.gw.cli_json("approvals", "list", "--all")["tickets"]  # nobody is asked to approve it
    for role in ("judge", "ledger", "dock"):
        dock.gw.kill(role)
        lab.wait_for("it goes on", lambda: says(box, "api.test") == OK)
        assert says(box, "deep.test") == NO, role
    dock.gw.cli("reload", rc=0)
    assert (says(box, "api.test"), says(box, "deep.test")) == (OK, NO)
    for bad in ({"allowOut": [1]}, {"allowOut": ["a" * 300]}, {"denyOut": [f"h{n}.test" for n in range(129)]}, {"allowOut": ["999.1.1.1"]},
                {"allowOut": ["a\nn b"]}, {"denyOut": [""]}):
        status, said = key.ask("POST", "/v2/sandboxes", {"templateID": "base", "network": bad})
        assert status == 400 and said["message"], (bad, status, said)
    # What is said in another form is never taken for nothing said.
    for bad in ("deny", 5, True, [None], [], {"allow_internet_access": False}, {"denyout": []}, {"allowOut": {}}, {"denyOut": False}, {"rules": []},
                {"denyOut": ["0.0.0.0/0", None]}):
        status, said = key.ask("POST", "/v2/sandboxes", {"templateID": "base", "network": bad})
        assert status == 400 and "network" in said["message"], (bad, status, said)
    for bad in ("false", 0, {}, []):
        status, said = key.ask("POST", "/v2/sandboxes", {"templateID": "base", "allow_internet_access": bad})
        assert status == 400 and "allow_internet_access" in said["message"], (bad, status, said)
    for bad in ({"egressProxy": False}, {"allowPublicTraffic": False}, {"maskRequestHost": ""}, {"httpsPorts": []}):
        status, said = key.ask("POST", "/v2/sandboxes", {"templateID": "base", "network": bad})
        assert status == 501 and said["message"], (bad, status, said)


@test()
def no_life_widens(lab):
    """Whatever begins with its files may reach no more than it might: forks of both APIs, snapshots, checkpoints, one that waited
    for whoever asks for it; nor does it after pauses, nor after it was idle (G24)."""
    dock, up = reachable(lab, more="pool: [{ size: 2 }]\nidle: 1s\n")
    key = dock.key("builder", "acme")
    urls = " ".join(f"https://{name}:{up.port}/{name}" for name in NAMES[:3])
    line = f"for u in {urls}; do curl -s -m 60 -o /dev/null -w '%{{http_code}} ' $u; done"
    lab.wait_for("two that wait", lambda: dock.gw.cli_json("status")["sandboxes"]["waiting"] == 2)

    def says(box):
        return box.says(line).decode().split()

    def operators(name):
        return execute(dock.gw, name, "sh", "-c", line).out.decode().split()

    def is_idle(name):
        lab.wait_for("that it is idle", lambda: [s["state"] for s in dock.gw.cli_json("sandbox", "started")["started"]
                                                 if s["name"] == name] == ["idle"])

    box = key.create(network={"allowOut": ["api.test", "*.deep.test"]})
    assert says(box) == [OK, NO, OK]
    made, = key.ask("POST", f"/sandboxes/{box.id}/fork", {})[1]
    fork = Box(key, made["sandbox"]["sandboxID"], lab.canary(made["sandbox"]["envdAccessToken"]))
    assert says(fork) == [OK, NO, OK]
    dock.gw.cli("sandbox", "fork", fork.id, "copy", "--lane", "web", rc=0)
    assert operators("copy") == [OK, NO, OK]
    dock.gw.cli("sandbox", "pause", "copy", rc=0)
    is_idle("copy")
    done = dock.gw.cli("sandbox", "resume", "copy", rc=0)
    assert b"was idle" in done.err and operators("copy") == [OK, NO, OK], done.text()
    assert key.ask("POST", f"/sandboxes/{box.id}/pause", {})[0] == 204
    is_idle(box.id)
    status, again = key.ask("POST", f"/v2/sandboxes/{box.id}/connect", {})
    assert status in (200, 201), again
    assert says(Box(key, box.id, lab.canary(again["envdAccessToken"]))) == [OK, NO, OK]
    status, kept = key.ask("POST", f"/sandboxes/{fork.id}/snapshots", {"name": "kept"})
    assert status == 201, kept
    assert says(key.create(templateID="kept")) == [OK, NO, OK]
    assert says(key.create(templateID="kept", network={"allowOut": ["0.0.0.0/0"]})) == [OK, NO, OK]
    again = key.create(templateID=kept["snapshotID"], network={"allowOut": ["deep.test", "*.deep.test"]})
    assert says(again) == [NO, NO, OK]
    status, kept = key.ask("POST", f"/sandboxes/{again.id}/snapshots", {})
    assert says(key.create(templateID=kept["snapshotID"])) == [NO, NO, OK]  # and so of what is made of that
    alone = key.create(allow_internet_access=False)
    status, kept = key.ask("POST", f"/sandboxes/{alone.id}/snapshots", {})
    assert OK not in says(key.create(templateID=kept["snapshotID"]))
    # An operator's own, of one without a narrowing, is as wide as it was.
    dock.gw.cli("sandbox", "start", "own", "--lane", "web", rc=0)
    dock.gw.cli("sandbox", "snapshot", "own", "wide", rc=0)
    dock.gw.cli("sandbox", "restore", "wide", "other", "--lane", "web", rc=0)
    assert operators("other") == [OK, OK, OK]


main()
