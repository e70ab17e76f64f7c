"""Servers that sources ask, over TLS, each written from the documentation of what it stands for: an OAuth 2.0 token
endpoint (RFC 6749, 7523, 8693), HashiCorp Vault's HTTP API, GitHub's for Apps, and the STS of AWS, of Google and of Tencent
Cloud. What they were asked is kept, and they can be told to answer badly.

    oauth = TokenEndpoint(lab, "login.test"); oauth.url, oauth.yaml (its entry of upstreams:), oauth.asked
    oauth.bad = "hang" | "500" | "long" | "lie" | "newline" | "redirect" ...
"""
import base64
import http.server
import json
import secrets
import ssl
import threading
import time
import types
import urllib.parse

import certs
import jose
import signed
from gateway import upstream_yaml


class Counterpart:
    def __init__(self, lab, name, **leaf):
        self.name, self.asked, self.bad, self.tokens, self.released = name, [], None, [], threading.Event()
        self.lab, ca = lab, certs.CA(lab.exempt(lab.dir / f"ca-{name}"))
        cert, key = ca.leaf(name, **leaf)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                owner.serve(self, body)

            do_GET = do_POST

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a connection that was made and not used

            def finish_request(self, request, address):
                super().finish_request(context.wrap_socket(request, server_side=True), address)
        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"https://{name}:{self.port}"
        self.ca, self.yaml = ca.cert, upstream_yaml(name, self.port, ca.cert)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        lab.at_end.append(self.end)

    def end(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def new_token(self, prefix="token"):
        token = self.lab.canary(f"{prefix}-{secrets.token_urlsafe(30)}")
        self.tokens.append(token)
        return token

    def send(self, handler, status, body, more=(), kind="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(data))), *more):
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    def badly(self, handler):
        """True: it was answered as bad says."""
        if self.bad == "hang":
            self.released.wait()
        elif self.bad == "slow":
            self.released.wait()
            return False
        elif self.bad == "500":
            self.send(handler, 500, b"<html>token-in-an-error-page</html>")
        elif self.bad == "long":
            self.send(handler, 200, b'{"access_token":"' + b"a" * 10_000_000 + b'","token_type":"Bearer"}')
        elif self.bad == "not json":
            self.send(handler, 200, b"access_token=canary-in-a-form")
        elif self.bad == "redirect":
            self.send(handler, 302, b"", [("Location", "https://elsewhere.test/")])
        elif self.bad == "cut":
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{")
            handler.close_connection = True
        else:
            return False
        return True


class TokenEndpoint(Counterpart):
    client, secret = "the client", "s3cret/of:the client"

    def __init__(self, lab, name="login.test", **leaf):
        super().__init__(lab, name, **leaf)
        lab.canary(self.secret)
        self.refresh, self.lifetime, self.auth = lab.canary("refresh-" + secrets.token_urlsafe(20)), 3600, "basic"

    def shown(self, handler, form):
        if self.auth == "body":
            return (form.get("client_id"), form.get("client_secret")) == ([self.client], [self.secret])
        kind, _, text = handler.headers.get("Authorization", "").partition(" ")
        pair = base64.b64decode(text).decode().split(":") if kind == "Basic" else ["", ""]
        return [urllib.parse.unquote(part) for part in pair] == [self.client, self.secret] and "client_secret" not in form

    def serve(self, handler, body):
        form = urllib.parse.parse_qs(body)
        self.asked.append(form)
        if self.badly(handler):
            return
        if handler.path != "/oauth/token" or handler.command != "POST":
            self.send(handler, 404, {"error": "not_found"})
            return
        if not self.shown(handler, form):
            self.send(handler, 401, {"error": "invalid_client", "error_description": f"not {self.secret}"})
            return
        token = self.new_token()
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime}
        if form["grant_type"] == ["refresh_token"]:
            if form["refresh_token"] != [self.refresh]:
                self.send(handler, 400, {"error": "invalid_grant"})
                return
            self.refresh = answer["refresh_token"] = self.lab.canary("refresh-" + secrets.token_urlsafe(20))
        if self.bad == "newline":
            answer["access_token"] = "token-canary\r\nX-Evil: 1"
        elif self.bad == "no token":
            del answer["access_token"]
        elif self.bad == "another type":
            answer["token_type"] = "mac"
        elif self.bad == "no number":
            answer["expires_in"] = "soon"
        self.send(handler, 200, answer)


class Cloud(TokenEndpoint):
    """A token endpoint that trusts a key: https://developers.google.com/identity/protocols/oauth2/service-account (HTTP/REST),
    and https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow (second and third case)."""
    public, of, wants = None, "assertion", {}

    def shown(self, handler, form):
        if self.public is None:
            return super().shown(handler, form)
        head, claims = jose.verified(self.lab, form[self.of][0], self.public)
        self.head, self.claims = head, claims
        return claims["exp"] - claims["iat"] <= 3600 and {k: claims.get(k) for k in self.wants} == self.wants


class GoogleSTS(Counterpart):
    """https://docs.cloud.google.com/iam/docs/downscoping-short-lived-credentials: a token that `takes` gave, for one with less
    power. Of a service account's it says no expires_in: it ends when that one does."""
    kind, takes = "urn:ietf:params:oauth:token-type:access_token", None

    def __init__(self, lab, takes, name="sts.google.test"):
        super().__init__(lab, name)
        self.takes, self.options = takes, []

    def serve(self, handler, body):
        form = dict(urllib.parse.parse_qsl(body, strict_parsing=True))
        self.asked.append(form)
        if self.badly(handler):
            return
        options = json.loads(form.pop("options", "null"))
        token = form.pop("subject_token", "")
        if form != {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token_type": self.kind,
                    "requested_token_type": self.kind} or handler.path != "/v1/token" or "Authorization" in handler.headers:
            self.send(handler, 400, {"error": "invalid_request"})
        elif token not in self.takes.tokens or self.bad == "revoked":
            self.send(handler, 400, {"error": "invalid_grant", "error_description": f"not {token}"})
        elif not all(r["availablePermissions"] and r["availableResource"] for r in options["accessBoundary"]["accessBoundaryRules"]):
            self.send(handler, 400, {"error": "invalid_request"})
        else:
            self.options.append(options)
            self.send(handler, 200, {"access_token": self.new_token("narrow"), "issued_token_type": self.kind, "token_type": "Bearer"})


class Vault(Counterpart):
    """https://developer.hashicorp.com/vault/api-docs: auth/approle/login, auth/kubernetes/login, auth/jwt/login, KV version 2,
    database credentials, auth/token/renew-self and revoke-self, sys/leases/renew and revoke. What a token leased ends with it."""
    token_s, lease_s, renewed_s = 1200, 3600, None  # renewed_s: what a renewal gives; None: lease_s; 0: it is refused
    refuses = ()  # paths that are answered with 403
    public = None  # whose JWTs it takes at auth/jwt; None: the one of Kubernetes alone

    def __init__(self, lab, name="vault.test"):
        super().__init__(lab, name)
        self.token, self.secret_id = lab.canary("hvs." + secrets.token_urlsafe(20)), lab.canary(secrets.token_urlsafe(20))
        self.jwt, self.value = lab.canary("eyJ." + secrets.token_urlsafe(30)), self.new_token("kv")
        self.live, self.revoked, self.namespace = {self.token}, [], None
        self.leases, self.leased = {}, 0  # by id: (token, value)

    def login(self, handler, fine):
        if not fine:
            self.send(handler, 400, {"errors": ["invalid role or secret ID"]})
            return
        token = self.lab.canary("hvs." + secrets.token_urlsafe(20))
        self.live.add(token)
        self.send(handler, 200, {"auth": {"client_token": token, "lease_duration": self.token_s, "renewable": True}})

    def trusts(self, data):
        """jwt_validation_pubkeys, bound_audiences and bound_subject of its role."""
        if self.public is None:
            return data == {"role": "app", "jwt": self.jwt}
        try:
            _, self.claims = jose.verified(self.lab, data["jwt"], self.public)
        except (AssertionError, ValueError):
            return False
        return data["role"] == "app" and self.claims["aud"] == self.url and self.claims["sub"] == "agents"

    def lease(self, handler, token):
        self.leased += 1
        name, value = f"database/creds/app/x{self.leased}", self.new_token("db")
        self.leases[name] = (token, value)
        self.send(handler, 200, {"lease_id": name, "lease_duration": self.lease_s, "renewable": self.renewed_s != 0,
                                 "data": {"username": "v-app", "password": value}})

    def renew(self, handler, name):
        gives = self.lease_s if self.renewed_s is None else self.renewed_s
        if name in self.leases and gives:
            self.send(handler, 200, {"lease_id": name, "renewable": True, "lease_duration": gives})
        else:
            self.send(handler, 400, {"errors": ["lease is not renewable"]})

    def serve(self, handler, body):
        self.asked.append((handler.command, handler.path))
        if self.badly(handler):
            return
        data = json.loads(body) if body else {}
        token = handler.headers.get("X-Vault-Token")
        if handler.headers.get("X-Vault-Namespace") != self.namespace or not handler.headers.get("X-Vault-Request"):
            self.send(handler, 404, {"errors": ["no such namespace"]})
        elif handler.path == "/v1/auth/approle/login":
            self.login(handler, data == {"role_id": "app", "secret_id": self.secret_id})
        elif handler.path == "/v1/auth/kubernetes/login":
            self.login(handler, data == {"role": "app", "jwt": self.jwt})
        elif handler.path == "/v1/auth/jwt/login":
            self.login(handler, self.trusts(data))
        elif token not in self.live or handler.path in self.refuses:
            self.send(handler, 403, {"errors": ["permission denied"]})
        elif handler.path == "/v1/auth/token/revoke-self":
            self.live.discard(token)
            self.revoked.append(token)
            self.leases = {name: lease for name, lease in self.leases.items() if lease[0] != token}
            self.send(handler, 204, b"")
        elif handler.path == "/v1/auth/token/renew-self":
            self.send(handler, 200, {"auth": {"client_token": token, "lease_duration": self.token_s, "renewable": True}})
        elif handler.path == "/v1/sys/leases/renew":
            self.renew(handler, data["lease_id"])
        elif handler.path == "/v1/sys/leases/revoke":
            self.leases.pop(data["lease_id"], None)
            self.send(handler, 204, b"")
        elif handler.path == "/v1/secret/data/app":
            value = "kv-canary\nX-Evil: 1" if self.bad == "newline" else self.value
            self.send(handler, 200, {"lease_id": "", "lease_duration": 0, "data": {"data": {"token": value}, "metadata": {}}})
        elif handler.path == "/v1/database/creds/app":
            self.lease(handler, token)
        else:
            self.send(handler, 404, {"errors": []})


class GitHub(Counterpart):
    """https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app, and "Generating a JSON
    Web Token (JWT) for a GitHub App"."""
    app, installation = "Iv23liAgents", 4711
    has = {"contents": "write", "issues": "write", "metadata": "read"}

    def __init__(self, lab, public, name="api.github.test"):
        super().__init__(lab, name)
        self.public, self.lifetime, self.narrowed, self.claims = public, 3600, [], []

    def shown(self, handler):
        kind, _, jwt = handler.headers.get("Authorization", "").partition(" ")
        try:
            head, claims = jose.verified(self.lab, jwt, self.public)
        except (AssertionError, ValueError):
            return False
        self.claims.append(claims)
        now = time.time()
        return kind == "Bearer" and head["alg"] == "RS256" and claims["iss"] == self.app and \
            claims["iat"] <= now and now < claims["exp"] <= now + 600

    def serve(self, handler, body):
        self.asked.append((handler.command, handler.path))
        if self.badly(handler):
            return
        wanted = json.loads(body)
        if handler.headers.get("X-GitHub-Api-Version") != "2022-11-28" or handler.headers["Content-Type"] != "application/json":
            self.send(handler, 415, {"message": "Unsupported"})
        elif not self.shown(handler):
            self.send(handler, 401, {"message": "A JSON web token could not be decoded"})
        elif handler.path != f"/app/installations/{self.installation}/access_tokens":
            self.send(handler, 404, {"message": "Not Found"})
        elif any(self.has.get(name) not in (level, "write") for name, level in wanted["permissions"].items()):
            self.send(handler, 422, {"message": "The permissions requested are not granted to this installation."})
        else:
            self.narrowed.append(wanted)
            until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lifetime))
            token = self.new_token("ghs_4711_eyJ" + "x" * 400 + ".") + ("\r\nX-Evil: 1" if self.bad == "newline" else "")
            answer = {"token": token, "expires_at": "soon" if self.bad == "no time" else until,
                      "permissions": wanted["permissions"], "repository_selection": "selected"}
            if self.bad == "no token":
                del answer["token"]
            self.send(handler, 201, answer)


