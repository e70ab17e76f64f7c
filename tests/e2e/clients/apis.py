"""What kubectl and skopeo look at before they ask for what a test is about."""
import base64
import json
import urllib.parse

LOOKS = {"/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.0"}, "/v2/": {},
         "/api": {"kind": "APIVersions", "versions": ["v1"]}, "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
         "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
             {"name": "configmaps", "singularName": "configmap", "namespaced": True, "kind": "ConfigMap", "verbs": ["get", "delete"]}]}}


def raw(answer, events=False, kind="application/json", fields=()):
    """The path at which lab/upstream.py answers so: a text as it is, else JSON, or that in an event."""
    body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
    if events:
        body, kind = b"event: message\ndata: " + body + b"\n\n", "text/event-stream"
    head = "\r\n".join(["HTTP/1.1 200 OK", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *fields, "", ""])
    return "/raw?b64=" + urllib.parse.quote(base64.b64encode(head.encode() + body), safe="")
