#!/usr/bin/env python3
"""E2B's own SDK, unmodified, in the two versions between which its routes moved, and ComputeSDK's provider for it."""
import base64
import json

import room  # noqa: F401
from boxes import nothing_is_left
from docks import Box, Dock, both
from gateway import simple_policy, upstream_yaml
from harness import Skip, main, test

# What the API is counted by, as sdk.mjs calls it when it went well.
OPERATIONS = """create connect list metadata setTimeout pause resume snapshot fork kill
files.write files.read files.list files.exists files.getInfo files.rename files.remove files.makeDir files.watchDir
files.uploadUrl files.downloadUrl commands.run commands.stream commands.background commands.list commands.kill commands.sendStdin pty""".split()
# More of the SDK that there is.
OTHERS = "health getInfo getMetrics files.stream commands.connect commands.closeStdin".split()
# What is not had, and a part of the words in which the SDK's caller is told why.
NOT_HAD = {"updateNetwork": "is said when it is created",
           "secrets": "credentials are set by operators"}


def all_of_it(dock, package):
    key = dock.key("builder", "acme")
    said = dock.node(key.secret, "sdk.mjs", package).splitlines()
    done = {line.removeprefix("ok ") for line in said if line.startswith("ok ")}
    words = dict(line.removeprefix("no ").split(": ", 1) for line in said if line.startswith("no "))
    assert done == {*OPERATIONS, *OTHERS}, (done ^ {*OPERATIONS, *OTHERS}, said)
    assert words.keys() == NOT_HAD.keys() and all(why in words[name] for name, why in NOT_HAD.items()), words
    assert len(set(OPERATIONS)) == 28
    notes = {row["about"] for row in dock.gw.audit() if row["kind"] == "note" and row["what"].get("operator") == "key builder"}
    assert {"sandbox-start", "sandbox-exec", "sandbox-files", "sandbox-pause", "sandbox-resume", "sandbox-destroy", "sandbox-snapshot",
            "sandbox-restore", "checkpoint-rm"} <= notes, notes
    nothing_is_left(dock.gw)


@both
def sdk_2_51_does_all_operations(lab, dock):
    all_of_it(dock, "e2b")


@both
def sdk_2_50_does_all_operations(lab, dock):
    all_of_it(dock, "e2b-2-50")


@both
def computesdk_starts_a_sandbox_and_runs_code(lab, dock):
    if lab.run(["node", "-p", "!!process.features.require_module"], rc=0).out.strip() != b"true":
        raise Skip("this Node cannot require() an ES module, as the E2B package that ComputeSDK requires does; 20.19 and 22.12 can")
    key = dock.key("builder", "acme")
    assert "ok computesdk" in dock.node(key.secret, "computesdk.mjs", "@computesdk/e2b")


@test()
def the_sdk_comes_back_to_one_that_is_idle(lab):
    """G24"""
    dock = Dock(lab, more="idle: 1s\n")
    for package in ("e2b", "e2b-2-50"):
        key = dock.key(package, "acme")
        box = json.loads(dock.node(key.secret, "idle.mjs", package, "before"))
        lab.wait_for("that it is idle", lambda: [s["state"] for s in dock.gw.cli_json("sandbox", "started")["started"]] == ["idle"])
        nothing_is_left(dock.gw)
        old = Box(key, box["id"], box["token"])
        assert key.ask("GET", "/files?path=kept", None, old.headers())[0] == 502  # what opened it opens it no more
        assert dock.key(package + "-other", "globex").ask("POST", f"/v2/sandboxes/{box['id']}/connect", {})[0] == 404
        assert key.ask("GET", f"/sandboxes/{box['id']}/metrics") == (200, [])
        assert key.ask("GET", "/sandboxes/none/metrics")[0] == 404
        again = json.loads(dock.node(key.secret, "idle.mjs", package, "after", box["id"]))
        assert again["id"] == box["id"] and again["token"] != box["token"]
        assert key.ask("GET", "/files?path=kept", None, old.headers())[0] == 502
        assert key.ask("GET", "/files?path=kept", None, Box(key, again["id"], again["token"]).headers())[:2] == (200, b"over a long pause")
        assert Box(key, box["id"], "").kill() == 204


