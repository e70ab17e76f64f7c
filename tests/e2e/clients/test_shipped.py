#!/usr/bin/env python3
"""The policies of conf/policies, each with the clients that it is for, unmodified. What is tried is the shipped file itself: only
where its hosts are is put in, a port and an address, and another name where a server of the lab has one of its own."""
import base64
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import zipfile

import room  # noqa: F401
from apis import LOOKS, image, raw
from gateway import Gateway, Page, commit, program, upstream_yaml
from harness import TOP, Skip, main, test
from servers import TokenServer, docker_registry

HOLD = "inline_wait: 0s, expires: 2h"
WAIT = b"epeat the same request"  # twine prints the reason of the status alone


def shipped(name, places, parts=()):
    """The policy with its hosts put where they are: {host: (its name here, port, CA)}. parts: what is a host of its own here."""
    text = (TOP / f"conf/policies/{name}.yaml").read_text()
    for old, new in parts:
        assert old in text, old
        text = text.replace(old, new)

    def put(found):
        here = [places.get(h.strip()) for h in found[2].strip("[]").split(",")]
        if not any(here):
            return found[0]
        assert len({port for _, port, _ in here}) == 1, found[0]
        hosts = here[0][0] if len(here) == 1 else f"[{', '.join(h for h, _, _ in here)}]"
        return f"{found[1]}host: {hosts}{chr(10) + found[1] if found[1].isspace() else ', '}port: {here[0][1]}"
    packs = {"graphql@1": ["api.github.com"], "npm@1": ["registry.npmjs.org"], "pypi@1": ["pypi.org", "files.pythonhosted.org", "upload.pypi.org"]}
    for pack, hosts in packs.items():  # a pack knows its hosts by the usual port
        at = [f"{here}:{port}" for here, port, _ in (places[h] for h in hosts if h in places)]
        text = re.sub(rf"(?m)^(packs:.*){pack}", lambda m, pack=pack, at=at: f"{m[1]}{{ pack: {pack}, hosts: {json.dumps(at)} }}", text)
    text = re.sub(r"(?m)(^ +|\{ )host: (\[[^\]]*\]|[\w.-]+)", put, text)
    ups = "".join(upstream_yaml(here, port, ca) for here, port, ca in dict.fromkeys(places.values()))
    return text.replace("\ncredentials:", f"\nupstreams:\n{ups}\ncredentials:", 1)


class Behind:
    """A gateway with a shipped policy, and commands in sandboxes of it."""

    def __init__(self, lab, name, places, store, change=(), hold=HOLD, parts=()):
        text = shipped(name, places, parts)
        for old, new in change:
            assert old in text, old
            text = text.replace(old, new)
        self.lab, self.gw, self.work = lab, Gateway(lab, text, store, hold=hold), lab.dir / "work"
        self.work.mkdir()

    def command(self, *words, setenv=()):
        env = sum((["--setenv", e] for e in setenv), [])
        return [program(), "run", "--quiet", "--state-dir", self.gw.state, "--workspace", self.work, *env, "--", *map(str, words)]

    def __call__(self, *words, rc=0, **more):
        return self.lab.run(self.command(*words, **more), rc=rc)

    def held(self, *words, rule, shows=(), **more):
        """It waits and says so; once all that it asks for is approved, it is done. How many approvals that took. shows:
        what each one's page has."""
        for n in range(9):
            done = self(*words, rc=None, **more)
            tickets = self.gw.tickets()
            if not tickets:
                assert done.rc == 0 and n, done.text()
                return n, done
            assert {t["rule"]["id"] for t in tickets} <= set(rule) and done.rc != 0 and WAIT in b" ".join(done.both.split()), (done.text(), tickets)
            for ticket in tickets:
                shown = Page(self.gw).ask("GET", f"/tickets/{ticket['id']}")[1].decode() if shows else ""
                assert all(text in shown for text in shows), shown
                self.gw.approve(ticket["id"])
        raise AssertionError(done.text())

    def denied(self, *words, says, **more):
        done = self(*words, rc=None, **more)
        assert done.rc != 0 and says.encode() in b" ".join(done.both.split()), done.text()
        assert self.gw.tickets() == []


def one_server(lab, *hosts):
    """An upstream that is all of these, and where each is."""
    up = lab.upstream(*hosts)
    return up, {h: (h, up.port, up.ca) for h in hosts}


