"""The real servers a Lab can start: Git over TLS, the recording upstream, the npm registry Verdaccio."""
import base64
import fcntl
import hashlib
import io
import json
import os
import pathlib
import secrets
import shutil
import socket
import ssl
import subprocess
import sys
import tarfile
import tempfile
import urllib.request

import certs
from patience import PATIENCE
from ports import free_port

HERE = pathlib.Path(__file__).resolve().parent


class GitServer:
    """conf/demo/git-server in lab.dir/git. Its password is a canary from the start."""

    def __init__(self, lab, program, port=None):
        self.lab, self.program, self.dir = lab, program, lab.dir / "git"
        lab.exempt(self.dir)
        lab.at_end.append(lambda: subprocess.run([program, "stop", self.dir], check=True, timeout=PATIENCE))
        lab.run([program, "start", self.dir] + ([str(port)] if port else []), rc=0)
        self.port, self.url = int(self._read("port")), self._read("url")
        self.user, self.password = self._read("user"), lab.canary(self._read("password"), self._read("user"))
        self.password_file, self.ca, self.host = self.dir / "password", self.dir / "ca.pem", "git.demo.test"

    def _read(self, name):
        return (self.dir / name).read_text()

    def log(self):
        """Every request as {time, method, uri, status, user, bytes}."""
        path = self.dir / "access.log"
        names = ("time", "method", "uri", "status", "user", "bytes")
        return [dict(zip(names, line.split(" "))) for line in path.read_text().splitlines()] if path.exists() else []

    def landed(self):
        """(old, new, ref) of every ref that a push really changed."""
        path = self.dir / "repos/demo/app.git/landed.log"
        return [tuple(line.split(" ")) for line in path.read_text().splitlines()]


class Upstream:
    """upstream.py in lab.dir/upN. Holds what was injected, so the canary search leaves it out."""

    def __init__(self, lab, names, ca_dir=None):
        self.dir = lab.dir / f"up{lab.count}"
        lab.exempt(self.dir)
        command = [sys.executable, HERE / "upstream.py", "--dir", self.dir]
        for name in names:
            command += ["--name", name]
        if ca_dir:
            command += ["--ca-dir", ca_dir]
        self.process = lab.start(command, ready=rb"ready (\{.*\})")
        ports = json.loads(self.process.ready[1])
        self.name, self.port, self.plain_port, self.ca = names[0], ports["tls"], ports["plain"], ports["ca"]
        lab.exempt(self.process.log)

    def requests(self):
        return self._lines("requests.jsonl")

    def _lines(self, name):
        """Those that are whole: the last one may be under way."""
        path = self.dir / name
        text = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
        return [json.loads(line) for line in text.splitlines()]

    def messages(self, conn=None):
        """What came over WebSockets, or one of them: (op, data). In the order it came, which says something of a single
        connection and nothing of two."""
        return [(r["op"], r["data"].encode("latin-1")) for r in self._lines("ws.jsonl") if conn in (None, r["conn"])]

    def effects(self):
        return json.loads((self.dir / "effects.json").read_text())

    def body(self, n):
        return (self.dir / f"body-{n}").read_bytes()

    def raw(self, conn, end="in"):
        return (self.dir / f"{conn}.{end}").read_bytes()

    def meta(self, conn):
        """What is known of a connection: SNI, ALPN, TLS version."""
        return json.loads((self.dir / f"{conn}.json").read_text())

    def script(self, modes):
        """{"POST /a": "/status?code=500"}: what paths of the test's own choice do."""
        (self.dir / "script.new").write_text(json.dumps(modes))
        os.replace(self.dir / "script.new", self.dir / "script.json")

    def release(self, key):
        with socket.create_connection(("127.0.0.1", self.plain_port), PATIENCE) as sock:
            sock.sendall(f"GET /release?gate={key} HTTP/1.1\r\nHost: lab\r\n\r\n".encode())
            sock.recv(1024)


def npm_modules(source):
    """node_modules of tests/e2e/npm, installed once a lock file; returns the directory that holds it. Several may ask at
    once: one installs, aside, and only what is whole gets the name that the others look for."""
    lock = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()[:16]
    base = pathlib.Path(os.environ.get("COUNTERSIGN_LAB_CACHE") or os.path.expanduser("~/.cache/countersign-lab"))
    place = base / f"npm-{lock}"
    base.mkdir(parents=True, exist_ok=True)
    with open(base / f"npm-{lock}.lock", "w", encoding="utf-8") as one:
        fcntl.flock(one, fcntl.LOCK_EX)
        if not place.exists():
            with tempfile.TemporaryDirectory(prefix="new-", dir=base) as aside:
                npm_install(source, pathlib.Path(aside) / "it", base / "npm")
                os.rename(pathlib.Path(aside) / "it", place)
    return place


