#!/usr/bin/env python3
"""No spelling of a request is answered more loosely than the plain one (B60 to B64): random policies over the whole
grammar, requests, and other spellings of each part of a request that some server takes for the same. What a floor, a
deny or a hold stops in its plain spelling is stopped in all of them; approvers, reasons, credentials and limits stay.
Usage: respell.py [SEED [ROUNDS]]; a failure prints its seed."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import urllib.parse

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 60
R = random.Random(SEED)
ORDER = {"refused": 0, "deny": 0, "hold": 1, "allow": 2}
NPM = "registry.npmjs.org"
HOSTS = ["a.test", "b.a.test", NPM]
WORDS = ["v1", "items", "p:setIamPolicy", "@acme", "a+b", "x(1)", "it's", "k=v", "a,b", "R&D", "!bang", "$x", "a|b^c", "Über"]
FIELDS = ["X-Danger", "X-Mode", "Prefer"]
FIELD_VALUES = ["1", "on", "safe mode", "1, 2", "text/xml", "true"]
NAMES = ["mode", "amount", "a_b"]
GRAPHQL = ["items", "drop", "mode"]  # fields; each may have the argument "to". Names of tools and methods, too
KINDS = ["form", "json", "multipart", "graphql", "mcp", "jsonrpc"]
VALUES = ["on", "5", "A b", "a+b", "it's", "50%", "{a|b}", "true"]
SOME_SCOPES = {"approvers": {"ann": {"operators": ["ann"]}, "ben": {"operators": ["ben"]}}}


def pick(v):
    return R.choice(v)


def some(v, most=2):
    return R.sample(v, R.randint(1, min(most, len(v))))


def path_literal(word):
    """As a policy has to write it: escapes only where something must be escaped."""
    return "".join(c if ord(c) < 0x80 and c not in "|^" else urllib.parse.quote(c) for c in word)


# ---- policies ----

ASKED = []  # the requests of this round: many rules are about one of them


def asked_header():
    pairs = [pair for q in ASKED for pair in q["fields"]]
    name, value = pick(pairs) if pairs and R.random() < 0.7 else (pick(FIELDS), pick(FIELD_VALUES))
    return {name: [value]}


def path_pattern():
    if ASKED and R.random() < 0.6:
        return "/" + "/".join(path_literal(w) for w in pick(ASKED)["path"])
    parts = [pick([path_literal(pick(WORDS)), path_literal(pick(WORDS)), "*", "p:*", "**"]) for _ in range(R.randint(1, 3))]
    if parts.count("**") > 1:
        parts = ["v1", "**"]
    return "/" + "/".join(parts)


def match(decide):
    m = {"host": some(HOSTS + ["*.a.test"])}
    chance = {"allow": 0.15, "hold": 0.35, "deny": 0.35}[decide]
    for key, make in (("method", lambda: some(["GET", "POST", "PUT", "DELETE"])),
                      ("path", lambda: [path_pattern() for _ in range(R.randint(1, 2))]),
                      ("effect", lambda: some(["read", "write", "delete"])),
                      ("query", lambda: {pick(NAMES): some(VALUES)}),
                      ("query_names", lambda: sorted(some(NAMES))),
                      ("header", asked_header),
                      ("resource", lambda: some(["npm:@acme/*", "npm:@acme/R&D", "npm:p:*", "npm:*"])),
                      ("op", lambda: some(["http.post", "http.get", "npm.publish", "npm.metadata", "npm.*"]))):
        if R.random() < chance / (3 if key in ("query_names", "resource", "op") else 1):
            m[key] = make()
    if "query_names" in m and ("query" in m or decide != "allow"):
        del m["query_names"]  # a name more is another request to what restricts
    if R.random() < 2 * chance / 3:
        kind = pick(KINDS)
        one = {"field": pick(NAMES)} if kind in ("form", "multipart") else {"pointer": "/" + pick(NAMES)}
        if kind == "graphql":
            one = {"pointer": f"/{pick(GRAPHQL)}/to"}
        conditions = [{**one, **pick([{"in": some(VALUES)}, {"in": some(VALUES)}, {"int_gte": 5}, {"exists": True}])}]
        m[kind] = {"form": conditions, "json": conditions, "multipart": conditions, "mcp": pick([{"tool": some(GRAPHQL)}, {"method": "tools/call", "arguments": conditions}]),
                   "jsonrpc": pick([{"method": some([*GRAPHQL, "tools/call"])}, {"method": "items", "params": conditions}, {"params": conditions}]),
                   "graphql": pick([{"type": pick(["query", "mutation"])}, {"fields": some(GRAPHQL)}, {"arguments": conditions}, {"type": "mutation", "fields": some(GRAPHQL)}])}[kind]
    return m


def rule(i):
    decide = pick(["allow", "hold", "deny"]) if i else "allow"
    m = match(decide) if i else {"host": HOSTS}
    r = {"id": f"r{i}", "match": m, "decide": decide}
    if decide == "hold" and R.random() < 0.5:
        r["approve"] = {"by": pick(["ann", "ben"]), **({"reason": "required"} if R.random() < 0.3 else {})}
    if decide == "allow" and i and "query_names" not in m and R.random() < 0.5:
        r["limits"] = {"requests": "9/1h"}
    if R.random() < 0.25:
        r["except"] = [{k: v for k, v in match("deny").items() if k != "host" or R.random() < 0.5} or {"method": "PUT"}]
    return r


def policy():
    head = {"version": 1, "packs": ["npm@1"], **SOME_SCOPES}
    return json.dumps({**head, "rules": [rule(i) for i in range(R.randint(2, 7))]}, ensure_ascii=False, indent=1)


# ---- requests: [method, scheme host, path, query, fields, body] ----

def request():
    q = {"method": pick(["GET", "POST", "PUT", "DELETE"]), "host": pick(HOSTS),
         "path": [pick(WORDS) for _ in range(R.randint(1, 3))],
         "query": [(n, pick(VALUES)) for n in some(NAMES)] if R.random() < 0.4 else [],
         "fields": [(n, pick(FIELD_VALUES)) for n in some(FIELDS)] if R.random() < 0.5 else [], **dict.fromkeys(KINDS)}
    if q["method"] in ("POST", "PUT") and R.random() < 0.6:
        kind = pick(KINDS)
        values = {n: pick(VALUES) for n in some(GRAPHQL if kind == "graphql" else NAMES)}
        q[kind] = (pick(["query", "mutation"]), values) if kind == "graphql" else (pick(GRAPHQL), values) if kind in ("mcp", "jsonrpc") else values
    return q


def left_raw(text):
    """As libraries that follow WHATWG URL leave it."""
    for c in "|^{}`\\":
        text = text.replace(urllib.parse.quote(c), c)
    return text


def asked_of(method, params, **more):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **more})


def given(values):
    return {k: int(v) if v.isdigit() else v for k, v in values.items()}


def called(tool, arguments, **more):
    return asked_of("tools/call", {"name": tool, "arguments": given(arguments)}, **more)


PARTS = ("Content-Type", "multipart/form-data; boundary=b1")


def part(name, value, more="", end="\r\n"):
    return f'--b1{end}Content-Disposition: form-data; name="{name}"{more}{end}{end}{value}{end}'


def whole(parts, before="", behind="--b1--\r\n"):
    return before + "".join(parts) + behind


SAFE_PATH, SAFE_FORM = "!$&'()*+,;=:@", "'()!*"


def field(name, value):
    return f"{name}(to: {value if value.isdigit() else json.dumps(value)})"


def said(operation):
    kind, selected = operation
    return kind + "{" + " ".join(field(n, v) for n, v in selected.items()) + "}"


def line(q, **over):
    fields, body = list(q["fields"]), None
    if q["form"] is not None:
        fields.append(("Content-Type", "application/x-www-form-urlencoded"))
        body = "&".join(f"{k}={urllib.parse.quote_plus(v, safe=SAFE_FORM)}" for k, v in q["form"].items())
    if q["json"] is not None:
        fields.append(("Content-Type", "application/json"))
        body = json.dumps({k: int(v) if v.isdigit() else v for k, v in q["json"].items()})
    if q["multipart"] is not None:
        fields.append(PARTS)
        body = whole(part(k, v) for k, v in q["multipart"].items())
    if q["graphql"] is not None:
        fields.append(("Content-Type", "application/json"))
        body = json.dumps({"query": said(q["graphql"])})
    if q["mcp"] is not None:
        fields.append(("Content-Type", "application/json"))
        body = called(*q["mcp"])
    if q["jsonrpc"] is not None:
        fields.append(("Content-Type", "application/json"))
        body = asked_of(q["jsonrpc"][0], given(q["jsonrpc"][1]))
    parts = {"method": q["method"], "host": q["host"], "path": "/" + "/".join(urllib.parse.quote(w, safe=SAFE_PATH) for w in q["path"]),
             "query": "&".join(f"{k}={urllib.parse.quote(v, safe=SAFE_FORM)}" for k, v in q["query"]), "fields": fields, "body": body, **over}
    url = f"https://{parts['host']}{parts['path']}{'?' + parts['query'] if parts['query'] else ''}"
    return ["vm", parts["method"], url, "".join(f"{n}: {v}\n" for n, v in parts["fields"]), parts["body"], "", "1000000000"]


# ---- spellings ----

def escaped(text, which, share=0.5):
    """Some of these characters as escapes, in either case of hex."""
    out = ""
    for c in text:
        if c in which and R.random() < share:
            out += "".join(f"%{b:02{pick('xX')}}" for b in c.encode())
        else:
            out += c
    return out


def swap_case(s):
    return re.sub("%..|[a-zA-Z]", lambda m: m[0] if m[0][0] == "%" else m[0].swapcase() if R.random() < 0.5 else m[0], s)


def wide(s, share=0.5):
    """Some of it as a server that folds characters takes for the same: full width, an accent behind, a soft hyphen."""
    return "".join(c if not c.isalnum() or ord(c) >= 0x80 or R.random() > share else chr(ord(c) + 0xfee0) if c.isdigit() else pick([chr(ord(c) + 0xfee0), c + "\u0301", c + "\u00ad"])
                   for c in s)


def loose_path(path):
    """Blanks and dots at the end of segments, '+' for a blank, characters of other widths."""
    parts = [urllib.parse.unquote(p) for p in path[1:].split("/")]
    for make in (lambda p: p + ".", lambda p: p + " ", lambda p: " " + p + " .", wide, lambda p: wide(p, 1), lambda p: wide(p) + "."):
        yield "/" + "/".join(urllib.parse.quote(make(p) if R.random() < 0.7 else p, safe=SAFE_PATH) for p in parts)
    yield path.replace("%20", "+")
    yield "/" + "%EF%BC%8F".join(path[1:].split("/"))


def paths(path):
    yield from loose_path(path)
    yield path.replace("%7C", "|").replace("%5E", "^")
    yield escaped(path, SAFE_PATH)
    yield escaped(path, SAFE_PATH, 1)
    yield escaped(path, SAFE_PATH + "abcdefgpsv@:")
    yield swap_case(path)
    yield swap_case(escaped(path, SAFE_PATH))
    for p in (path + "/", path + ";x=1", path.replace("/", "//", 2), path + "%3Bx", path + "%3Fx=1", path + "%23x"):
        yield p
        yield escaped(p, SAFE_PATH)
    yield "/" + escaped(path[1:], "/", 1)
    yield "/" + escaped(escaped(path[1:], "/"), SAFE_PATH, 1)


def numbers(v):
    return [f"+{v}", f"0{v}", f"{v}.0", f"{v}e0", f" {v} "] if v.isdigit() else []


def found(v):
    """What programs that take a number or a truth value out of a text take for the same."""
    if v.isdigit():
        return [f"{int(v):#x}", f"{int(v):#o}", f"0{int(v):o}", f"0_{v}", f"{v}x", f"{v}.7", chr(0x660 + int(v))]
    return ["true", "1", "yes", "ON", "y"] if v in ("true", "on") else []


def values(v):
    """What a server may read as this text."""
    yield from numbers(v)
    yield from found(v)
    yield wide(v)
    yield wide(v, 1)
    yield swap_case(v)
    yield f" {v}"
    yield f"{v}\t "
    yield v.replace(" ", "  ")
    yield v.replace(" ", "\t")
    yield v.replace("i", "ı")  # whose upper case is an I


def queries(pairs):
    for i, (k, v) in enumerate(pairs):
        quoted = urllib.parse.quote(v, safe=SAFE_FORM)
        others = [f"{a}={urllib.parse.quote(b, safe=SAFE_FORM)}" for n, (a, b) in enumerate(pairs) if n != i]
        for one in (f"{k}={quoted}&{k}=other", f"{k}=other&{k}={quoted}", f"{k.upper()}={quoted}", f"{k}[]={quoted}", f"{k}[x]={quoted}",
                    f"{escaped(k, 'amode_b', 1)}={escaped(v.replace('%', '%25').replace(' ', '%20'), 'aonb5+', 1)}", f"{k}={urllib.parse.quote(quoted)}",
                    f"{k}={left_raw(quoted)}", f"{k}={quoted.replace('%20', '+')}", f"{k}={quoted};z=1", f"z=1;{k}={quoted}", f"%25{ord(k[0]):x}{k[1:]}={quoted}", f"{k.replace('_', '.')}={quoted}",
                    f"{urllib.parse.quote(wide(k))}={quoted}", f"z=%26{k}%3D{urllib.parse.quote(quoted)}", f"z=%3B{k}={quoted}", f"{k}%3D{quoted}", f"z=1%2526{k}%253D{quoted}",
                    *(f"{k}={urllib.parse.quote(w)}" for w in values(v))):
            yield "&".join([*others, one])
            yield "&".join([one, *others])


def headers(fields):
    for i, (n, v) in enumerate(fields):
        rest = fields[:i] + fields[i + 1:]
        for name in (n.replace("-", "_"), n.upper(), n.replace("-", ".")):
            yield rest + [(name, v)]
        for value in (f"{v}, other", f"other, {v}", f"other,{v},", f"{v};q=1", f'"{v}"', f'"{v[:1]}\\{v[1:]}"' if len(v) > 1 and v[1] != "," else f'"{v}"', *(w for w in values(v) if w.strip() == w or True)):
            yield rest + [(n, value)]
            yield rest + [(n.replace("-", "_"), value)]
        yield rest + [(n, v), (n, "other")]
        yield rest + [(n, "other"), (n, v)]
        if ", " in v:
            yield rest + [(n, part) for part in v.split(", ")]
            yield rest + [(n, v.replace(", ", ","))]
            yield rest + [(n, v.replace(", ", " ,\t"))]


def forms(form):
    for k, v in form.items():
        quoted = urllib.parse.quote_plus(v, safe=SAFE_FORM)
        others = [f"{a}={urllib.parse.quote_plus(b, safe=SAFE_FORM)}" for a, b in form.items() if a != k]
        for one in (f"{k}={quoted}&{k}=other", f"{k}=other&{k}={quoted}", f"{k.upper()}={quoted}", f"{k}[]={quoted}", f"{escaped(k, 'amode_b', 1)}={quoted}",
                    f"%25{ord(k[0]):x}{k[1:]}={quoted}", f"{k}={quoted}%00", f"{k}={quoted}%00x", f"{k}={quoted};z=1", f"{k}={urllib.parse.quote(quoted)}", f"{k.replace('_', '.')}={quoted}",
                    *(f"{k}={urllib.parse.quote(w)}" for w in values(v))):
            yield "&".join([*others, one])


def multiparts(form):
    """The same fields, in other heads, cut in other ways, or with more beside them."""
    plain = [part(k, v) for k, v in form.items()]
    yield from (whole(plain, "before\r\n"), whole(plain, "\r\n"), whole(plain, behind="--b1--"), whole(plain, behind="--b1--\r\nbehind"), whole(plain, behind="--b1\r\n"), whole(plain[::-1]))
    yield whole([part(k, v, end="\n") for k, v in form.items()], behind="--b1--\n")
    yield whole([], behind=part("other", "x\n" + whole(plain, behind="").replace("\r\n", "\n")) + "--b1--\r\n")
    for k, v in form.items():
        others = [part(a, b) for a, b in form.items() if a != k]
        for one in (part(k, v) + part(k, "other"), part(k, "other") + part(k, v), part(k.upper(), v), part(f"{k}[]", v), part(escaped(k, "amode_b", 1), v), part(k.replace("_", "."), v), part(wide(k), v),
                    part(k, v, "\r\nContent-Type: text/plain"), part(k, v, "\r\nContent-Type: text/plain; charset=utf-7"), part(k, v, "\r\nContent-Type: application/json"),
                    part(k, v, '; filename="x"'), part(k, v, '; filename=""'), part(k, v, f"\r\nContent-Length: {len(v.encode())}"), part(k, v, "\r\nContent-Transfer-Encoding: binary"),
                    part(k, v, "\r\nContent-Transfer-Encoding: base64"), part("other", v, f"; name*=utf-8''{k}"), part("other", v, f'; name="{k}"'), part("other", v, f"; name={k}"), part(k, f"{v}\0"),
                    *(part(k, w) for w in values(v))):
            yield whole([*others, one])
            yield whole([one, *others])


def jsons(body):
    for k, v in body.items():
        is_number = v.isdigit()
        text = json.dumps({a: int(b) if b.isdigit() else b for a, b in body.items() if a != k})[1:-1]
        text = text + ", " if text else ""
        key, value = json.dumps(k), v if is_number else json.dumps(v)
        escapes = '"' + "".join(f"\\u{ord(c):04x}" for c in v) + '"'
        for k2, v2 in ((json.dumps(k.upper()), value), ('"' + "".join(f"\\u{ord(c):04X}" for c in k) + '"', value), (key, escapes),
                       (key, escapes[:-1] + '\\u0000"'), (key, escapes[:-1] + '\\u0000x"'), (key, '"\\u0000' + escapes[1:]),
                       *((key, n) for n in ([f"{v}.0", f"{v}e0", f"{v}0e-1", f'"{v}"'] if is_number else [])),
                       *((key, json.dumps(w)) for w in values(v))):
            yield "{" + text + k2 + ":" + v2 + "}"
            yield "\n{" + text + k2 + " : " + v2 + "\t}"
        yield "[{" + text + key + ":" + value + "}]"
        yield "{" + text + key + ":" + value + "," + key + ":" + value + "}"


def graphqls(operation):
    """The same operation, or one more beside it, as bodies of JSON."""
    kind, selected = operation
    whole, inner = said(operation), " ".join(field(n, v) for n, v in selected.items())
    texts = [kind + "{" + " ".join(f"x{i}: {field(n, v)} @skip(if: true)" for i, (n, v) in enumerate(selected.items())) + "}", kind + "{...F} fragment F on T {" + inner + "}",
             "#{items}\n,,\ufeff" + kind + " A{...{...on T{" + inner + "}}}", kind + " query{...mutation} fragment mutation on T{...G} fragment G on T{" + inner + "}",
             whole[:-1] + " items: __typename}", kind + "{items: __typename " + inner + "}"]
    for name, value in selected.items():
        rest = " ".join(field(n, v) for n, v in selected.items() if n != name)
        if not value.isdigit():
            escapes = '"' + "".join(f"\\u{ord(c):04x}" for c in value) + '"'
            texts += [kind + "{" + rest + f" {name}(to: {form})" + "}" for form in (escapes, '"""\n  ' + value + '\n"""', f'"""{value}"""', "[" + json.dumps(value) + "]")]
        default = f"{kind}($v: V = {value if value.isdigit() else json.dumps(value)})" + "{" + rest + f" {name}(to: $v)" + "}"
        texts += [default, default.replace(name + "(to: $v)", f"other(to: 1) y: {name}(to: $v)")]
        yield json.dumps({"query": f"{kind}($v: V)" + "{" + rest + f" {name}(to: $v)" + "}", "variables": {"v": int(value) if value.isdigit() else value}})
        yield json.dumps({"query": f"{kind}($v: V = 0)" + "{" + rest + f" {name}(to: $v)" + "}", "variables": {"v": int(value) if value.isdigit() else value}})
    for text in texts:
        yield json.dumps({"query": text})
    yield json.dumps([{"query": whole}])
    yield json.dumps([{"query": "{__typename}"}, {"query": whole}])
    for name in ("A", "B"):
        yield json.dumps({"query": "query A{__typename} " + whole.replace(kind, kind + " B", 1), "operationName": name})
    yield json.dumps({"query": whole, "extensions": {"persistedQuery": {"sha256Hash": "x"}}})
    yield json.dumps({"query": whole, "id": "x"})


def calls(whole, word, again):
    """The same call, or one more beside it. word: the tool or the method; again(**more): the message with members more."""
    ping, escapes = '{"jsonrpc":"2.0","method":"ping"}', '"' + "".join(f"\\u{ord(c):04x}" for c in word) + '"'
    yield from (f"[{whole}]", f"[{ping},{whole}]", f"[{whole},{ping}]", f" {whole}\n", whole.replace('"id": 1, ', ""), whole.replace('"name"', '"n\\u0061me"'),
                whole.replace('"tools/call"', '"tools\\/call"'), whole.replace('"tools/call"', '"Tools/Call"'), whole.replace('"tools/call"', '"tools/call "'), whole.replace(json.dumps(word), escapes), whole.replace(json.dumps(word), json.dumps(word.upper())),
                whole.replace(json.dumps(word), json.dumps(wide(word, 1))), whole.replace('"method"', '"m\\u0065thod"'), whole.replace("2.0", "2.00"),
                whole.replace('"params"', '"Params"'), whole.replace('"params"', '"params": {}, "params"'), whole.replace('"id": 1', '"id": null'))
    yield from (whole.replace(json.dumps(word), json.dumps(other)) for other in values(word))
    yield again(Method="ping")
    yield again(extra=1)
    yield again(result=1)
    yield whole.replace('"method"', '"method": "ping", "method"')
    yield whole.replace('"name"', '"Name": "ping", "name"')


def messages(method, params):
    """The same with its params, which may be given by position too."""
    yield from calls(asked_of(method, given(params)), method, lambda **more: asked_of(method, given(params), **more))
    for k, v in params.items():
        rest = {a: b for a, b in params.items() if a != k}
        for value in [*numbers(v), *values(v)]:
            yield asked_of(method, {**given(rest), k: value})
        yield asked_of(method, {**given(rest), k.upper(): v})
    yield asked_of(method, list(given(params).values()))
    yield asked_of(method, {"args": list(given(params).values()), **given(params)})


def bodies(q):
    """Other spellings of the body, whatever it is."""
    make = {"form": forms, "json": jsons, "multipart": multiparts, "graphql": graphqls, "jsonrpc": lambda asks: messages(*asks),
            "mcp": lambda asks: calls(called(*asks), asks[0], lambda **more: called(*asks, **more))}
    return next((make[kind](q[kind]) for kind in KINDS if q[kind] is not None), ())


def also(q):
    """The same asked elsewhere, or another said beside it: what the transport of MCP repeats, a document in a query or without JSON."""
    kind, text, query = [("Content-Type", "application/json")], line(q)[4], [line(q)[2].partition("?")[2]] if q["query"] else []
    if q["mcp"] is not None:
        for method, name in (("tools/call", q["mcp"][0]), ("tools/call", "ping"), ("ping", q["mcp"][0]), ("Tools/Call", q["mcp"][0].upper())):
            yield line(q, fields=[*q["fields"], *kind, ("Mcp-Method", method), ("Mcp-Name", name)])
            yield line(q, fields=[*q["fields"], *kind, ("Mcp_Method", method), ("mcp-name", name)])
    if q["jsonrpc"] is not None:
        yield line(q, query="&".join([*query, "method=ping"]))
        yield line(q, fields=[*q["fields"], ("Content-Type", "application/json-rpc")])
    if q["graphql"] is not None:
        document = said(q["graphql"])
        yield line(q, fields=[*q["fields"], ("Content-Type", "application/graphql")], body=document)
        yield line(q, fields=[*q["fields"], ("Content-Type", "application/graphql+json")])
        for more in ("query={__typename}", "operationName=A", "variables={}", "query=" + urllib.parse.quote(document)):
            yield line(q, query="&".join([*query, more]))
        if q["method"] == "POST":
            yield line(q, fields=q["fields"], body=None, query="&".join([*query, "query=" + urllib.parse.quote(document)]))
    if text is not None and q["form"] is None and q["multipart"] is None:
        yield line(q, fields=[*q["fields"], *kind, ("Content-Type", "text/plain")])


def spellings(q):
    base = line(q)
    path = urllib.parse.urlsplit(base[2]).path
    query = base[2].partition("?")[2]
    for host in (swap_case(q["host"]), q["host"] + ".", q["host"] + ":443"):
        yield "host", line(q, host=host)
    for p in paths(path):
        yield "path", line(q, path=p)
        yield "path", line(q, path=p, host=swap_case(q["host"]))
    for text in queries(q["query"]):
        yield "query", line(q, query=text)
    yield "query", line(q, query="&" + query + "&&")
    for fields in headers(q["fields"]):
        more = [f for f in (("Content-Type", "application/x-www-form-urlencoded") if q["form"] is not None else None,
                            PARTS if q["multipart"] is not None else None,
                            ("Content-Type", "application/json") if any(q[kind] is not None for kind in ("json", "graphql", "mcp", "jsonrpc")) else None) if f]
        yield "header", line(q, fields=fields + more)
    for text in also(q):
        yield "beside", text
    for body in bodies(q):
        yield "body", line(q, body=body)
        yield "body", line(q, body=body, path=next(paths(path)))
    if base[4] is not None:
        kind = "application/json" if q["form"] is None else "application/x-www-form-urlencoded"
        for fields in ([("Content-Type", kind), ("Content_Type", "text/plain")], [("Content_Type", kind)], [("content-type", kind.upper())],
                       [("Content-Type", kind + ";charset=utf-8")], [("Content-Type", kind), ("Content-Encoding", "gzip")]):
            yield "type", line(q, fields=q["fields"] + fields)


# ---- the question ----

def fail(words):
    print("not ok " + words[:20000])
    sys.exit(1)


def ask(text, lines):
    with tempfile.TemporaryDirectory() as d:
        file = os.path.join(d, "policy.yaml")
        with open(file, "w", encoding="utf-8") as f:
            f.write(text)
        packs = os.path.join(os.environ.get("srcdir", "."), "conf", "packs")
        done = subprocess.run(["tests/policy/judge_lines", file], input="\n".join(map(json.dumps, lines)) + "\n", capture_output=True, text=True,
                              env={**os.environ, "PACKS": packs}, check=False)
    if done.returncode != 0:
        fail(f"seed {SEED}: {done.returncode} {done.stderr}\n{text}")
    return [a.split() for a in done.stdout.splitlines()]


def limits(answer):
    return {one for one in answer[10].rstrip("-").split(",") if one}


def looser(plain, other):
    """Why, or nothing. An answer: verdict code rule op effect credential approvers reason within send limits."""
    if ORDER[other[0]] == 0:
        return None
    if plain[0] == "hold" or (plain[0] == "deny" and plain[1] in ("rule", "floor")):
        if ORDER[other[0]] > ORDER[plain[0]]:
            return "verdict"
    if plain[0] == "hold":
        if plain[6] not in ("-", other[6]):
            return "approvers"
        if plain[7] == "1" != other[7]:
            return "reason"
    if plain[4] != "read" and other[4] == "read" and plain[0] != "deny":
        return "effect"
    if plain[0] == other[0] and not limits(plain) <= limits(other):
        return "limits"
    return None


def main():
    counts = dict.fromkeys(("requests", "spellings", "deny", "hold", "allow", "stricter"), 0)
    for _ in range(ROUNDS):
        asked = ASKED[:] = [request() for _ in range(16)]
        text = policy()
        plain = ask(text, [line(q) for q in asked])
        variants = [(i, part, s) for i, q in enumerate(asked) for part, s in spellings(q)]
        for q, a in zip(asked, plain):
            counts["requests"] += 1
            if a[0] == "refused":
                fail(f"seed {SEED}: {line(q)} is refused")
            counts[a[0]] += 1
        for (i, part, s), a in zip(variants, ask(text, [s for _, _, s in variants])):
            counts["spellings"] += 1
            counts["stricter"] += ORDER[a[0]] < ORDER[plain[i][0]]
            why = looser(plain[i], a)
            if why:
                fail(f"seed {SEED}: {line(asked[i])}\nis {plain[i]}, but with another spelling of its {part}\n{s}\nit is {a}: looser in {why}\n{text}")
    if min(counts.values()) < ROUNDS / 10:
        fail(f"seed {SEED}: the generator makes too little of something: {counts}")
    print(f"ok {ROUNDS} policies, seed {SEED}: {counts}")


if __name__ == "__main__":
    main()
