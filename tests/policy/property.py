#!/usr/bin/env python3
"""Random policies and requests against a reference of a few lines (B46, B55), and every other spelling of a request gets
the same or a stricter answer (B4-B12, B53, B59). Usage: property.py [SEED [ROUNDS]]; a failure prints its seed."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import urllib.parse

SEED = int(sys.argv[1]) if len(sys.argv) > 1 else 1
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 80
R = random.Random(SEED)
ORDER = {"refused": 0, "deny": 0, "hold": 1, "allow": 2}
HOSTS = ["a.test", "b.a.test", "c.b.a.test", "nota.test", "d.test"]
PATTERNS = ["a.test", "b.a.test", "*.a.test", "**.a.test", "d.test"]
METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD"]
WORDS = ["v1", "items", "delete", "Admin", "x-y", "42"]
KEYS = ["mode", "q", "amount"]  # the last is the name of a body's condition, too
VALUES = ["on", "off", "A b", "ü", "5"]
KINDS = ["form", "json", "multipart", "graphql", "jsonrpc", "mcp"]
ROOTS = ["viewer", "pay", "drop"]  # fields of GraphQL, each with the argument "to"; methods; tools
APPROVERS = {"ann": {"operators": ["ann"]}, "ben": {"operators": ["ben"]}}


# ---- the reference: what a policy means, in the fewest words ----

def glob(pattern, text):
    """* is a run within a segment, ** any number of segments."""
    p, t = pattern.split("/"), text.split("/")

    def fits(i, k):
        if i == len(p):
            return k == len(t)
        if p[i] == "**":
            return any(fits(i + 1, j) for j in range(k, len(t) + 1))
        one = ".*".join(re.escape(x) for x in p[i].split("*"))
        return k < len(t) and re.fullmatch(one, t[k], re.S) is not None and fits(i + 1, k + 1)
    return fits(0, 0)


def host_fits(pattern, host):
    if pattern.startswith("**."):
        return host.endswith(pattern[2:]) and len(host) > len(pattern[2:])
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and "." not in host[:-len(pattern[1:])] and host != pattern[1:]
    return host == pattern


def effect(q):
    body = any(q[kind] is not None for kind in KINDS)
    return "delete" if q["method"] == "DELETE" else \
        "read" if q["method"] in ("GET", "HEAD") and not body else "write"


def fits(m, q, count=all):
    """count: of several values of one query name all must fit where something is let through, any where it is stopped."""
    checks = {
        "host": lambda v: any(host_fits(p, q["host"]) for p in v),
        "method": lambda v: q["method"] in v,
        "path": lambda v: any(glob(p, q["path"]) for p in v),
        "effect": lambda v: effect(q) in v,
        "query": lambda v: all(n in dict(q["query"]) and count(x in w for k, x in q["query"] if k == n)
                                   for n, w in v.items()),
        "query_names": lambda v: all(k in v for k, _ in q["query"]) and len(dict(q["query"])) == len(q["query"]),
        "form": lambda v: of_body(v, q["form"], lambda c: c["field"]),
        "json": lambda v: of_body(v, {} if is_document(q) else q["json"], lambda c: c["pointer"][1:]),
        "multipart": lambda v: of_body(v, q["multipart"], lambda c: c["field"]),
        "graphql": lambda v: q["graphql"] is not None and of_operation(v, *q["graphql"], count),
        "jsonrpc": lambda v: message(q) is not None and of_message(v, *message(q)[:2]),
        "mcp": lambda v: message(q) is not None and of_call(v, *message(q)),
    }

    def of_body(v, body, key):
        """No body is an empty one to what stops, where the method is one that has bodies."""
        none = count is any and all(q[kind] is None for kind in KINDS) and q["method"] not in ("GET", "HEAD", "OPTIONS")
        body = {} if none and all(c.get("absent") for c in v) else body
        return body is not None and all(cond(c, body.get(key(c))) for c in v)
    return all(checks[k](v) for k, v in m.items())


def is_document(q):
    """A body of JSON whose members are not those that conditions of JSON here ask for."""
    return any(q[kind] is not None for kind in ("graphql", "jsonrpc", "mcp"))


def message(q):
    """(method, params, tool, arguments) of JSON-RPC."""
    if q["mcp"] is not None:
        return "tools/call", {"name": q["mcp"][0]}, *q["mcp"]
    return None if q["jsonrpc"] is None else (*q["jsonrpc"], None, {})


def of_operation(v, kind, roots, count):
    """What lets through means every field at the top, what stops any of them; a condition holds where its field is selected."""
    at = {c["pointer"].split("/")[1] for c in v.get("arguments", ())}
    meant = {*v.get("fields", at)}
    return (v.get("type", kind) == kind and (not meant or count(name in meant for name in roots)) and
            all(name in roots for name in at) and all(cond(c, roots.get(c["pointer"].split("/")[1])) for c in v.get("arguments", ())))


def of_message(v, method, params):
    return method in v.get("method", [method]) and all(cond(c, params.get(c["pointer"][1:])) for c in v.get("params", ()))


def of_call(v, method, params, tool, arguments):
    return tool is not None and tool in v.get("tool", [tool]) and all(cond(c, arguments.get(c["pointer"][1:])) for c in v.get("arguments", ()))


def cond(c, value):
    if c.get("absent"):
        return value is None
    if value is None:
        return False
    if "int_lte" in c:
        return re.fullmatch(r"0|-?[1-9]\d*", value) is not None and int(value) <= c["int_lte"]
    return value in c["in"]


def decide(rules, q):
    best, also = "none", False
    for r in rules:
        allow, deny = r["decide"] == "allow", r["decide"] == "deny"
        if fits(r["match"], q, any if deny else all) and not any(fits(x, q, any if allow else all) for x in r["except"]):
            best = min(best, r["decide"], key=["deny", "hold", "allow", "none"].index)
        also |= r["decide"] == "hold" and fits(r["match"], q, any) and not any(fits(x, q, all) for x in r["except"])
    return "deny" if best == "none" else "hold" if best == "allow" and also else best


# ---- random ones ----

def some(v, most=2):
    return R.sample(v, R.randint(1, min(most, len(v))))


def path_pattern():
    parts = [R.choice(WORDS + ["*", "**", "x-*"]) for _ in range(R.randint(1, 3))]
    if parts.count("**") > 1:
        parts = ["**"]
    return "/" + "/".join(parts)


def conditions(kind):
    if kind == "graphql":
        asks = R.choice([{"type": R.choice(["query", "mutation"])}, {"type": "mutation", "fields": some(ROOTS)}, {"fields": some(ROOTS)},
                         {"arguments": conditions_at(lambda n: {"pointer": f"/{R.choice(ROOTS)}/to"}, ["amount"])}])
        return asks
    if kind == "jsonrpc":
        return R.choice([{"method": some([*ROOTS, "tools/call"])}, {"params": conditions_at(lambda n: {"pointer": "/" + n})}])
    if kind == "mcp":
        return R.choice([{"tool": some(ROOTS)}, {"tool": some(ROOTS), "arguments": conditions_at(lambda n: {"pointer": "/" + n})}])
    return conditions_at((lambda n: {"pointer": "/" + n}) if kind == "json" else lambda n: {"field": n})


def conditions_at(key, names=("amount", "currency")):
    out = []
    for n in some(list(names)):
        out.append({**key(n), **R.choice([{"int_lte": R.choice([5, 50])} if n == "amount" else {"in": ["eur"]},
                                           {"in": some(["eur", "usd", "7"])}, {"absent": True}])})
    return out


def match(needs_host):
    m = {}
    if needs_host or R.random() < 0.5:
        m["host"] = some(PATTERNS)
    for key, make in (("method", lambda: some(METHODS)), ("path", lambda: [path_pattern() for _ in range(R.randint(1, 2))]),
                      ("effect", lambda: some(["read", "write", "delete"])),
                      ("query", lambda: {R.choice(KEYS): some(VALUES)})):
        if R.random() < 0.35:
            m[key] = make()
    if R.random() < 0.3:
        kind = R.choice(KINDS)
        m[kind] = conditions(kind)
    return m or {"host": some(PATTERNS)}


def rule(i):
    decide = R.choice(["allow", "allow", "hold", "deny"])
    found = match(decide != "deny")
    if decide == "allow" and R.random() < 0.4:  # elsewhere a name more is meant to be another request
        found["query_names"] = sorted({*found.get("query", ()), *R.sample(KEYS, R.randint(0, 2))})
    more = {"approve": {"by": R.choice(list(APPROVERS))}} if decide == "hold" and R.random() < 0.3 else {}
    return {"id": f"r{i}", "match": found, "decide": decide, **more,
            "except": [match(False) for _ in range(R.choice([0, 0, 0, 1, 2]))]}


def limited(r):
    """The same rule, if it lets anything through now and then with limits: nothing may be looser for them."""
    if r["decide"] == "deny" or R.random() < 0.4:
        return r
    m = r["match"]
    if any(kind in m for kind in KINDS[2:]):  # nothing of these is added up
        return {**r, "limits": {"requests": "2/1h"}}
    kind = "field" if "form" in m else "pointer" if "json" in m else R.choice(["field", "pointer"])
    total = {kind: "amount" if kind == "field" else "/amount", "max": R.choice([4, 50]), "every": "1d"}
    return {**r, "limits": R.choice([{"requests": "1/1d"}, {"sum": total}, {"requests": "2/1h", "sum": total}])}


def request():
    q = {"host": R.choice(HOSTS), "method": R.choice(METHODS), **dict.fromkeys(KINDS),
         "path": "/" + "/".join(R.choice(WORDS) for _ in range(R.randint(1, 3))),
         "query": [(R.choice(KEYS), R.choice(VALUES)) for _ in range(R.choice([0, 0, 1]))]}
    if q["method"] in ("POST", "PUT") and R.random() < 0.7:
        kind = R.choice(KINDS if q["method"] == "POST" else KINDS[:3])
        q[kind] = body_of(kind)
    return q


def body_of(kind):
    if kind == "graphql":
        return R.choice(["query", "mutation"]), {n: R.choice(["3", "5", "6", "eur", "7"]) for n in some(ROOTS)}
    body = {}
    if R.random() < 0.8:
        body["amount"] = R.choice(["3", "5", "6", "50", "51", "x", "-2"])
    if R.random() < 0.8:
        body["currency"] = R.choice(["eur", "usd", "gbp", "7"])
    return body if kind in KINDS[:3] else (R.choice(ROOTS), body)


def aimed(rules):
    """A request that a rule is about, if its body is."""
    q, r = request(), R.choice([r for r in rules if any(kind in m for m in [r["match"], *r["except"]] for kind in KINDS)] or rules)
    m = r["match"]
    asked = [kind for x in [m, m, *r["except"]] for kind in KINDS if kind in x]
    q["host"] = R.choice(m.get("host", HOSTS)).replace("**.", "b.").replace("*.", "b.")
    q["path"] = R.choice(m.get("path", [q["path"]])).replace("x-*", "x-y").replace("**", "v1").replace("*", "items")
    q["query"] = [(n, R.choice(v)) for n, v in m.get("query", {}).items()]
    if asked:
        kind = R.choice(asked)
        q.update({**dict.fromkeys(KINDS), "method": "POST", kind: body_of(kind)})
    return q


# ---- spellings ----

def line(q, **over):
    fields, body = "", None
    if q["form"] is not None:
        fields, body = "Content-Type: application/x-www-form-urlencoded\n", urllib.parse.urlencode(q["form"])
    if q["json"] is not None:
        numbers = {k: v if not re.fullmatch(r"0|-?[1-9]\d*", v) or k == "currency" else int(v) for k, v in q["json"].items()}
        fields, body = "Content-Type: application/json\n", json.dumps(numbers)
    if q["multipart"] is not None:
        fields, body = "Content-Type: multipart/form-data; boundary=b1\n", "".join(part(k, v) for k, v in q["multipart"].items()) + "--b1--\r\n"
    if is_document(q):
        fields, body = "Content-Type: application/json\n", json.dumps(document(q))
    query = "&".join(f"{k}={urllib.parse.quote(v)}" for k, v in q["query"])
    parts = {"method": q["method"], "scheme": "https", "host": q["host"], "path": q["path"], "query": query, "fields": fields,
             "body": body, **over}
    url = f"{parts['scheme']}://{parts['host']}{parts['path']}{'?' + parts['query'] if parts['query'] else ''}"
    return [f"vm-{SEED % 9}", parts["method"], url, parts["fields"], parts["body"]]


def part(name, value):
    return f'--b1\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'


def number(v):
    return int(v) if re.fullmatch(r"0|-?[1-9]\d*", v) else v


def document(q):
    if q["graphql"] is not None:
        kind, roots = q["graphql"]
        return {"query": kind + "{" + " ".join(f"{n}(to: {json.dumps(number(v))})" for n, v in roots.items()) + "}"}
    method, params, tool, arguments = message(q)
    if tool is not None:
        params = {"name": tool, "arguments": {k: number(v) for k, v in arguments.items()}}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params if tool else {k: number(v) for k, v in params.items()}}


def documents(q):
    """The same in other words, and in a list of its own. With one more beside it: respell.py."""
    text = json.dumps(document(q))
    yield f"[{text}]"
    yield text.replace("{", "{ ", 1).replace(":", " :", 1)
    if q["graphql"] is None:
        yield from (text.replace('"method"', '"m\\u0065thod"'), text.replace('"method"', '"Method"'),
                    text.replace('"method": "', '"method": "ping", "method": "'), text.replace('"id": 1, ', ""), text.replace("2.0", "2"))
        return
    kind, roots = q["graphql"]
    inner = " ".join(f"{n}(to: {json.dumps(number(v))})" for n, v in roots.items())
    for said in (kind + "{a:" + inner + "}", kind + "{...F} fragment F on T{" + inner + "}", kind + " viewer{...on T{" + inner + "}}",
                 kind + "{" + inner + " @skip(if: true)}"):
        yield json.dumps({"query": said})
    yield json.dumps({"query": document(q)["query"], "id": "x"})


def escape_some(s):
    return "".join(f"%{ord(c):02{R.choice('xX')}}" if c.isalnum() and R.random() < 0.3 else c for c in s)


def swap_case(s):
    return "".join(c.swapcase() if R.random() < 0.4 else c for c in s)


def spellings(q):
    """Ways to write what some server takes for the same request."""
    base = line(q)
    fields, body = base[3], base[4]
    path, host = q["path"], q["host"]
    yield line(q, host=swap_case(host))
    yield line(q, host=host + ":443")
    yield line(q, host=host + ".")
    yield line(q, path=escape_some(path))
    yield line(q, path=swap_case(path))
    for p in (path + "/", "/" + path, path.replace("/", "//", 2), path + ";x=1", "/." + path, "/x/.." + path, path + "/.",
              path.replace("/", "%2f", 2), path.replace("/", "\\", 2), path + "%00"):
        yield line(q, path=p)
    yield line(q, method=swap_case(q["method"]))
    yield line(q, fields=fields + f"X-HTTP-Method-Override: {R.choice(METHODS)}\n")
    yield line(q, query=f"{line(q)[2].partition('?')[2]}&_method={R.choice(METHODS)}")
    for k, v in q["query"]:
        v = urllib.parse.quote_plus(v)
        for s in (f"{k}={v}&{k}=other", f"{k}={v}&{k}={v}", f"{k}=other&{k}={v}", f"{escape_some(k)}={escape_some(v)}", f"{k.upper()}={v}", f"{k}[]={v}",
                  f"{k}={v};z=1", f"z=1&{k}={v}"):
            yield line(q, query=s)
    yield line(q, fields=fields + "User-Agent: kube-probe/1\nX-Internal: 1\nX-Agent-Name: admin\nRange: bytes=0-1\nPrefer: wait=1\n")
    if body is None:
        return
    for f in (fields.replace("Content", "CONTENT"), fields.strip() + "; charset=utf-8\n", fields.strip() + "; charset=utf-7\n",
              fields + fields, "", fields + "Content-Encoding: gzip\n", fields.replace("json", "xml"), fields.upper()):
        yield line(q, fields=f)
    if q["form"] is not None:
        more = [body + "&amount=1", "amount=1&" + body] if "amount" in q["form"] else []
        for b in (*more, body.replace("amount", "amoun%74"), body.replace("amount", "Amount"),
                  body.replace("amount", "amount[]"), body.replace("&", ";"), body + "&", "&".join(reversed(body.split("&"))), body + "\x00"):
            yield line(q, body=b)
    elif q["multipart"] is not None:
        for b in (body + body, "x" + body, body.replace("\r\n", "\n"), body.replace('"amount"', "amount"), body.replace("name=", "Name="),
                  body.replace("b1--", "b1"), body.replace("--b1--", part("amount", "1") + "--b1--") if "amount" in q["multipart"] else body + "x"):
            yield line(q, body=b)
    elif is_document(q):
        for b in documents(q):
            yield line(q, body=b)
    else:
        more = [body.replace("{", '{"amount": 1, ', 1), body.replace("}", ', "amount": 1}')] if "amount" in q["json"] else []
        for b in (*more, body.replace(":", " : "), body.replace('"amount"', '"\\u0061mount"'),
                  body.replace('"amount"', '"Amount"'), re.sub(r"(amount\W+)(-?\d+)\b", r"\1\2.0", body),
                  re.sub(r"(amount\W+)(-?\d+)\b", r"\1\2e0", body), "\ufeff" + body, body + body, "[" + body + "]", body.replace('"', "'")):
            yield line(q, body=b)


# ---- the question ----

def fail(words):
    print("not ok " + words[:20000])
    sys.exit(1)



def ask(policy, lines):
    with tempfile.TemporaryDirectory() as d:
        file = os.path.join(d, "policy.yaml")
        with open(file, "w") as f:
            f.write(policy)
        done = subprocess.run(["tests/policy/judge_lines", file], input="\n".join(map(json.dumps, lines)) + "\n", capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"seed {SEED}: {done.returncode} {done.stderr}\n{policy}")
    return [a.split() for a in done.stdout.splitlines()]


def main():
    counts = {"requests": 0, "spellings": 0, "allow": 0, "hold": 0, "deny": 0, "stricter": 0, "bounded": 0}
    for _ in range(ROUNDS):
        rules = [rule(i) for i in range(R.randint(1, 8))]
        text = {"version": 1, "approvers": APPROVERS, "rules": rules}
        for r in rules:
            if not r["except"]:
                del r["except"]
        policy = json.dumps(text, ensure_ascii=False, indent=1)  # JSON is YAML
        R.shuffle(rules)
        turned = json.dumps({"version": 1, "approvers": APPROVERS, "rules": rules}, ensure_ascii=False, indent=1)
        bounded = json.dumps({"version": 1, "approvers": APPROVERS, "rules": [limited(r) for r in rules]}, ensure_ascii=False, indent=1)
        for r in rules:
            r.setdefault("except", [])
        asked = [aimed(rules) if R.random() < 0.5 else request() for _ in range(25)]
        plain = [line(q) for q in asked]
        answers = ask(policy, plain)
        if [a[:3] for a in answers] != [a[:3] for a in ask(turned, plain)]:
            fail(f"seed {SEED}: the order of rules matters\n{policy}")
        for q, a, b in zip(asked, answers, ask(bounded, plain)):
            counts["bounded"] += ORDER[b[0]] < ORDER[a[0]]
            if ORDER[b[0]] > ORDER[a[0]]:
                fail(f"seed {SEED}: {line(q)}\nis {a}, and with limits {b}\n{bounded}")
        variants = [(i, s) for i, q in enumerate(asked) for s in spellings(q)]
        told = ask(policy, [s for _, s in variants])
        for q, a in zip(asked, answers):
            want = decide(rules, q)
            counts["requests"] += 1
            counts[want] += 1
            # A hold in another spelling outweighs an allow, and what cannot be seen is denied: never looser than said.
            if ORDER[a[0]] > ORDER[want] or (a[0] != want and not excused(rules, q, a)):
                fail(f"seed {SEED}: {line(q)}\nis {want} by the reference, {a} by the gateway\n{policy}")
        for (i, s), a in zip(variants, told):
            counts["spellings"] += 1
            counts["stricter"] += ORDER[a[0]] < ORDER[answers[i][0]]
            if ORDER[a[0]] > ORDER[answers[i][0]] and looser_for_a_reason(rules, asked[i], s, a) is False:
                fail(f"seed {SEED}: {plain[i]} is {answers[i]}\nbut {s}\nis {a}\n{policy}")
    print(f"ok {ROUNDS} policies, seed {SEED}: {counts}")


def excused(rules, q, a):
    """Stricter than the reference only where a body that has another type than the condition leaves it open, or a value
    that is no number where one is asked for, a name of a condition stands in the query too, or holds ask different people."""
    body = next((kind for kind in KINDS if q[kind] is not None), None)
    others = [kind for kind in KINDS if kind != body] if body else ["graphql", "jsonrpc", "mcp"]
    if a[1] == "ambiguous-approvers":  # two holds that ask different people
        return len({r["approve"]["by"] for r in rules if "approve" in r}) > 1
    twice = "amount" in dict(q["query"])
    numbers = [] if body is None else list(q[body][1].values()) if isinstance(q[body], tuple) else [q[body].get("amount", "0")]
    no_number = any(not re.fullmatch(r"0|-?[1-9]\d*", n) for n in numbers)
    return a[1] == "unclassified" and any(
        any(kind in m for kind in [*others, *(["json"] if is_document(q) else [])]) or twice and any(kind in m for kind in KINDS) or
        no_number and "int_lte" in json.dumps(m.get(body, ()))
        for r in rules for m in [r["match"], *r["except"]])


def looser_for_a_reason(rules, q, s, a):
    """A spelling that is another request by the letter (another path, a field more) may meet a rule of its own: then the
    reference, asked about just these letters, must say so too."""
    url = urllib.parse.urlsplit(s[2])
    body = s[4]
    again = {**q, "method": s[1], "path": url.path, "host": url.hostname.rstrip("."),
             "query": urllib.parse.parse_qsl(url.query, keep_blank_values=True)}
    if body is not None and q["form"] is not None:
        again["form"] = dict(urllib.parse.parse_qsl(body, keep_blank_values=True))
    if body is not None and q["json"] is not None:
        try:
            again["json"] = {k: str(v) for k, v in json.loads(body).items()}
        except (ValueError, AttributeError):
            return False
    stops = [r for r in rules if r["decide"] != "allow" and ORDER[r["decide"]] < ORDER[a[0]]]
    stops = [r for r in stops if fits(r["match"], q) and not any(fits(x, q) for x in r["except"])]
    if not all(any(fits(x, again) for x in r["except"]) for r in stops):
        return False  # what stopped it as it was first written stops it in every spelling
    return ORDER[a[0]] <= ORDER[decide(rules, again)]


if __name__ == "__main__":
    main()
