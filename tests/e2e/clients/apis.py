"""What kubectl and skopeo look at before they ask for what a test is about, and what they are given."""
import base64
import hashlib
import json
import urllib.parse

LOOKS = {"/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.0"}, "/v2/": {},
         "/api": {"kind": "APIVersions", "versions": ["v1"]}, "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
         "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
             {"name": "configmaps", "singularName": "configmap", "namespaced": True, "kind": "ConfigMap", "verbs": ["get", "delete"]}]}}


def raw(answer, events=False, kind="application/json", fields=()):
    """The path at which lab/upstream.py answers so: bytes and a text as they are, else JSON, or that in an event."""
    body = answer if isinstance(answer, bytes) else answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
    if events:
        body, kind = b"event: message\ndata: " + body + b"\n\n", "text/event-stream"
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *fields, "", ""])
    return "/raw?b64=" + urllib.parse.quote(base64.b64encode(head.encode() + body), safe="")


def image(folder):
    """An image without layers, as skopeo's dir: has it: a manifest and its configuration."""
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": []}}).encode()
    digest = hashlib.sha256(config).hexdigest()
    folder.mkdir()
    (folder / digest).write_bytes(config)
    kind = "application/vnd.oci.image."
    (folder / "manifest.json").write_text(json.dumps({
        "schemaVersion": 2, "mediaType": f"{kind}manifest.v1+json", "layers": [],
        "config": {"mediaType": f"{kind}config.v1+json", "digest": f"sha256:{digest}", "size": len(config)}}))
    (folder / "version").write_text("Directory Transport Version: 1.1\n")
    return digest