class STS(Counterpart):
    """https://docs.aws.amazon.com/STS/latest/APIReference/: AssumeRole, signed with Signature Version 4, and
    AssumeRoleWithWebIdentity, which is not signed."""
    role, region = "arn:aws:iam::123456789012:role/agents", "eu-central-1"

    def __init__(self, lab, public=None, name="sts.test"):
        super().__init__(lab, name)
        self.user = types.SimpleNamespace(id="AKIA" + secrets.token_hex(8).upper(), token=None,
                                          secret=lab.canary(secrets.token_urlsafe(30)))
        self.public, self.lifetime, self.given, self.claims = public, 3600, [], []

    def fault(self, handler, form):
        """The code of an error, or None."""
        if form["Action"] == "AssumeRoleWithWebIdentity":
            _, self.claims = jose.verified(self.lab, form["WebIdentityToken"], self.public)
            return None if "Authorization" not in handler.headers else "IncompleteSignature"
        if f"/{self.region}/sts/aws4_request" not in handler.headers.get("Authorization", ""):
            return "SignatureDoesNotMatch"
        try:
            signed.Verifier(self.user, handler.command, handler.path, handler.headers, self.body).verify()
        except signed.Wrong:
            return "SignatureDoesNotMatch"
        return None

    def keys(self):
        key = types.SimpleNamespace(id="ASIA" + secrets.token_hex(8).upper(), secret=self.new_token("secret/"),
                                    token=self.new_token("IQoJ" + "x" * 800))
        if self.bad == "newline":
            key.token += "\r\nX-Evil: 1"
        self.given.append(key)
        return key

    def serve(self, handler, body):
        self.body = body.encode()
        form = dict(urllib.parse.parse_qsl(body, strict_parsing=True))
        self.asked.append(form)
        if self.badly(handler):
            return
        code = self.fault(handler, form)
        if code or form["Version"] != "2011-06-15" or form["RoleArn"] != self.role or handler.path != "/":
            text = f"<Type>Sender</Type><Code>{code or 'AccessDenied'}</Code><Message>User {self.user.id} &amp; so on</Message>"
            self.send(handler, 403, f'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error>{text}</Error>'
                      "<RequestId>1</RequestId></ErrorResponse>".encode(), kind="text/xml")
            return
        key, action = self.keys(), form["Action"]
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lifetime))
        token = "" if self.bad == "no token" else f"<SessionToken>{key.token}</SessionToken>"
        head = '<!DOCTYPE r [<!ENTITY x "y">]>' if self.bad == "a type" else ""
        text = f"""{head}<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <{action}Result>
    <AssumedRoleUser><AssumedRoleId>AROA123:session</AssumedRoleId><Arn>{self.role}</Arn></AssumedRoleUser>
    <Credentials>
      <AccessKeyId>{key.id}</AccessKeyId>
      <SecretAccessKey>{key.secret}</SecretAccessKey>
      {token}<Expiration>{"soon" if self.bad == "no time" else until}</Expiration>
    </Credentials>
  </{action}Result>
  <ResponseMetadata><RequestId>c6104cbe</RequestId></ResponseMetadata>
</{action}Response>
"""
        self.send(handler, 200, text.encode(), kind="text/xml")


