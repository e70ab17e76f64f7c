#!/usr/bin/env python3
"""The token dance of registries, with Debian's docker-registry and skopeo, unmodified: who has no token is told whom to ask, asks
there with a lease, and what comes back is a lease once more, in the place of the token, which never enters the sandbox."""
import gzip
import hashlib
import io
import json
import os
import re
import tarfile

from clients import Inside
from gateway import Gateway, program, upstream_yaml
from harness import PATIENCE, Skip, main, test
from servers import TokenServer, docker_registry

MODES = ("page", "elsewhere", "two", "line", "large", "gzip", "redirect", "part", "cut")
CURL = f"curl -sS --max-time {PATIENCE} -D -"


class Tokens(TokenServer):
    """With nothing behind it but an upstream that echoes."""

    def behave(self, mode):
        (self.dir / "mode").write_text(mode)

    def gateway(self, host, port, ca, write="allow"):
        at, there = f"host: {host}, port: {port}", f"host: {self.host}, port: {self.port}"
        return Gateway(self.lab, f"""version: 1
name: images
upstreams:
{upstream_yaml(host, port, ca)}{upstream_yaml(self.host, self.port, self.ca)}
credentials:
  login:
    source: {{ store: login }}
    inject: {{ basic: true }}
    lease: generic
    require_lease: true
    only: [{{ {there}, path: /token }}]
  image:
    source:
      answer:
        to: login
        token: [/token, /access_token]
        expires_in: /expires_in
        challenge: '{self.challenge}'
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    lease: generic
    only: [{{ {at} }}]
rules:
  - {{ id: token, match: {{ {there}, effect: read }}, decide: allow, use: login }}
  - {{ id: pull, match: {{ {at}, effect: read }}, decide: allow, use: image }}
  - {{ id: push, match: {{ {at}, effect: write }}, decide: {write}, use: image }}
""", {"login": self.login.encode()})


class Registry(Tokens):
    """docker-registry, which takes those tokens alone."""

    def __init__(self, lab):
        if not os.path.exists("/usr/bin/docker-registry") or not os.path.exists("/usr/bin/skopeo"):
            raise Skip("docker-registry and skopeo of Debian (conf/need test)")
        super().__init__(lab)
        self.name = "images.demo.test"
        self.at, ca = docker_registry(lab, self.name, self.auth)
        self.inside = Inside(lab, self.gateway(self.name, self.at, ca))
        self.image = f"docker://{self.name}:{self.at}/demo/app:1"

    def skopeo(self, *words, rc=0):
        words = " ".join(map(str, words))
        return self.inside("sh", "-ec", f'cd /workspace; skopeo --insecure-policy {words}', options=["--with", "login"], rc=rc)


def make_image(folder):
    """An image of one layer as skopeo's dir: has it (the OCI image specification)."""
    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        (folder / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}
    folder.mkdir()
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        info = tarfile.TarInfo("file.bin")
        info.size = 300_000
        tar.addfile(info, io.BytesIO(os.urandom(300_000)))
    packed = gzip.compress(layer.getvalue())
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {
        "type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer.getvalue()).hexdigest()}"]}}).encode()
    kind = "application/vnd.oci.image."
    (folder / "manifest.json").write_text(json.dumps({
        "schemaVersion": 2, "mediaType": f"{kind}manifest.v1+json", "config": {"mediaType": f"{kind}config.v1+json", **blob(config)},
        "layers": [{"mediaType": f"{kind}layer.v1.tar+gzip", **blob(packed)}]}))
    (folder / "version").write_text("Directory Transport Version: 1.1\n")
    return hashlib.sha256(packed).hexdigest(), packed


@test()
def skopeo_pushes_and_pulls_with_leases(lab):
    r = Registry(lab)
    layer, data = make_image(r.inside.work / "image")
    r.skopeo('copy --dest-creds "me:$API_KEY" dir:image', r.image)
    r.inside.had_no_secret("skopeo")
    r.skopeo('copy --src-creds "me:$API_KEY"', r.image, "dir:back")
    r.inside.had_no_secret("skopeo")
    assert (r.inside.work / "back" / layer).read_bytes() == data
    done = r.skopeo('inspect --creds "me:$API_KEY"', r.image)
    assert json.loads(done.out)["Layers"] == [f"sha256:{layer}"], done.text()
    asked = r.requests()
    assert {row["user"] for row in asked} == {"puller"} and ["repository:demo/app:pull,push"] in [row["scope"] for row in asked], asked
    assert len(r.inside.gw.recorded(len(asked), kind="lease-issued", by="an answer")) == len(asked), asked


@test()
def skopeo_without_a_lease_gets_nothing(lab):
    r = Registry(lab)
    done = r.skopeo('inspect --creds "me:wrong-password"', r.image, rc=1)
    assert b"A lease is required" in done.both or b"unauthorized" in done.both or b"403" in done.both, done.text()
    assert r.requests() == []


