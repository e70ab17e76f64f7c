"""A service that verifies signatures (lab/signed.py), the gateway that has its keys, and the variables of a client that has
none."""
import hashlib
import hmac
import json
import os
import re
import secrets
import sys
import time

from gateway import Gateway, upstream_yaml
from harness import HERE, Skip

FAKE = {"AWS_ACCESS_KEY_ID": "AKIAFAKEFAKEFAKEFAKE", "AWS_SECRET_ACCESS_KEY": "fake/fake/fake/fake/fake/fake/fake/fake0",
        "AWS_DEFAULT_REGION": "eu-central-1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_PAGER": "", "AWS_MAX_ATTEMPTS": "1"}
LEASED = "\n    lease: aws\n    require_lease: true"
S3 = "sigv4: { region: eu-central-1, service: s3 }"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


class Signed:
    """lab/signed.py with keys of its own, and a gateway that has them."""

    def __init__(self, lab, inject="sigv4: { region: eu-central-1, service: s3 }", write="allow", token=True, lease="",
                 host="storage.demo.test", port=0, role=False):
        self.lab, self.dir, self.host = lab, lab.exempt(lab.dir / "signed"), host
        self.id, self.key = "AKIA" + secrets.token_hex(8).upper(), lab.canary(secrets.token_urlsafe(30))
        self.token = lab.canary(secrets.token_urlsafe(60)) if token else None
        lab.canary(self.id)
        self.dir.mkdir()
        self.role = {"id": lab.canary("ASIA" + secrets.token_hex(8).upper()), "secret": lab.canary(secrets.token_urlsafe(30)),
                     "token": lab.canary("IQoJ+/" + secrets.token_urlsafe(900) + "==")} if role else None
        (self.dir / "keys.json").write_text(json.dumps({"id": self.id, "secret": self.key, "token": self.token, "role": self.role}))
        process = self.process = lab.start([sys.executable, HERE / "lab/signed.py", "--dir", self.dir, "--name", self.host, "--port", str(port)],
                            ready=rb"ready (\{.*\})")
        said = json.loads(process.ready[1])
        self.port, self.ca = said["port"], said["ca"]
        place = f"host: {self.host}, port: {self.port}"
        hold = "decide: hold\n    approve: { within: 2h }" if write == "hold" else f"decide: {write}"
        self.gw = Gateway(lab, f"""version: 1
name: signed
upstreams:
{upstream_yaml(self.host, self.port, self.ca)}
credentials:
  keys:
    source: {{ store: keys }}
    inject: {{ {inject} }}{lease}
    only: [{{ {place} }}]
rules:
  - id: reads
    match: {{ {place}, effect: read }}
    decide: allow
    use: keys
  - id: writes
    match: {{ {place}, effect: [write, delete] }}
    {hold}
    use: keys
""", {"keys": ":".join([self.id, self.key] + ([self.token] if token else [])).encode()})
        self.url = f"https://{self.host}:{self.port}"
        self.env = {**self.gw.client_env(), **FAKE, "AWS_CA_BUNDLE": str(self.gw.state / "bundle.crt")}

    def requests(self):
        path = self.dir / "requests.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def all_were_right(self, at_least):
        seen = self.requests()
        assert len(seen) >= at_least and not [r for r in seen if r["wrong"]], seen
        return seen

    def aws(self, *words, rc=0, **more):
        if not os.path.exists("/usr/bin/aws"):
            raise Skip("awscli of Debian (conf/need test)")
        return self.lab.run(["/usr/bin/aws", "--endpoint-url", self.url, *words], env=self.env, rc=rc, **more)

    def curl(self, *words, rc=0):
        return self.lab.run(["curl", "-sS", "-o", "-", "-w", "\n%{http_code}", *words], env=self.env, rc=rc).out.decode()


def _sha(data):
    return hashlib.sha256(data).hexdigest()


