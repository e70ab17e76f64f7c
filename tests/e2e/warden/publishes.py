"""Packages that are held as npm publishes them, for the tests of their diffs: a registry, a gateway that asks for diffs, a package."""
import json

from gateway import Gateway, upstream_yaml

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
NAME = "@acme/agents-thing"  # with a scope: its slash is written as %2f in addresses


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


def first(work):
    put(work, {"version": "1.0.0", "scripts": {"test": "node ."}},
        {"index.js": "module.exports = 1\n", "lib/old.js": "exports.old = 1\n", "gone.txt": "gone\n"})
    (work / "kept.png").write_bytes(PICTURE)


def second(work):
    """With each kind of change."""
    (work / "gone.txt").unlink()
    (work / "lib/old.js").rename(work / "lib/new.js")
    put(work, {"version": "1.1.0", "scripts": {"test": "node .", "postinstall": "node steal.js \u202e"},
               "dependencies": {"left-pad-demo": "^1.0.0"}, "bin": {"ls": "index.js"}},
        {"index.js": "module.exports = 2 // <b>\u202e\n", "steal.js": "x=1;" * 2000 + "\n"})
    (work / "logo.png").write_bytes(PICTURE * 2)