class Echoed(Tokens):
    """An upstream that echoes, and commands with curl."""

    def __init__(self, lab):
        super().__init__(lab)
        self.up = lab.upstream("upstream.test")
        self.gw, self.work = self.gateway(self.up.name, self.up.port, self.up.ca), lab.dir / "work"
        self.work.mkdir()
        self.url = f"https://{self.up.name}:{self.up.port}/echo?only=authorization"

    def __call__(self, script):
        return self.lab.run([program(), "run", "--state-dir", self.gw.state, "--workspace", self.work, "--with", "login", "--",
                             "sh", "-c", script], rc=0)

    def ask(self):
        return f'{CURL} -u "me:$API_KEY" "{self.realm}?service={self.service}&scope=repository:demo/app:pull" >answer; cat answer'

    def use(self):
        return f"""t=$(grep -o 'cs_[A-Za-z0-9]*' answer | head -1); {CURL} -H "Authorization: Bearer $t" '{self.url}'"""


def statuses(done):
    return [int(status) for status in re.findall(rb"HTTP/1.1 (\d+) (?!Connection)", done.out)]


@test()
def the_dance_step_by_step(lab):
    t = Echoed(lab)
    done = t(f"{CURL} '{t.url}'; {t.ask()}; {t.use()}; {t.use()}")
    assert statuses(done) == [401, 200, 200, 200], done.text()
    assert f"WWW-Authenticate: {t.challenge}\r\n".encode() in done.out and t.requests()[0]["token"].encode() not in done.both
    answer = json.loads(re.search(rb"\r\n\r\n(\{\"token\".*?\})", done.out)[1])
    assert answer["token"] == answer["access_token"] and re.fullmatch("cs_[A-Za-z0-9]{40}", answer["token"]), answer
    assert answer["expires_in"] == 300 and "issued_at" in answer and "refresh_token" not in answer, answer
    got = [r for r in t.up.requests()]
    assert len(got) == 2 and all(f"Bearer {t.requests()[0]['token']}" in json.dumps(r) for r in got), got
    assert done.out.count(b"\r\n\r\n********") == 2, done.text()  # what the upstream echoed


@test()
def its_lease_is_one_sandboxs_and_ends_with_its_login(lab):
    t = Echoed(lab)
    lab.expects("a lease of sandbox")
    done = t(f"{t.ask()}; {t.use()}")
    assert statuses(done) == [200, 200], done.text()
    again = t(t.use())  # the command's end took its login's lease, and with it this one
    assert statuses(again) == [403] and b"lease-leaked" in again.out or statuses(again) == [401], again.text()
    token = re.search(rb"cs_[A-Za-z0-9]+", done.out)[0].decode()
    (issued,), (ended,) = (t.gw.recorded(kind=kind, credential="image") for kind in ("lease-issued", "lease-revoked"))
    assert issued["lease"] == ended["lease"] and issued["sandbox"] == ended["sandbox"], (issued, ended)
    assert token not in json.dumps(t.gw.audit())


@test()
def a_token_that_has_ended_or_is_lost_is_asked_for_again(lab):
    t = Echoed(lab)
    t.behave("brief")
    done = t(f"{t.ask()}; sleep 3; {t.use()}")
    assert statuses(done) == [200, 401] and b"lease-ended" in done.out, done.text()
    assert f"WWW-Authenticate: {t.challenge}\r\n".encode() in done.out, done.text()
    t.behave("")
    script = f"{t.ask()}; {t.use()}; touch there; while test -e there; do sleep 0.1; done; {t.use()}; {t.ask()}; {t.use()}"
    command = lab.start([program(), "run", "--state-dir", t.gw.state, "--workspace", t.work, "--with", "login", "--", "sh", "-c", script])
    lab.wait_for("the token is used", (t.work / "there").exists)
    t.gw.kill("keeper")
    lab.expects('credential "image" was not released: token-gone')
    (t.work / "there").unlink()
    assert command.wait() == 0
    found = [int(s) for s in re.findall(rb"HTTP/1.1 (\d+) (?!Connection)", command.seen)]
    assert found == [200, 200, 401, 200, 200], command.seen


@test()
def an_answer_whose_token_is_not_found_is_refused(lab):
    t = Echoed(lab)
    lab.expects("an answer with a token was expected|the answer's token cannot be kept|answer was cut short")
    for mode in MODES:
        t.behave(mode)
        done = t(t.ask())
        assert statuses(done) == [502], (mode, done.text())
        token = t.requests()[-1]["token"]
        assert token.encode() not in done.both and token[::-1].encode() not in done.both, mode
    t.behave("field")
    done = t(t.ask())
    assert statuses(done) == [200] and t.requests()[-1]["token"].encode() not in done.both and b"X-Token" not in done.out, done.text()
    assert not [row for row in t.gw.audit() if row["kind"] == "lease-issued" and row["credential"] == "image"][1:]


if __name__ == "__main__":
    main()
