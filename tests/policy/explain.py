#!/usr/bin/env python3
"""`countersign policy explain` by what it prints: who decided, what each near miss lacks, and changes that were tried."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

SRC = pathlib.Path(os.environ.get("srcdir", "."))
bad = 0

POLICY = """\
version: 1
packs: [git@1]
scopes: { bots: { sandboxes: ["ci-*"], labels: { team: [core, infra] } } }
credentials:
  key: { source: { env: KEY }, inject: { header: Authorization, format: "Bearer {}" },
         only: [{ host: a.example, path: /v2/** }, { host: a.example, path: /v1/** }] }
approvers: { leads: { operators: [ann, ben, cy] } }
rules:
  - { id: allow-read, match: { host: a.example, effect: read, path: "/v1/**" }, decide: allow, use: key }
  - { id: hold-write, scope: bots, match: { host: a.example, effect: write, path: "/v1/**" }, decide: hold, use: key,
      approve: { by: leads, within: 15m, reason: required } }
  - { id: no-admin, match: { host: a.example, path: "/v1/admin/**" }, decide: deny, say: "Not for agents." }
  - { id: pay, match: { host: p.example, method: POST, json: [{ pointer: /amount, int_lte: 5000 }] }, decide: allow }
  - { id: order, match: { host: f.example, method: POST, form: [{ field: kind, in: [a, b] }] }, decide: allow }
  - { id: list, match: { host: q.example, method: GET, query: { state: open } }, decide: allow }
  - { id: beta, match: { host: h.example, method: GET, header: { X-Beta: "on*" } }, decide: allow }
  - { id: talk, match: { host: w.example, ws: {} }, decide: allow, messages: { send: text } }
  - { id: topic, match: { op: git.push, resource: "github:acme/*", git: { refs: ["refs/heads/agent/*"] } }, decide: allow }
  - { id: days, match: { host: d.example, method: GET }, decide: allow, when: { days: [mon-fri], zone: Europe/Berlin } }
  - { id: quiet, match: { host: g.example, method: POST, json: [{ pointer: /draft, equals: "false" }] }, decide: allow }
  - { id: wrong-place, match: { host: a.example, effect: read, path: /v3 }, decide: allow, use: key }
  - { id: often, match: { host: o.example, method: PATCH }, decide: allow, limits: { requests: 5/1h }, over: often-asked,
      when: { hours: "06:00-18:00", zone: UTC } }
  - { id: often-asked, match: { host: o.example, method: PATCH, path: /x }, decide: hold, when: { hours: "05:00-07:00", zone: UTC } }
  - { id: keyed, match: { host: k.example, method: PATCH }, decide: allow, limits: { requests: 5/1h }, over: keyed-asked }
  - { id: keyed-asked, match: { host: a.example, method: PUT, path: /v2/x }, decide: hold, use: key }
  - { id: daily, match: { host: n.example, method: PATCH }, decide: allow, when: { hours: "06:00-18:00", zone: UTC } }
  - { id: nightly, match: { host: n.example, method: PATCH }, decide: hold }
  - { id: by-day, match: { host: z.example, method: PATCH }, decide: allow, when: { hours: "06:00-18:00", zone: UTC } }
  - { id: by-night, match: { host: z.example, method: PATCH }, decide: hold, when: { hours: "18:00-06:00", zone: UTC } }
  - { id: topic-mondays, match: { op: git.push, resource: "github:shop/*", git: { refs: ["refs/heads/agent/*"] } }, decide: hold,
      when: { days: mon, zone: UTC } }
  - { id: upload, match: { host: u.example, method: POST, multipart: [{ field: folder, equals: a }, { file: doc, glob: "*.txt" }] }, decide: allow }
"""
INNER = """\
version: 1
rules: [{ id: inner, match: { host: [10.1.2.3, localhost, 10.1.2.4], effect: read }, decide: allow }]
upstreams: [{ host: 10.1.2.4, allow_private: [10.1.2.4/32] }]
"""


def said(good, what, words=""):
    global bad
    bad += not good
    print(f"{'ok' if good else 'not ok'} {what}{'' if good else chr(10) + str(words)}")


def explain(*args, stdin=None):
    """At a Sunday, where neither a time is given nor a record that has one: what is said here holds on every day."""
    if "--at" not in args and "--record" not in args:
        args = ("--at", "2026-11-22T10:00:00Z", *args)
    done = subprocess.run(["./countersign", "policy", "explain", "--packs", str(SRC / "conf/packs"), *map(str, args)],
                          capture_output=True, text=True, input=stdin)
    return done.returncode, done.stdout, done.stderr


def pkt(text):
    return b"%04x" % (len(text) + 4) + text


# Rules of all places, each about a host of its own.
PLACES = "version: 1\nrules:\n" + "".join(
    f"  - {{ id: r{i}, match: {{ host: h{i}.example{place} }}, decide: allow }}\n" for i, place in enumerate(
        scheme + port for scheme in ("", ", scheme: http", ", scheme: https")
        for port in ("", ", port: 8000", ", port: 80", ", port: 443", ", port: [8443, 8000]")))


def followed(words, method, url):
    """The request of this method and URL, changed as `explain` proposes; None: not in what it is given here."""
    at = urllib.parse.urlsplit(url)
    place = re.fullmatch(r"with (?:scheme (\w+))?(?: and )?(?:port (\d+))?", words)
    one = re.fullmatch(r"with (method|path|host|query parameter) (\S+?)(?:: (\S+))?", words)
    if place:
        at = at._replace(scheme=place[1] or at.scheme, netloc=at.hostname + (f":{place[2] or at.port}" if place[2] or at.port else ""))
    elif one and one[1] == "method":
        method = one[2]
    elif one and one[1] == "path":
        at = at._replace(path=one[2])
    elif one and one[1] == "host":
        at = at._replace(netloc=at.netloc.replace(at.hostname, one[2]))
    elif one:
        at = at._replace(query=f"{one[2]}={one[3]}")
    else:
        return None
    return method, at.geturl()


def follow(policy, method, url):
    """How many proposals there are for a request; each of them, followed, gives the answer that was promised."""
    n = 0
    for change in json.loads(explain("--json", method, url, policy)[1])["changes"]:
        asked = followed(change["change"], method, url)
        answer = asked and json.loads(explain("--json", *asked, policy)[1])
        if not answer or any(answer.get(key) != change.get(key) for key in ("decide", "code", "rule")):
            said(False, f"{method} {url}: {change['change']}", f"{asked}: {answer}, promised was {change}")
        n += 1
    return n


with tempfile.TemporaryDirectory() as tmp:
    os.chmod(tmp, 0o700)
    policy = pathlib.Path(tmp, "p.yaml")
    policy.write_text(POLICY)
    body = pathlib.Path(tmp, "body")

    def golden(name, code, want, *args, **more):
        rc, out, err = explain(*args, policy, **more)
        out = out.replace(str(policy), "p.yaml")
        said(rc == code and out == want, name, f"exit {rc}, wanted {code}\n{out}{err}--- wanted\n{want}")

    def has(name, code, words, *args, **more):
        rc, out, err = explain(*args, policy, **more)
        out = out.replace(str(policy), "p.yaml") + err
        said(rc == code and all(w in out for w in words), name, f"exit {rc}, wanted {code} {words}\n{out}")

    golden("a read that passes", 0, """\
ALLOW by rule allow-read (p.yaml:9)
  op=http.get effect=read resource=- (pack none)
  credential key -> header Authorization (inside only[1]: https://a.example/v1/**)
  near misses:
    no-admin (deny, p.yaml:12): path is /v1/x, the rule wants /v1/admin/**
    wrong-place (allow, p.yaml:21): path is /v1/x, the rule wants /v3
  what would change it:
    with path /v1/admin/x: DENY  by rule no-admin (p.yaml:12)
    with path /v3: DENY  by rule wrong-place (p.yaml:21) because credential-not-for-here
""", "--at", "2026-11-22T10:00:00Z", "GET", "https://a.example/v1/x")
    golden("a held write", 10, """\
HOLD  by rule hold-write (p.yaml:10)
  op=http.post effect=write resource=- (pack none)
  credential key -> header Authorization (inside only[1]: https://a.example/v1/**)
  approve: by leads (ann, ben or cy), within 15m, never by the sandbox's owner, with a reason
  near misses:
    allow-read (allow, p.yaml:9): effect is write, the rule wants read
    no-admin (deny, p.yaml:12): path is /v1/x, the rule wants /v1/admin/**
  what would change it:
    with method GET: ALLOW by rule allow-read (p.yaml:9)
    with path /v1/admin/x: DENY  by rule no-admin (p.yaml:12)
""", "--as", "ci-7", "--label", "team=core", "POST", "https://a.example/v1/x")
    golden("a denial by a rule, and what it outranks", 11, """\
DENY  by rule no-admin (p.yaml:12)
  op=http.get effect=read resource=- (pack none)
  say: Not for agents.
  near misses:
    allow-read (allow, p.yaml:9): all of it fits, but the deny "no-admin" goes before it: an except: there would let it decide
    wrong-place (allow, p.yaml:21): path is /v1/admin/x, the rule wants /v3
""", "--at", "2026-11-22T10:00:00Z", "GET", "https://a.example/v1/admin/x")
    has("who is asked for", 11, ["hold-write (hold, p.yaml:10): sandbox lab is not in scope bots (ci-*, label team=core or infra)",
        "with a sandbox of scope bots: HOLD  by rule hold-write"], "--as", "lab", "POST", "https://a.example/v1/x")
    has("a credential that may not go there", 11, ["because credential-not-for-here",
        "credential key may not go there: its only: names https://a.example/v2/**, https://a.example/v1/**"],
        "GET", "https://a.example/v3")
    body.write_text('{"currency": "eur", "amount": 9900}')
    json_type = ["-H", "Content-Type: application/json"]
    has("a value in JSON", 11, ["pay (allow, p.yaml:13): /amount is the number 9900, the rule wants a whole number, at most 5000",
        "with body /amount: 5000: ALLOW by rule pay"], *json_type, "--body", body, "POST", "https://p.example/")
    body.write_text("{}")
    has("a value that is not there", 11, ["/amount is not there", "with body /amount: 5000: ALLOW by rule pay"],
        *json_type, "--body", body, "POST", "https://p.example/")
    for value, words in (('"5"', 'the string "5"'), ('""', 'the string ""'), ("null", "null"), ("true", "true"), ("5.0", "the number 5.0"),
                         ("{}", "an empty object"), ('{"x": 1}', "an object"), ("[]", "an empty list"), ("[5]", "a list")):
        has(f"a value of another type: {value}", 11, [f"/amount is {words}, the rule wants a whole number, at most 5000"],
            "--data", f'{{"amount": {value}}}', "POST", "https://p.example/")
    for cause, data, at, words in (("key-case", '{"amount": 9900, "Amount": 1}', "", "has a key that differs in case, _ or - alone"),
                                   ("batch", '[{"amount": 9900}]', "", "has a list where one object is asked about"),
                                   ("in-query", '{"amount": 9900}', "?amount=1", "the query has what the body is asked about"),
                                   ("in-query", "", "?amount=1", "the query has what the body is asked about")):
        rc, out, err = explain(*(["--data", data] if data else []), "POST", "https://p.example/" + at, policy)
        near = [line for line in out.splitlines() if "    pay (allow, " in line]
        said(rc == 11 and f"cause: {cause}\n" in out and len(near) == 1 and words in near[0] and near[0].endswith("; the rule asks about /amount"),
             f"a near miss that is open: {cause}", out)
    rc, out, err = explain("--data", "amount[]=1", "POST", "https://f.example/?kind=a", policy)
    said("order (allow, p.yaml:14): the query has what".replace("p.yaml", str(policy)) in out, "a near miss that is open, of a form", out)
    has("a field in another spelling", 11, ["the form has a field that servers may take for the one asked about; the rule asks about kind"],
        "--data", "kind[]=a", "POST", "https://f.example/")
    has("a quoted false is no false", 11, ['/draft is the string "false", the rule wants false'],
        "--data", '{"draft": "false"}', "POST", "https://g.example/")
    has("a false is one", 0, ["ALLOW by rule quiet"], "--data", '{"draft": false}', "POST", "https://g.example/")
    body.write_text("kind=c&n=1")
    has("a field of a form", 11, ["order (allow, p.yaml:14): kind is c, the rule wants a or b",
        "with body kind: a: ALLOW by rule order"],
        "-H", "Content-Type: application/x-www-form-urlencoded", "--body", body, "POST", "https://f.example/")
    has("a form where JSON is wanted", 11, ["the body is a form, the rule asks for JSON"],
        "-H", "Content-Type: application/x-www-form-urlencoded", "--body", body, "POST", "https://p.example/")
    parts = ["-H", "Content-Type: multipart/form-data; boundary=b1", "--body", body, "POST", "https://u.example/"]

    def part(name, value):
        return f'--b1\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()

    for folder, file, words in (("b", "x.txt", "field folder is b, the rule wants a"), ("a", "x.exe", "file doc is x.exe, the rule wants *.txt"),
                                ("a", None, "the form has a field that servers may take for the one asked about; the rule asks about file doc")):
        name = f'doc"; filename="{file}' if file else "doc"
        body.write_bytes(part("folder", folder) + part(name, "x") + b"--b1--\r\n")
        has(f"a part of a form with files: {words}", 11, ["upload (allow", words], *parts)
    body.write_bytes(part("folder", "a"))
    has("a form with files that ends too soon", 11, ["cause: bad-multipart"], *parts)
    has("a parameter", 11, ["list (allow, p.yaml:15): query parameter state is closed, the rule wants open",
        "with query parameter state: open: ALLOW by rule list"], "GET", "https://q.example/?state=closed")
    has("a header", 11, ["beta (allow, p.yaml:16): header X-Beta is not there, the rule wants on*",
        "with header X-Beta: onx: ALLOW by rule beta"], "GET", "https://h.example/")
    has("no upgrade", 11, ["talk (allow, p.yaml:17): it asks for no WebSocket upgrade",
        "with a WebSocket upgrade: ALLOW by rule talk"], "GET", "https://w.example/")
    has("a port", 11, ["port is 8443, the rule wants the scheme's own, 443", "with port 443: ALLOW by rule allow-read"],
        "GET", "https://a.example:8443/v1/x")
    has("a scheme and a port", 11, ["scheme is http, the rule wants https, and port is 8080, the rule wants the scheme's own, 443",
                                    "with scheme https and port 443: ALLOW by rule allow-read"], "GET", "http://a.example:8080/v1/x")
    has("a scheme", 11, ["scheme is http, the rule wants https", "with scheme https and port 443: ALLOW by rule allow-read"],
        "GET", "http://a.example/v1/x")
    has("a host", 11, ["host is b.example, the rule wants a.example", "with host a.example: ALLOW by rule allow-read"],
        "GET", "https://b.example/v1/x")
    body.write_bytes(pkt(b"a" * 40 + b" " + b"b" * 40 + b" refs/heads/main\0 report-status-v2 object-format=sha1") + b"0000PACK")
    push = ["-H", "Content-Type: application/x-git-receive-pack-request", "--body", body, "POST"]
    has("a ref", 11, ["topic (allow, p.yaml:18): ref refs/heads/main is not refs/heads/agent/*",
        "with ref refs/heads/agent/x: ALLOW by rule topic"], *push, "https://github.com/acme/app.git/git-receive-pack")

    def curl(name, code, words, line):
        has(f"curl: {name}", code, words, "--curl", line)

    curl("a plain one", 0, ["ALLOW by rule allow-read"], "curl https://a.example/v1/x")
    curl("a prompt, flags, quotes and continued lines", 0, ["ALLOW by rule allow-read"],
         "$ curl -sSL \\\n  -o /dev/null --compressed 'https://a.example/v1/x' \\\r\n -H \"Accept: a/b\"")
    curl("a method in one word", 11, ["op=http.delete effect=delete"], "curl -XDELETE https://a.example/v1/x")
    curl("data make it a POST of a form", 0, ["ALLOW by rule order"], "curl -d kind=a --data-raw n=@1 https://f.example/")
    curl("data of another type", 11, ["the body is JSON, the rule asks for a form"],
         "curl https://f.example -H 'Content-Type: application/json' -d '{\"kind\": \"a\"}'")
    curl("--json", 0, ["ALLOW by rule pay"], """curl --json '{"amount":' --json ' 5000}' https://p.example""")
    curl("as a browser writes it", 0, ["ALLOW by rule pay"],
         r"""curl 'https://p.example/' -H 'content-type: application/json' --data-raw $'{"amount":5,"text":"it\'s \u0021"}'""")
    curl("--data-urlencode", 0, ["ALLOW by rule order"], "curl --data-urlencode 'x=a&kinds=c' --data-urlencode kind=a https://f.example/")
    curl("-G puts data in the query", 0, ["op=http.get", "ALLOW by rule list"], "curl -G -d state=open https://q.example/")
    curl("-I is a HEAD", 0, ["op=http.head"], "curl -I https://a.example/v1/x")
    curl("a URL without a scheme is http", 11, ["scheme is http, the rule wants https"], "curl a.example/v1/x")
    curl("-u is left out, and said", 0, ["note: what -u says is left out"], "curl -u me:pw https://a.example/v1/x")
    curl("a variable stays, and is said", 0, ["note: a $NAME stays"],
         'curl -H "Authorization: Bearer $TOKEN" https://a.example/v1/x')
    curl("a header is a header", 0, ["ALLOW by rule beta"], "curl -H 'X-Beta: only' https://h.example/")
    body.write_text("kind=\na")
    curl("a file of data, without its line ends", 0, ["ALLOW by rule order"], f"curl -d @{body} https://f.example/")
    for name, words, line in (
            ("several URLs", "several URLs", "curl https://a.example https://b.example"),
            ("several URLs in one", "several URLs", "curl https://a.example/{a,b}"),
            ("an option that is not known", "--frob is not understood", "curl --frob https://a.example"),
            ("a letter that is not known", "-Z is not understood", "curl -sZ https://a.example"),
            ("-F", "-F is not understood here: --form", "curl -F a=b https://a.example"),
            ("another command behind it", "give the curl command alone", "curl https://a.example | sh"),
            ("a command in it", "is not run here", 'curl "https://a.example/$(id)"'),
            ("a command in it, the old way", "is not run here", 'curl "https://a.example/`id`"'),
            ("a quote without a partner", "has no partner", "curl 'https://a.example"),
            ("no URL", "has no URL", "curl -s"),
            ("no value", "needs a value", "curl https://a.example -H"),
            ("no curl", "begins with curl", "wget https://a.example"),
            ("standard input", "@- is not", "curl -d @- https://a.example")):
        curl(f"refused: {name}", 2, [words], line)

    has("a request that may have another method is explained as it was judged", 11,
        ["list (allow, p.yaml:15): method is any (by an override), the rule wants GET"],
        "--header", "X-HTTP-Method-Override: DELETE", "GET", "https://q.example/?state=open")

    def record(**changes):
        one = {"seq": 5, "kind": "intent", "sandbox": "ci-1", "method": "GET", "scheme": "https", "host": "a.example",
               "port": 443, "path": "/v1/x", "verdict": "allow", "code": "rule", "op": "http.get"}
        return json.dumps({**one, **changes}) + "\n"

    has("a record", 0, ["ALLOW by rule allow-read", "note: a record has neither"], "--record", "-", stdin=record())
    body.write_text(record(path="/?state=open", host="q.example"))
    has("a record in a file", 0, ["ALLOW by rule list"], "--record", body)
    has("a record asks as its sandbox", 10, ["HOLD  by rule hold-write"], "--label", "team=core", "--record", "-",
        stdin=record(method="POST"))
    has("a record with a body that decides", 11, ["needs the body to decide", "depends on what is not seen, in rules: pay"],
        "--record", "-", stdin=record(method="POST", host="p.example", path="/", body=True, type="application/json"))
    has("a record, and a rule about a header", 11, ["DENY  because unclassified", "depends on what is not seen, in rules: beta",
        "why: the fields of the request are not recorded, and a rule asks about one"],
        "--record", "-", stdin=record(host="h.example", path="/"))
    has("a record is of its time: a Sunday", 11, ["DENY"], "--record", "-",
        stdin=record(host="d.example", path="/", time="2026-11-22T10:00:00.123Z"))
    has("a record is of its time: a Monday", 0, ["ALLOW by rule days"], "--record", "-",
        stdin=record(host="d.example", path="/", time="2026-11-23T10:00:00.123Z"))
    has("a record at another time", 11, ["DENY"], "--at", "2026-11-22T10:00:00Z", "--record", "-",
        stdin=record(host="d.example", path="/", time="2026-11-23T10:00:00.123Z"))
    push = {"method": "POST", "host": "github.com", "path": "/acme/app.git/git-receive-pack", "body": True,
            "type": "application/x-git-receive-pack-request"}
    has("a recorded push", 0, ["ALLOW by rule topic"], "--record", "-", stdin=record(**push, refs=["create refs/heads/agent/a"]))
    has("a recorded push of another ref", 11, ["ref refs/heads/main is not refs/heads/agent/*"], "--record", "-",
        stdin=record(**push, refs=["update refs/heads/main"]))
    has("a recorded push of too many refs", 2, ["does not have all refs"], "--record", "-",
        stdin=record(**push, refs=["create refs/heads/a", "..."]))
    has("a record of no request", 2, ["has no request in it"], "--record", "-", stdin='{"seq": 1, "kind": "start"}')
    has("two records", 2, ["one line of"], "--record", "-", stdin=record() + record())
    has("--curl and --record", 2, ["not both"], "--curl", "curl x", "--record", "-")
    has("--curl and --body", 2, ["have their own"], "--curl", "curl x", "--body", body)
    inner = pathlib.Path(tmp, "inner.yaml")
    inner.write_text(INNER)
    for host, code, words in (("10.1.2.3", 0, "but 10.1.2.3 is a private address, and upstreams: does not have this host and port with an "
                                           "allow_private: for it: nothing would be sent\n"),
                              ("localhost", 0, "but localhost is a loopback address"), ("10.1.2.4", 0, None)):
        rc, out, err = explain("GET", f"https://{host}/", inner)
        said(rc == code and (words in out if words else "but " not in out), f"{host} may be dialled or not", out + err)
    said("but " not in explain("DELETE", "https://10.1.2.3/", inner)[1], "what is denied goes nowhere anyway")
    said(json.loads(explain("--json", "GET", "https://10.1.2.3/", inner)[1])["unreachable"].startswith("10.1.2.3 is a private"), "JSON: unreachable")
    has("--data", 0, ["ALLOW by rule pay", "note: --data is taken for JSON"], "--data", '{"amount": 1}', "POST", "https://p.example/")
    has("--data, a form", 0, ["ALLOW by rule order"], "--data", "kind=b", "POST", "https://f.example/")
    has("not understood, and why", 11, ["DENY  because unclassified", "cause: key-twice", "why: an object in the JSON body has a key twice", "a rule asks about /amount"],
        "--data", '{"amount": 1, "amount": 9}', "POST", "https://p.example/")
    rc, out, err = explain("--json", "--data", '{"amount": 1, "amount": 9}', "POST", "https://p.example/", policy)
    said([json.loads(out)[key] for key in ("cause", "why", "asked_about")] == ["key-twice", "an object in the JSON body has a key twice", "/amount"],
         "JSON: the cause", out)
    rc, out, err = explain("--json", "POST", "https://p.example/", policy)
    said("cause" not in json.loads(out), "JSON: no cause of what was understood", out)
    has("out of its hours", 11, ["days (allow, p.yaml:19): it is in force only mon-fri 00:00-24:00 Europe/Berlin",
        "what would change it:", "from 2026-11-22T23:00:00Z on: ALLOW by rule days"], "--at", "2026-11-22T10:00:00Z", "GET", "https://d.example/")
    rc, out, err = explain("--json", "--at", "2026-11-22T10:00:00Z", "GET", "https://d.example/", policy)
    said(json.loads(out)["opens"] == {"at": "2026-11-22T23:00:00Z", "hours": "mon-fri 00:00-24:00 Europe/Berlin", "decide": "allow",
         "code": "rule", "need_body": False, "rule": {"id": "days", "file": str(policy), "line": 19}}, "JSON: when it opens", out)
    rc, out, err = explain("--json", "--at", "2026-11-22T10:00:00Z", "GET", "https://a.example/", policy)
    said("opens" not in json.loads(out), "JSON: the clock alone changes nothing", out)
    post = ["PATCH", "https://o.example/y"]
    has("past the limit while the hold is in force", 0, ["in 1h, per sandbox; past that: held by rule often-asked"],
        "--at", "2026-11-23T06:30:00Z", *post)
    has("past the limit while it is not", 0, ["past that: denied, as often-asked is in force only every day 05:00-07:00 UTC"],
        "--at", "2026-11-23T12:00:00Z", *post)
    rc, out, err = explain("--json", "--at", "2026-11-23T12:00:00Z", *post, policy)
    limit = json.loads(out)["limits"][0]
    said((limit["past_limit"], limit["over"], limit["over_only"]) == ("deny", "often-asked", "every day 05:00-07:00 UTC"),
         "JSON: past the limit", limit)
    has("past the limit with a credential that may not go there", 0, ["past that: denied because credential-not-for-here"],
        "PATCH", "https://k.example/")
    has("a hold of all hours over an allow of some", 10, ['daily (allow, p.yaml:27): all of it fits, but the hold "nightly" '
        "goes before it: a when: of the other hours there would let it decide"], "--at", "2026-11-23T12:00:00Z", "PATCH", "https://n.example/")
    for verb, ref in (("update", "agent/x"), ("create", "agent/x")):
        has(f"a push out of the hours of a rule about refs: {verb}", 11, ["it is in force only mon 00:00-24:00 UTC", "what would change it:",
            "from 2026-11-23T00:00:00Z on: HOLD  by rule topic-mondays"], "--at", "2026-11-22T10:00:00Z", "--ref", f"{verb} refs/heads/{ref}",
            "POST", "https://github.com/shop/app.git/git-receive-pack")
    rc, out, err = explain("--at", "2026-11-22T10:00:00Z", "--ref", "update refs/heads/main", "POST",
                           "https://github.com/shop/app.git/git-receive-pack", policy)
    said(rc == 11 and " on: " not in out, "a push of another ref than that rule is about", out)
    has("held out of hours, allowed in them", 10, ["what would change it:", "from 2026-11-23T06:00:00Z on: ALLOW by rule by-day"],
        "--at", "2026-11-22T20:00:00Z", "PATCH", "https://z.example/")
    rc, out, err = explain("--json", "POST", "https://a.example/v1/x", policy)
    found = json.loads(out)
    said(rc == 11 and found["near_misses"][0] == {"id": "allow-read", "file": str(policy), "line": 9, "decide": "allow",
         "because": "effect", "open": False, "words": "effect is write, the rule wants read"}, "JSON: a near miss", out)
    said(found["changes"][0] == {"change": "with method GET", "decide": "allow", "code": "rule", "need_body": False,
         "rule": {"id": "allow-read", "file": str(policy), "line": 9}}, "JSON: a change", out)
    stubs = pathlib.Path(tmp, "stubs.yaml")
    stubs.write_text("""version: 1
credentials:
  keys: { source: { store: k }, inject: { sigv4: { region: r, service: s3 } }, lease: aws, stub: aws, only: [{ host: s3.example }] }
rules:
  - { id: read, match: { host: s3.example, effect: read }, decide: allow, use: keys }
""")
    rc, out, err = explain("GET", "http://169.254.169.254/latest/meta-data/", stubs)
    said(rc == 11 and "answered by the gateway itself, with a lease of keys\n" in out, "what a stub answers", out + err)
    rc, out, err = explain("--json", "GET", "http://169.254.169.254/computeMetadata/", stubs)
    said(rc == 11 and "stub" not in json.loads(out), "and what none does", out + err)
    places = pathlib.Path(tmp, "places.yaml")
    places.write_text(PLACES)
    before = bad
    n = sum(follow(places, "GET", f"{scheme}://h{i}.example{port}/x") for i in range(PLACES.count(" id: "))
            for scheme in ("http", "https") for port in ("", ":80", ":443", ":8000"))
    said(n >= 60 and bad == before, "each change of scheme and port that is proposed keeps its promise", n)
    n = sum(follow(policy, *asked) for asked in (
        ("GET", "https://a.example/v1/x"), ("GET", "https://a.example/v2"), ("GET", "http://a.example:8080/v1/x"),
        ("PUT", "https://q.example/"), ("GET", "https://q.example/?state=done"), ("POST", "https://n.example/"), ("GET", "https://o.example/")))
    said(n >= 7 and bad == before, "and each change of method, path or query", n)
sys.exit(bad != 0)