def packages(lab):
    """A registry that only its user may read, with what the application needs, and a policy that has its password."""
    registry = lab.verdaccio()
    registry.publish("shout", "1.0.0", {"package.json": '{"name":"shout","version":"1.0.0","type":"module","exports":"./index.js"}',
                                        "index.js": "export const shout = (text) => text.toUpperCase() + '!'\n"})
    registry.publish("mark", "1.0.0", {"package.json": '{"name":"mark","version":"1.0.0","type":"module","exports":"./index.js"}',
                                       "index.js": "export const mark = (text) => text + '!'\n"})
    place = f"host: {registry.host}, port: {registry.port}"
    return registry, f"""version: 1
name: npm
packs: [npm@1]
upstreams:
{upstream_yaml(registry.host, registry.port, registry.ca)}
scopes:
  web: {{ labels: {{ lane: [web] }} }}
credentials:
  npm:
    source: {{ store: npm }}
    inject: {{ basic: true }}
    only: [{{ {place} }}]
rules:
  - {{ id: read, match: {{ {place}, effect: read }}, scope: web, decide: allow, use: npm }}
  - id: no-publish
    match: {{ {place}, effect: [write, delete] }}
    decide: deny
    say: "Packages are published by the release job."
"""


def application(lab, ordinary):
    registry, policy = packages(lab)
    dock = Dock(lab, ordinary, policy, {"npm": f"{registry.user}:{registry.password}".encode()}, lanes="acme: web")
    key = dock.key("builder", "acme")
    assert "ok vibe" in dock.node(key.secret, "vibe.mjs", "e2b", registry.url)
    read = dock.gw.recorded(2, kind="result", verdict="allow", fits=lambda r: r["path"].endswith(".tgz"))
    assert len({r["sandbox"] for r in read}) == 2 and {r["generation"] for r in read} == {1}, read
    ran = {(row["sandbox"], row["command"]) for row in map(json.loads, dock.gw.cli("runs", "export", rc=0).out.splitlines())
           if row["what"] == "command" and row["effects"]["requests"] > 0}
    assert {(r["sandbox"], r["step"]) for r in read} <= ran, (read, ran)  # each by the command that installed it
    nothing_is_left(dock.gw)


@test()
def an_application_is_made_kept_and_gone_on_with(lab):
    application(lab, False)


@test()
def and_by_an_ordinary_user(lab):
    application(lab, True)


def lanes_of_tenants(lab, ordinary):
    """G25: of two tenants one has a lane, and no caller says otherwise."""
    up = lab.upstream()
    dock = Dock(lab, ordinary, lanes="acme: web", policy=simple_policy(up))
    url = f"https://{up.name}:{up.port}"
    acme, globex = dock.key("one", "acme"), dock.key("two", "globex")

    def status(box, path):
        events, end = box.run(f"curl -s -m 60 -o /dev/null -w '%{{http_code}}' {url}{path}")
        assert not end.get("error"), end
        return b"".join(base64.b64decode(e["data"]["stdout"]) for e in events if e.get("data", {}).get("stdout")).decode()

    boxes = {"open": acme.create(), "told": acme.create(allow_internet_access=True),
             "alone": acme.create(allow_internet_access=False), "denied": acme.create(network={"denyOut": ["0.0.0.0/0"]}),
             "other": globex.create(), "wants": globex.create(allow_internet_access=True)}
    got = {name: status(box, f"/{name}") for name, box in boxes.items()}
    assert got == {"open": "200", "told": "200", "alone": "000", "denied": "000", "other": "000", "wants": "000"}, got
    assert acme.ask("POST", f"/sandboxes/{boxes['open'].id}/pause", {})[0] == 204
    assert acme.ask("POST", f"/v2/sandboxes/{boxes['open'].id}/connect", {"timeout": 60})[0] == 201
    assert status(boxes["open"], "/again") == "200"
    assert dock.gw.recorded(kind="result", path="/again")[0]["generation"] == 2
    for name, wants in (("open", "200"), ("alone", "000")):  # a fork is as free as its origin
        made, = acme.ask("POST", f"/sandboxes/{boxes[name].id}/fork", {})[1]
        boxes[name + "-fork"] = fork = Box(acme, made["sandbox"]["sandboxID"], lab.canary(made["sandbox"]["envdAccessToken"]))
        assert status(fork, f"/{name}-fork") == wants, name
    for more in ({"allowOut": ["*"]}, {"egressProxy": {"address": "x.test:1080"}}, {"maskRequestHost": "x.test"}):
        assert acme.ask("POST", "/v2/sandboxes", {"templateID": "base", "network": more})[0] == 501, more
    assert sorted(r["target"] for r in up.requests()) == ["/again", "/open", "/open-fork", "/told"]
    for box in boxes.values():
        assert box.kill() == 204
    nothing_is_left(dock.gw)


@test()
def its_sandboxes_have_their_tenants_lane_or_none(lab):
    lanes_of_tenants(lab, False)


@test()
def and_of_an_ordinary_users_gateway(lab):
    lanes_of_tenants(lab, True)


main()
