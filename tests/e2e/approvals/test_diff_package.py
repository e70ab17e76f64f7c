#!/usr/bin/env python3
"""The diff of a held `npm publish`: real npm, a real registry, and the last version that this one has."""
import json
import sys

from room import forms, words
from gateway import Gateway, Page, upstream_yaml
from harness import main, test
from pushes import by_path, over

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parents[1] / "warden"))
from boxes import nothing_is_left  # noqa: E402

NAME = "agents-thing"


def policy(registry):
    place = f"host: {registry.host}, port: {registry.port}"
    return f"""version: 1
name: npm
packs: [{{ pack: npm@1, hosts: ["{registry.host}:{registry.port}"] }}]
upstreams:
{upstream_yaml(registry.host, registry.port, registry.ca)}
credentials:
  npm:
    source: {{ store: npm }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    only: [{{ {place} }}]
scopes:
  diffs: {{ labels: {{ lane: [diffs] }} }}
rules:
  - id: diffs-read
    scope: diffs
    match: {{ {place}, op: [npm.metadata, npm.tarball], resource: "npm:{NAME}" }}
    decide: allow
    use: npm
  - id: diffs-nothing-else
    scope: diffs
    match: {{ {place}, effect: [write, delete, admin, spend, exec] }}
    decide: deny
  - id: publish
    match: {{ {place}, op: npm.publish }}
    decide: hold
    use: npm
    approve: {{ diff: required }}
"""


def setup(lab):
    registry = lab.verdaccio()
    gw = Gateway(lab, policy(registry), {"npm": registry.token().encode()}, config="diff: { lane: diffs }\n")
    env = {**gw.client_env(), "npm_config_registry": registry.url, "npm_config_audit": "false", "npm_config_fund": "false",
           "npm_config_update_notifier": "false", "npm_config_fetch_retries": "0",
           f"npm_config_//{registry.host}:{registry.port}/:_authToken": "not-a-real-token"}
    work = lab.dir / "thing"
    (work / "lib").mkdir(parents=True)
    return registry, gw, env, work


def put(work, about, files):
    (work / "package.json").write_text(json.dumps({"name": NAME, "description": "by an agent", **about}, indent=2) + "\n")
    for path, text in files.items():
        (work / path).write_text(text)


def publish(lab, gw, work, env, *options):
    """The ticket of a publish that waits."""
    known = {t["id"] for t in gw.tickets()}
    client = lab.start(["npm", "publish", "--ignore-scripts", *options], env=env, cwd=work)

    def held():
        assert client.popen.poll() is None, client.seen
        return next((t["id"] for t in gw.tickets() if t["id"] not in known), None)
    return client, lab.wait_for("it is held", held)


def seen(page, ticket):
    text = page.ask("GET", f"/tickets/{ticket}")[1].decode()
    return text, words(text)


@test()
def a_package_is_shown_beside_the_last_one(lab):
    registry, gw, env, work = setup(lab)
    person = Page(gw)
    put(work, {"version": "1.0.0", "scripts": {"test": "node ."}},
        {"index.js": "module.exports = 1\n", "lib/old.js": "exports.old = 1\n", "gone.txt": "gone\n"})
    client, ticket = publish(lab, gw, work, env)
    said, diff = over(lab, gw, ticket)
    first = diff["package"]
    assert said["complete"] and first["state"] == "first" and "old" not in first, (said, diff)
    assert set(by_path(first)) == {"package.json", "index.js", "lib/old.js", "gone.txt"}, first
    assert "There is no earlier version to compare it with" in seen(person, ticket)[1]
    gw.approve(ticket)
    assert client.wait() == 0, client.seen

    (work / "gone.txt").unlink()
    (work / "lib/old.js").rename(work / "lib/new.js")
    put(work, {"version": "1.1.0", "scripts": {"test": "node .", "postinstall": "node steal.js \u202e"},
               "dependencies": {"left-pad-demo": "^1.0.0"}, "bin": {"ls": "index.js"}},
        {"index.js": "module.exports = 2 // <b>\u202e\n", "steal.js": "x=1;" * 2000 + "\n"})
    (work / "data.bin").write_bytes(bytes(range(256)) * 8)
    client, ticket = publish(lab, gw, work, env)
    said, diff = over(lab, gw, ticket)
    package = diff["package"]
    assert said == {"wanted": "required", "state": "made", "complete": True}, (said, diff)
    assert [package[key] for key in ("state", "base", "old", "new", "tag", "hash", "sent", "already")] == \
        ["compared", "tag", "1.0.0", "1.1.0", "latest", "sha512", "good", False], package
    assert {(f["in"], f["name"], f["how"], f["new"]) for f in package["facts"]} == {
        ("scripts", "postinstall", "A", "node steal.js \u202e"), ("dependencies", "left-pad-demo", "A", "^1.0.0"),
        ("bin", "ls", "A", "index.js")}, package["facts"]
    files = by_path(package)
    assert package["files"][0]["path"] == "package.json"
    assert {p: f["how"] for p, f in files.items()} == {"package.json": "M", "index.js": "M", "lib/new.js": "R", "steal.js": "A",
                                                       "data.bin": "A", "gone.txt": "D"}
    assert "-module.exports = 1\n+module.exports = 2" in files["index.js"]["patch"], files["index.js"]
    assert files["lib/new.js"]["from"] == "lib/old.js" and files["data.bin"]["kind"] == "binary" and files["steal.js"]["dense"]
    text, page = seen(person, ticket)
    for sentence in ("What the package changes a yes waits for it", "compared with 1.0.0, on which the tag latest stands now",
                     "1 install script, 1 dependency change, 1 command it installs, 1 binary file, 1 minified file", "runs when it is installed",
                     "lib/old.js → lib/new.js", "minified, or very long lines"):
        assert sentence in page, (sentence, page)
    assert "\u202e" not in text and "<b>\\u202e" not in text and "approve" in forms(text)
    gw.deny(ticket, "no")
    client.wait()

    # a registry whose file is not the one of its list
    [kept] = registry.dir.glob(f"storage/{NAME}/*-1.0.0.tgz")
    packed = bytearray(kept.read_bytes())
    packed[9] ^= 1  # on which system it was made: all else is as it was, and it unpacks as before
    kept.write_bytes(packed)
    put(work, {"version": "1.1.1"}, {})
    client, ticket = publish(lab, gw, work, env)
    said, _ = over(lab, gw, ticket)
    assert said["state"] == "failed" and "does not have the hash that the registry's own list says" in said["why"], said
    refused = gw.cli("approvals", "approve", ticket)
    assert refused.rc != 0 and b"could not be found out" in refused.both, refused.both
    text, page = seen(person, ticket)
    assert "approve" not in forms(text) and "nothing was compared with it" in page, page
    gw.deny(ticket, "no")
    client.wait()
    nothing_is_left(gw)


if __name__ == "__main__":
    main()