class Pair:
    """Two halves of a key, and what a client signs with them: AWS Signature Version 4, or Tencent's TC3."""

    def __init__(self, key_id, secret, region="eu-central-1", service="s3", scheme="AWS4"):
        self.id, self.secret, self.region, self.service, self.scheme = key_id, secret, region, service, scheme
        self.at = time.time()

    def stamp(self):
        return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.at)) if self.scheme == "AWS4" else str(int(self.at))

    def scope(self):
        day = time.strftime("%Y%m%d" if self.scheme == "AWS4" else "%Y-%m-%d", time.gmtime(self.at))
        end = [self.region, self.service, "aws4_request"] if self.scheme == "AWS4" else [self.service, "tc3_request"]
        return "/".join([day, *end])

    def over(self, suffix, *lines):
        key = (self.scheme + self.secret).encode()
        for part in self.scope().split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        text = "\n".join([f"{self.scheme}-HMAC-SHA256{suffix}", self.stamp(), self.scope(), *lines])
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def sign(self, method, host, path, query, fields, payload):
        """Those fields, and the signature's own. payload: the SHA-256 of the body, or what stands for it. path and query are in
        their canonical forms already."""
        fields = {k.lower(): v for k, v in fields.items()}
        if self.scheme == "AWS4":
            fields |= {"x-amz-date": self.stamp(), "x-amz-content-sha256": payload}
        signed = {**fields, "host": host}
        names = ";".join(sorted(signed))
        text = "\n".join([method, path, query, "".join(f"{n}:{signed[n]}\n" for n in sorted(signed)), names, payload])
        self.last = self.over("", _sha(text.encode()))
        fields["authorization"] = (f"{self.scheme}-HMAC-SHA256 Credential={self.id}/{self.scope()}, SignedHeaders={names}, "
                                   f"Signature={self.last}")
        return fields if self.scheme == "AWS4" else {**fields, "x-tc-timestamp": self.stamp()}

    def chunks(self, data, size, trailer=b""):
        """The body that follows what was signed last."""
        out = b""
        for at in [*range(0, len(data), size), len(data)]:
            piece = data[at:at + size]
            self.last = self.over("-PAYLOAD", self.last, _sha(b""), _sha(piece))
            out += f"{len(piece):x};chunk-signature={self.last}\r\n".encode() + piece + (b"\r\n" if piece else b"")
        if trailer:
            out += trailer + b"\r\nx-amz-trailer-signature:" + self.over("-TRAILER", self.last, _sha(trailer + b"\n")).encode() + b"\r\n"
        return out + b"\r\n"


class Pairs(Signed):
    """It, and sandboxes that sign by hand with pairs of its leases."""

    def __init__(self, lab, inject=S3, **more):
        super().__init__(lab, inject, **{"lease": LEASED, **more})
        self.at = f"{self.host}:{self.port}"

    def issue(self, *words, sandbox="agent", **more):
        self.gw.token(sandbox)
        made = self.gw.cli_json("lease", "issue", "keys", "--sandbox", sandbox, *words)
        pair = Pair(made["lease"], made["secret"], **more)
        pair.lease = made["id"]
        return pair

    def send(self, fields, method="GET", path="/bucket/a", query="", body=None, sandbox="agent"):
        """What came back: a status, or the code of a refusal."""
        words = ["curl", "-sS", "-w", "\n%{http_code}", "-X", method]
        for name, value in fields.items():
            words += ["-H", f"{name}: {value}"]
        if body is not None:
            (self.lab.dir / "body").write_bytes(body)
            words += ["-H", "content-type;" if "content-type" not in fields else "x-none;", "--data-binary", f"@{self.lab.dir / 'body'}"]
        words.append(self.url + path + ("?" + query if query else ""))
        out = self.lab.run(words, env={**self.env, **self.gw.client_env(sandbox)}, rc=0).out.decode(errors="replace")
        code = re.search(r'(?:"code":"|<CountersignCode>)([a-z-]+)["<]', out)
        return code[1] if code else out.rpartition("\n")[2]

    def put(self, pair, payload, body, more=(), **change):
        fields = pair.sign("PUT", self.at, "/bucket/a", "", dict(more), payload)
        return self.send({**fields, **change}, "PUT", body=body)

    def get(self, pair, **more):
        return self.send(pair.sign("GET", self.at, "/bucket/a", "", {}, EMPTY), **more)

    def state(self, pair):
        (found,) = [r["state"] for r in self.gw.cli_json("lease", "list")["leases"] if r["id"] == pair.lease]
        return found