class TencentSTS(Counterpart):
    """https://cloud.tencent.com/document/api/1312: AssumeRole and GetFederationToken, signed with TC3-HMAC-SHA256; the policy is
    percent-encoded within the JSON."""

    def __init__(self, lab, name="sts.tencent.test"):
        super().__init__(lab, name)
        self.user = types.SimpleNamespace(id="AKID" + secrets.token_hex(8), token=None, secret=lab.canary(secrets.token_urlsafe(30)))
        self.given, self.lifetime = [], 7200

    def answer(self, handler, **what):
        self.send(handler, 200, {"Response": {**what, "RequestId": "1"}})

    def serve(self, handler, body):
        if self.badly(handler):
            self.asked.append(None)
            return
        action, form = handler.headers.get("X-TC-Action"), json.loads(body)
        self.asked.append({"Action": action, "Region": handler.headers.get("X-TC-Region"), **form})
        try:
            signed.Verifier(self.user, handler.command, handler.path, handler.headers, body.encode()).verify()
            wrong = "/sts/tc3_request" not in handler.headers["Authorization"]
        except signed.Wrong:
            wrong = True
        if wrong:
            self.answer(handler, Error={"Code": "AuthFailure.SignatureFailure", "Message": f"not {self.user.id}"})
            return
        if handler.headers.get("X-TC-Version") != "2018-08-13" or action not in ("AssumeRole", "GetFederationToken"):
            self.answer(handler, Error={"Code": "InvalidAction", "Message": "?"})
            return
        if "Policy" in form:
            json.loads(urllib.parse.unquote(form["Policy"]))
        key = types.SimpleNamespace(id="AKID" + secrets.token_hex(16), secret=self.new_token("secret"), token=self.new_token("token"))
        self.given.append(key)
        told = {"TmpSecretId": key.id, "TmpSecretKey": key.secret, "Token": key.token}
        if self.bad == "no token":
            del told["Token"]
        self.answer(handler, Credentials=told, ExpiredTime="soon" if self.bad == "no time" else int(time.time()) + self.lifetime)