def seen(up, path):
    return [dict(r["fields"]) for r in up.requests() if r["target"].partition("?")[0] == path]


def need(name, package):
    if not shutil.which(name, path="/usr/bin:/usr/local/bin"):
        raise Skip(f"{name} ({package} of Debian)")


# ---- kubernetes-readonly ----

POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web", "namespace": "default"}, "spec": {"containers": [{"name": "c"}]}}


@test()
def kubectl_looks_and_changes_nothing(lab):
    need("kubectl", "kubernetes-client")
    up, places = one_server(lab, "kubernetes.example")
    pods = "/api/v1/namespaces/default/pods"
    review = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": {"allowed": True}}
    kinds = [{"name": name, "singularName": name[:-1], "namespaced": True, "kind": kind, "verbs": ["get", "list", "delete", "create", "patch"]}
             for name, kind in (("pods", "Pod"), ("secrets", "Secret"))]
    up.script({**{path: raw(answer) for path, answer in LOOKS.items()},
               "/api/v1": raw({"kind": "APIResourceList", "groupVersion": "v1", "resources": kinds}),
               pods: raw({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": [POD]}),
               f"{pods}/web": raw(POD), f"{pods}/web/log": raw("a line of the log\n", kind="text/plain"),
               "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": raw(review)})
    token = lab.canary(secrets.token_urlsafe(32))
    behind = Behind(lab, "kubernetes-readonly", places, {"kubernetes": token.encode()})
    kubectl = ["kubectl", "--server", f"https://kubernetes.example:{up.port}", "--token", "any", "--cache-dir", "/tmp/cache"]
    assert b"web" in behind(*kubectl, "get", "pods", "-o", "name").out
    assert b"a line of the log" in behind(*kubectl, "logs", "web").out
    assert b"yes" in behind(*kubectl, "auth", "can-i", "list", "pods").out
    behind.denied(*kubectl, "get", "secrets", says="Secrets of the cluster are not read.")
    behind.denied(*kubectl, "delete", "pod", "web", "--wait=false", says="The cluster is only looked at from here.")
    behind.denied(*kubectl, "exec", "web", "--", "sh", says="Nobody enters a pod")
    assert {r["method"] for r in up.requests()} <= {"GET", "POST"} and not any("exec" in r["target"] for r in up.requests())
    assert all(dict(r["fields"])["Authorization"] == f"Bearer {token}" for r in up.requests())
    assert [r["target"] for r in up.requests() if r["method"] == "POST"] == ["/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"]


# ---- npm, pypi ----

@test()
def npm_installs_publishes_and_tags(lab):
    registry = lab.verdaccio(is_open=True)
    registry.publish("left-pad-demo", "1.0.0", {"index.js": "module.exports = 1;\n"})
    behind = Behind(lab, "npm", {"registry.npmjs.org": (registry.host, registry.port, registry.ca)}, {"npm": registry.token().encode()})
    npm = ["npm", f"--registry={registry.url}", "--no-fund", "--no-update-notifier", f"--//{registry.host}:{registry.port}/:_authToken=any"]
    (behind.work / "package.json").write_text('{"name":"agents-thing","version":"1.0.0","description":"x"}')
    behind(*npm, "install", "left-pad-demo@1.0.0")  # with its audit
    assert (behind.work / "node_modules/left-pad-demo/index.js").exists()
    (behind.work / "bin").mkdir()
    (behind.work / "bin/thing.js").write_text("#!/usr/bin/env node\n")
    behind.held(*npm, "publish", rule=["npm-write"], shows=["<b>agents-thing</b> 1.0.0, and has 2 files", "package/bin/thing.js</td>"])
    assert json.loads(registry.ask("GET", "agents-thing")[1])["dist-tags"] == {"latest": "1.0.0"}
    behind.held(*npm, "dist-tag", "add", "agents-thing@1.0.0", "beta", rule=["npm-write"])
    assert json.loads(registry.ask("GET", "agents-thing")[1])["dist-tags"] == {"latest": "1.0.0", "beta": "1.0.0"}
    behind.denied(*npm, "token", "list", says="Accounts and tokens of npm are made by people.")


def wheel(version="1.0"):
    """A package of one empty module."""
    data, about = io.BytesIO(), f"demo_thing-{version}.dist-info"
    with zipfile.ZipFile(data, "w") as out:
        out.writestr("demo_thing.py", "")
        out.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: demo-thing\nVersion: {version}\n")
        out.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        out.writestr(f"{about}/RECORD", "")
    return f"demo_thing-{version}-py3-none-any.whl", data.getvalue()


def index(lab):
    """The three hosts of PyPI: (upstream, gateway, the file)."""
    up, places = one_server(lab, "pypi.org", "files.pythonhosted.org", "upload.pypi.org")
    name, data = wheel()
    token = lab.canary("pypi-" + secrets.token_urlsafe(40), "__token__")
    page = (f'<!DOCTYPE html><a href="https://files.pythonhosted.org:{up.port}/packages/a1/{name}'
            f'#sha256={hashlib.sha256(data).hexdigest()}">{name}</a>')
    up.script({"/simple/demo-thing/": raw(page, kind="text/html"), f"/packages/a1/{name}": raw(data, kind="application/octet-stream")})
    behind = Behind(lab, "pypi", places, {"pypi": token.encode()})
    (behind.work / name).write_bytes(data)
    return up, behind, name, token


@test()
def pip_installs(lab):
    up, behind, name, _ = index(lab)
    pip = "python3 -m pip --disable-pip-version-check download --no-deps --no-cache-dir -d wheels demo-thing --index-url".split()
    behind(*pip, f"https://pypi.org:{up.port}/simple/")
    assert (behind.work / "wheels" / name).exists()
    assert not any("Authorization" in dict(r["fields"]) for r in up.requests())
    behind.denied("curl", "-sS", "--fail-with-body", "-d", "<methodCall/>", "-H", "Content-Type: text/xml", f"https://pypi.org:{up.port}/pypi",
                  says="Here packages are read and uploaded")


@test()
def twine_uploads_once_approved(lab):
    need("twine", "twine")
    up, behind, name, token = index(lab)
    upload = ["twine", "upload", "--disable-progress-bar", "--non-interactive", "-u", "__token__", "-p", "any", "--repository-url",
              f"https://upload.pypi.org:{up.port}/legacy/", name]
    behind.held(*upload, rule=["pypi-upload"])
    sent = seen(up, "/legacy/")
    assert len(sent) == 1 and base64.b64decode(sent[0]["Authorization"].partition(" ")[2]).decode() == f"__token__:{token}", sent


# ---- github ----

API = "/api/v3"  # where gh looks for the API of a host that is not github.com


class GitHub:
    """api.github.com, uploads.github.com and the hosts of files in one upstream; Git itself is a server of its own."""

    def __init__(self, lab, has_git=True, hold=HOLD):
        self.git = lab.git_server() if has_git else None
        hosts = ("api.github.com", "uploads.github.com", "codeload.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com",
                 "release-assets.githubusercontent.com", "github-cloud.githubusercontent.com", "github-cloud.s3.amazonaws.com",
                 "lfs.github.com", *([] if has_git else ["github.com"]))
        self.up, places = one_server(lab, *hosts)
        self.token, change = lab.canary(secrets.token_urlsafe(32), "x-access-token"), []
        if has_git:
            self.token, change = self.git.password, [("user: x-access-token", f"user: {self.git.user}")]
            places["github.com"] = (self.git.host, self.git.port, self.git.ca)
        self.behind = Behind(lab, "github", places, {"github": self.token.encode()}, change, hold=hold)
        self.at = f"api.github.com:{self.up.port}"
        self.gh = {"setenv": [f"GH_HOST={self.at}", "GH_ENTERPRISE_TOKEN=any", "GH_NO_UPDATE_NOTIFIER=1", "GH_PROMPT_DISABLED=1"]}


@test()
def git_clones_and_pushes_once_approved(lab):
    hub = GitHub(lab)
    behind, app = hub.behind, hub.behind.work / "app"
    behind("git", "clone", "-q", hub.git.url, "app")
    commit(lab, app, {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@a.example", "GIT_COMMITTER_NAME": "a",
                      "GIT_COMMITTER_EMAIL": "a@a.example"})
    behind.held("git", "-C", "app", "push", "-q", "origin", "HEAD:agent", rule=["github-push"])
    assert [ref for _, _, ref in hub.git.landed()] == ["refs/heads/agent"]


@test()
def gh_reads_and_writes_once_approved(lab):
    """gh pr list is one query of GraphQL, gh issue create asks GraphQL and then waits for a mutation; gh api is REST."""
    hub, listed = GitHub(lab), {"number": 7, "title": "by an agent", "headRefName": "agent"}
    behind, up = hub.behind, hub.up
    repository = {"id": "R_1", "name": "app", "owner": {"login": "acme"}, "hasIssuesEnabled": True, "viewerPermission": "WRITE",
                  "pullRequests": {"totalCount": 1, "nodes": [listed], "pageInfo": {"hasNextPage": False}}}
    up.script({f"POST {API[:4]}/graphql": raw({"data": {"repository": repository, "createIssue": {"issue": {"url": "https://made/1"}}}}),
               f"{API}/repos/acme/app": raw({"full_name": "acme/app"})})
    assert b"acme/app" in behind("gh", "api", "repos/acme/app", **hub.gh).out
    done = behind("gh", "pr", "list", "-R", f"{hub.at}/acme/app", "--json", "number,title", **hub.gh)
    assert json.loads(done.out) == [{"number": 7, "title": "by an agent"}], done.text()
    before = len(seen(up, "/api/graphql"))
    behind.held("gh", "api", "graphql", "-f", "query=mutation{createIssue(input:{}){issue{url}}}", rule=["github-api-write"], **hub.gh)
    behind.held("gh", "api", "repos/acme/app/issues", "-f", "title=x", rule=["github-api-write"], **hub.gh)
    assert len(seen(up, "/api/graphql")) == before + 1 and len(seen(up, f"{API}/repos/acme/app/issues")) == 1
    assert {dict(r["fields"])["Authorization"] for r in up.requests()} == {f"Bearer {hub.token}"}


@test()
def gh_fetches_releases_and_adds_to_one_once_approved(lab):
    hub = GitHub(lab)
    behind, up = hub.behind, hub.up
    (behind.work / "new.txt").write_text("new")
    files, at = f"https://release-assets.githubusercontent.com:{up.port}", f"https://{hub.at}{API}/repos/acme/app/releases"
    asset = {"id": 1, "name": "old.txt", "size": 3, "state": "uploaded", "url": f"{at}/assets/1"}
    uploads = f"https://uploads.github.com:{up.port}/repos/acme/app/releases/7/assets"
    release = {"id": 7, "tag_name": "v1", "name": "v1", "assets": [asset], "url": f"{at}/7", "upload_url": uploads + "{?name,label}",
               "tarball_url": f"https://{hub.at}{API}/repos/acme/app/tarball/v1"}
    up.script({f"{API}/repos/acme/app/releases/tags/v1": raw(release), "/signed/1": raw("old", kind="text/plain"),
               f"{API}/repos/acme/app/releases/assets/1": f"/redirect?to={files}/signed/1",
               f"{API}/repos/acme/app/tarball/v1": f"/redirect?to=https://codeload.github.com:{up.port}/acme/app/legacy.tar.gz/v1",
               "/acme/app/tar.gz/v1": raw("an archive", kind="application/x-gzip", fields=["Content-Disposition: attachment; filename=app.tar.gz"]),
               "/repos/acme/app/releases/7/assets": raw({**asset, "name": "new.txt"})})
    repo = ["-R", f"{hub.at}/acme/app"]
    behind("gh", "release", "download", "v1", *repo, **hub.gh)
    assert (behind.work / "old.txt").read_text() == "old"
    behind("gh", "release", "download", "v1", "--archive=tar.gz", *repo, **hub.gh)
    assert (behind.work / "app.tar.gz").read_text() == "an archive"
    behind.held("gh", "release", "upload", "v1", "new.txt", *repo, rule=["github-release-file"], **hub.gh)
    assert [f["Authorization"] for f in seen(up, "/repos/acme/app/releases/7/assets")] == [f"Bearer {hub.token}"]
    for path in ("/signed/1", "/acme/app/tar.gz/v1"):
        assert [hub.token in json.dumps(f) for f in seen(up, path)] == [False], seen(up, path)


@test()
def git_lfs_fetches_and_stores_once_approved(lab):
    """Its server answers by what the body asks for; the files are at another host, and that they are there is told a third. The addresses
    of a store are new in each run, so it waits for each approval."""
    need("git-lfs", "git-lfs")
    hub = GitHub(lab, has_git=False, hold="inline_wait: 10m, expires: 2h")
    up, behind, files = hub.up, hub.behind, {word: hashlib.sha256(word.encode()).hexdigest() for word in ("stored", "new")}
    at, repo = f"github.com:{up.port}", behind.work / "app"
    lab.run(["git", "init", "-q", "-b", "main", repo], rc=0)
    for key, value in (("lfs.url", f"https://{at}/acme/app.git/info/lfs"), ("remote.origin.url", f"https://{at}/acme/app.git"),
                       ("lfs.activitytimeout", "600"), (f"lfs.https://{at}/acme/app.git/info/lfs.locksverify", "true"),
                       ("credential.helper", ""), ("user.name", "a"), ("user.email", "a@a.example")):
        lab.run(["git", "-C", repo, "config", key, value], rc=0)
    (repo / "stored.bin").write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{files['stored']}\nsize 6\n")
    (repo / ".gitattributes").write_text("*.bin filter=lfs -text\n")
    lab.run(["git", "-C", repo, "-c", "filter.lfs.clean=cat", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false", "add", "."], rc=0)
    lab.run(["git", "-C", repo, "commit", "-qm", "x"], rc=0)

    def batch(asked, **actions):
        """A store is asked of both; one is there already."""
        told = [{"oid": oid, "size": len(word), "authenticated": True,
                 **({"actions": {k: {"href": v} for k, v in actions.items()}} if word == asked else {})}
                for word, oid in files.items() if word == asked or "upload" in actions]
        return raw({"transfer": "basic", "objects": told}, kind="application/vnd.git-lfs+json")

    batches, locks = "/acme/app.git/info/lfs/objects/batch", "/acme/app.git/info/lfs/locks/verify"
    script = {batches: batch("stored", download=f"https://github-cloud.githubusercontent.com:{up.port}/alambic/media/1?token=x"),
              "/alambic/media/1": raw("stored", kind="application/octet-stream"), locks: raw({"ours": [], "theirs": []})}
    up.script(script)
    lfs = ["git", "-C", "app", "lfs"]
    behind(*lfs, "fetch")
    store = repo / ".git/lfs/objects"
    assert (store / files["stored"][:2] / files["stored"][2:4] / files["stored"]).read_text() == "stored"
    up.script({**script, batches: batch("new", upload=f"https://github-cloud.s3.amazonaws.com:{up.port}/alambic/media/2?X-Amz-Signature=x",
                                        verify=f"https://lfs.github.com:{up.port}/acme/app/verify")})
    (behind.work / "new.txt").write_text("new")
    behind("sh", "-c", "cd app && git lfs clean <../new.txt >new.bin && git add -f new.bin && git commit -qm new")
    pushing = lab.start(behind.command(*lfs, "push", "origin", "main"))
    for rule in ("github-lfs-write", "github-lfs-store", "github-lfs-verify"):
        ticket = behind.gw.pending()
        assert ticket["rule"]["id"] == rule, ticket
        behind.gw.approve(ticket["id"])
    assert pushing.wait() == 0 and len(seen(up, locks)) == 1
    put = next(r for r in up.requests() if r["method"] == "PUT")
    assert up.body(put["n"]) == b"new" and hub.token not in json.dumps(put), put


# ---- oci ----

@test()
def skopeo_pulls_and_pushes_once_approved(lab):
    """Without a login of its own: the gateway asks the token server with the one that it has, and the client is given leases."""
    need("skopeo", "skopeo")
    need("docker-registry", "docker-registry")
    tokens, name = TokenServer(lab), "images.demo.test"
    port, ca = docker_registry(lab, name, tokens.auth)
    there = (tokens.host, tokens.port, tokens.ca)
    behind = Behind(lab, "oci", {"ghcr.io": (name, port, ca), "token.ghcr.io": there}, {"registry": tokens.login.encode()},
                    [('Bearer realm="https://ghcr.io/token",service="ghcr.io"', tokens.challenge)], parts=[("ghcr.io, path: /token", "token.ghcr.io, path: /token")])
    digest, at = image(behind.work / "image"), f"docker://{name}:{port}/demo/app:1"
    skopeo = ["skopeo", "--insecure-policy"]
    times, _ = behind.held(*skopeo, "copy", "dir:image", at, rule=["oci-push"])
    assert times == 2, times  # the image's one blob, and its name
    behind(*skopeo, "copy", at, "dir:back")
    assert (behind.work / "back" / digest).exists()
    behind.held(*skopeo, "delete", at, rule=["oci-push"])
    assert {row["user"] for row in tokens.requests()} == {"puller"}


if __name__ == "__main__":
    main()