def npm_install(source, place, cache):
    place.mkdir()
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(source / name, place / name)
    # Debian's npm 9 cannot read aliases from a lock that names no registry; one that can is asked to do it.
    major = int(subprocess.run(["npm", "--version"], check=True, capture_output=True, text=True).stdout.split(".")[0])
    npm = ["npm"] if major >= 10 else ["npm", "exec", "--yes", "npm@10.9.2", "--"]
    done = subprocess.run([*npm, "ci", "--no-progress"], cwd=place, check=False, stdin=subprocess.DEVNULL,
                          env={**os.environ, "npm_config_cache": str(cache)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=12 * PATIENCE)  # hundreds of megabytes, beside all else that runs
    if done.returncode:
        raise AssertionError(f"npm ci: {done.returncode}:\n{done.stdout[-3000:].decode('utf-8', 'replace')}")


class Verdaccio:
    """A registry without uplinks, on TLS; every package needs the user, to read it too unless it is open. Its password is a canary."""

    def __init__(self, lab, source, is_open=False):
        self.lab, self.dir, self.host = lab, lab.exempt(lab.dir / "verdaccio"), "npm.demo.test"
        self.dir.mkdir()
        self.user, self.password = "demo", lab.canary(secrets.token_hex(16), "demo")
        ca = certs.CA(self.dir / "ca")
        cert, key = ca.leaf(self.host)
        self.ca = ca.cert
        self.port = free_port()
        self.url = f"https://{self.host}:{self.port}/"
        digest = base64.b64encode(hashlib.sha1(self.password.encode()).digest()).decode()
        (self.dir / "htpasswd").write_text(f"{self.user}:{{SHA}}{digest}\n")
        (self.dir / "config.json").write_text(json.dumps({
            "storage": str(self.dir / "storage"), "web": {"enable": False}, "uplinks": {},
            "auth": {"htpasswd": {"file": str(self.dir / "htpasswd"), "algorithm": "sha1"}},
            "packages": {"**": {"access": "$all" if is_open else "$authenticated", "publish": "$authenticated"}},
            "https": {"key": str(key), "cert": str(cert), "ca": str(ca.cert)}, "max_body_size": "50mb",
            "url_prefix": "/", "log": {"type": "stdout", "format": "json", "level": "http"}}))
        self.process = lab.start(["node", npm_modules(source) / "node_modules/verdaccio/bin/verdaccio",
                                  "--config", self.dir / "config.json", "--listen", f"https://127.0.0.1:{self.port}"],
                                 ready=r"http address")
        lab.exempt(self.process.log)

    def publish(self, name, version, files):
        """Puts a package there directly, not through any gateway. files: {path: text}."""
        files = {"package.json": json.dumps({"name": name, "version": version}), **files}
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for path, text in files.items():
                info = tarfile.TarInfo("package/" + path)
                info.size = len(text.encode())
                tar.addfile(info, io.BytesIO(text.encode()))
        data, file = packed.getvalue(), f"{name}-{version}.tgz"
        about = {"name": name, "version": version, "_id": f"{name}@{version}", "dist": {
            "shasum": hashlib.sha1(data).hexdigest(), "tarball": f"{self.url}{name}/-/{file}",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}}
        document = {"_id": name, "name": name, "dist-tags": {"latest": version}, "versions": {version: about},
                    "_attachments": {file: {"content_type": "application/octet-stream", "length": len(data),
                                            "data": base64.b64encode(data).decode()}}}
        return self.ask("PUT", name, json.dumps(document).encode())

    def token(self):
        """What `npm login` would be given. A canary."""
        body = json.dumps({"name": self.user, "password": self.password}).encode()
        return self.lab.canary(json.loads(self.ask("PUT", f"-/user/org.couchdb.user:{self.user}", body)[1])["token"])

    def ask(self, method, path, body=None):
        """One request to the registry itself, as the user: (status, body)."""
        basic = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        request = urllib.request.Request(f"https://localhost:{self.port}/{path}", body, method=method, headers={
            "Authorization": "Basic " + basic, "Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(
            context=ssl.create_default_context(cafile=str(self.ca))))
        with opener.open(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read()


class TokenServer:
    """tokens.py, whose login and a mark in each token are canaries."""

    def __init__(self, lab, host="auth.demo.test", service="images"):
        self.lab, self.dir, self.host, self.service = lab, lab.exempt(lab.dir / "tokens"), host, service
        self.dir.mkdir()
        self.login = "puller:" + lab.canary(secrets.token_urlsafe(24), "puller")
        (self.dir / "login").write_text(self.login)
        (self.dir / "mark").write_text(lab.canary(secrets.token_hex(24)))
        process = lab.start([sys.executable, HERE / "tokens.py", "--dir", self.dir, "--name", host, "--service", service],
                            ready=rb"ready (\{.*\})")
        said = json.loads(process.ready[1])
        self.port, self.ca = said["port"], said["ca"]
        self.realm = f"https://{host}:{self.port}/token"
        self.challenge = f'Bearer realm="{self.realm}",service="{service}"'
        self.auth = {"token": {"realm": self.realm, "service": service, "issuer": "tokens", "rootcertbundle": str(self.dir / "sign.pem")}}

    def requests(self):
        path = self.dir / "requests.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def docker_registry(lab, name, auth=None):
    """Debian's docker-registry on TLS, which knows its users by `auth` of its configuration: (port, CA). It holds what was injected."""
    home, port = lab.exempt(lab.dir / "registry"), free_port()
    home.mkdir()
    ca = certs.CA(home / "ca")
    cert, key = ca.leaf(name)
    (home / "config.json").write_text(json.dumps({
        "version": 0.1, "log": {"level": "info", "accesslog": {"disabled": False}},
        "storage": {"filesystem": {"rootdirectory": str(home / "storage")}, "delete": {"enabled": True}}, **({"auth": auth} if auth else {}),
        "http": {"addr": f"127.0.0.1:{port}", "secret": secrets.token_hex(8), "tls": {"certificate": str(cert), "key": str(key)}}}))
    lab.exempt(lab.start(["docker-registry", "serve", home / "config.json"], ready=r"listening on").log)
    return port, ca.cert


if __name__ == "__main__":  # servers.py DIR...: the modules of these, for whoever asks for them later
    for each in sys.argv[1:]:
        print(npm_modules(pathlib.Path(each)), flush=True)
