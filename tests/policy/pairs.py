"""Random small policies over the whole grammar, a second one that differs by an edit or by nothing that counts, and
requests at the edges of both. Everything comes of the random.Random that is given. For diff_random.py."""
import copy
import json

HOSTS = ["a.test", "b.a.test", "c.b.a.test", "d.test", "github.com", "reg.test", "other.example"]
PATTERNS = ["a.test", "b.a.test", "*.a.test", "**.a.test", "d.test", "github.com", "reg.test"]
METHODS = ["GET", "POST", "PUT", "DELETE", "HEAD", "PURGE"]
WORDS = ["v1", "items", "Admin", "x-y", "42"]
PATHS = ["/", "/v1", "/v1/*", "/v1/**", "/**", "/*/items", "/**/items", "/v1/x-*", "/Admin", "/v1/items/", "/acme/**", "/**/42/**",
         "/v1/i*s", "/a%20b", "/*/git-receive-pack", "/acme/app/info/refs"]
KEYS = ["mode", "Q", "amount"]
VALUES = ["on", "off", "o*", "*", "A b", "5", "*x*"]
HEADERS = {"Accept": ["application/json", "text/*", "*"], "X-Env": ["prod", "test", "p*"],
           "Content-Type": ["application/json", "application/*", "application/vnd.x+json", "text/plain",
                            "application/x-www-form-urlencoded"]}
OPS = ["git.push", "git.fetch", "git.fetch.refs", "git.**", "npm.publish", "npm.**", "npm.metadata", "http.get", "http.post", "http.*",
       "**", "http.override", "git.push*"]
RESOURCES = ["github:acme/*", "github:acme/app", "github:*/app", "npm:@acme/*", "npm:left", "npm:*", "git:d.test/acme/*", "git:d.test/**",
             "git:*/acme/**", "npm:@*/x"]
REFS = ["refs/heads/main", "refs/heads/*", "refs/heads/**", "refs/tags/*", "refs/heads/agent/*", "refs/**", "refs/heads/m*"]
POINTERS = ["/amount", "/currency", "/a/b", "/a", "/items/0"]
KINDS = ["json", "form", "multipart", "graphql", "jsonrpc", "mcp"]
ROOTS = ["viewer", "addItem", "drop"]  # of GraphQL; each may have the argument "to"
CALLED = ["ask", "pay", "pay_all", "tools/call", "tools/list", "ping"]  # methods and tools
SANDBOXES = ["ci-1", "ci-2", "dev", "sandbox"]
EFFECTS = ["read", "write", "delete", "admin"]
IDS = {"0": "0" * 40, "a": "a" * 40, "b": "b" * 40}


def some(r, v, most=2):
    return r.sample(v, r.randint(1, min(most, len(v))))


# ---- policies ----

def conditions(r, kind):
    if kind == "graphql":
        whole = {"type": r.choice(["query", "mutation"]), "fields": some(r, [*ROOTS, "d*"]),
                 "arguments": conditions_at(r, "pointer", [f"/{name}/to" for name in ROOTS])}
        asks = {k: whole[k] for k in some(r, list(whole), 3)}
        if "fields" in asks:
            asks["fields"] = sorted({*asks["fields"], *(c["pointer"].split("/")[1] for c in asks.get("arguments", ()))})
        return asks
    if kind == "jsonrpc":
        whole = {"method": some(r, [*CALLED, "pay*"]), "params": conditions_at(r, "pointer", POINTERS[:4])}
        return {k: whole[k] for k in some(r, list(whole))}
    if kind == "mcp":
        whole = {"tool": some(r, ["ask", "pay", "pay*"]), "arguments": conditions_at(r, "pointer", POINTERS[:4])}
        return r.choice([{"method": some(r, ["tools/*", "ping", "tools/list"])}, {k: whole[k] for k in some(r, list(whole))}])
    return conditions_at(r, *(("pointer", POINTERS) if kind == "json" else ("field", ["amount", "currency", "Mode"])))


def conditions_at(r, name, keys):
    out = []
    for key in some(r, keys):
        asks = r.choice([{"int_lte": r.choice([0, 5, 50])}, {"int_gte": r.choice([1, 6])}, {"in": some(r, ["eur", "usd", "5", "true"])},
                         {"equals": r.choice(["eur", "null", "5", "o*"])}, {"glob": some(r, ["e*", "*r", "5"])}, {"exists": True},
                         {"absent": True}])
        out.append({name: key, **asks})
    return out


def make_key(r, key, packs):
    git = any("git" in json.dumps(p) for p in packs)
    ops = [o for o in OPS if o.startswith("http") or o == "**" or (git if o.startswith("git") else len(packs) > git)]
    return {"host": lambda: some(r, PATTERNS), "scheme": lambda: r.choice(["http", "https", ["http", "https"]]),
            "port": lambda: some(r, [443, 80, 8443, 4873]), "method": lambda: some(r, METHODS), "path": lambda: some(r, PATHS),
            "query": lambda: {k: some(r, VALUES, 3) for k in some(r, KEYS)}, "query_names": lambda: r.sample(KEYS, r.randint(0, 2)),
            "header": lambda: {k: some(r, HEADERS[k]) for k in some(r, list(HEADERS))}, "op": lambda: some(r, ops),
            "effect": lambda: some(r, EFFECTS), "resource": lambda: some(r, RESOURCES),
            "git": lambda: r.choice([{"refs": some(r, REFS)}, {"refs": some(r, REFS), "force": r.choice([True, False])},
                                     {"delete": r.choice([True, False])}, {"service": r.choice(["upload-pack", "receive-pack"])}]),
            "ws": lambda: r.choice([{}, {"subprotocol": some(r, ["chat", "ch*", "other"])}]),
            **{kind: lambda kind=kind: conditions(r, kind) for kind in KINDS}}[key]()


RARE = ["scheme", "port", "ws", "git", "op", "resource", "header", "query_names"]


def match(r, packs, needs_host):
    m = {"host": make_key(r, "host", packs)} if needs_host or r.random() < .3 else {}
    keys = [k for k in ("method", "path", "effect", "query") if r.random() < .3]
    keys += [k for k in RARE if r.random() < .09]
    keys += [r.choice(KINDS)] if r.random() < .25 else []
    for k in keys:
        if k in ("git", "resource") and not packs or k == "git" and not any("git" in json.dumps(p) for p in packs):
            continue
        m[k] = make_key(r, k, packs)
    if "query" in m and "query_names" in m:
        m["query_names"] = sorted({*m["query_names"], *m["query"]})
    if r.random() < .2 and packs:  # a whole push, or a package
        m = {k: v for k, v in m.items() if k in ("git", "resource")}
        m["op"] = make_key(r, "op", packs)
        m["host"] = r.choice([["d.test"], ["github.com"], ["reg.test"]])
    return m or {"host": make_key(r, "host", packs)}


def window(r):
    w = {"zone": r.choice(["UTC", "Europe/Berlin"])}
    if r.random() < .6:
        w["days"] = some(r, ["mon-fri", "sat", "sun-mon"])
    if r.random() < .8 or len(w) == 1:
        w["hours"] = some(r, ["08:00-18:00", "22:00-06:00", "00:00-12:00"])
    return w


def limits(r):
    total = {r.choice(["field", "pointer"]): "amount", "max": r.choice([4, 50]), "every": r.choice(["1h", "1d"])}
    if "pointer" in total:
        total["pointer"] = "/amount"
    out = r.choice([{"requests": r.choice(["1/1d", "5/1h", ["5/1h", "20/1d"]])}, {"sum": total}, {"requests": "2/1h", "sum": total}])
    return {**out, **({"per": r.choice(["all", "sandbox", "session"])} if r.random() < .3 else {})}


def terms(r, rule, p):
    """What comes of a rule beside its verdict."""
    for k in ("use", "approve", "limits", "over", "messages"):
        rule.pop(k, None)
    if rule["decide"] == "deny":
        return rule
    if r.random() < .3:
        rule["use"] = r.choice(list(p["credentials"]))
    if "ws" in rule["match"] and r.random() < .7:
        rule["messages"] = {"send": r.choice(["text", "binary"]), "max": r.choice(["16KiB", "1KiB"])}
    if r.random() < .2:
        rule["limits"] = limits(r)
        if any(kind in rule["match"] for kind in KINDS[2:]):  # nothing of these is added up
            rule["limits"] = {**{k: v for k, v in rule["limits"].items() if k == "per"}, "requests": "2/1h"}
    if rule["decide"] == "hold" and r.random() < .5:
        rule["approve"] = {k: v for k, v in (("by", r.choice(list(p["approvers"]))), ("within", r.choice(["5m", "1h"])),
                                             ("reason", "required")) if r.random() < .6} or {"within": "2m"}
    return rule


def rule(r, p, i, floor=False):
    decide = "deny" if floor else r.choice(["allow", "allow", "allow", "hold", "hold", "deny"])
    out = {"id": f"r{i}", "match": match(r, p.get("packs", []), decide != "deny"), "decide": decide}
    excepts = [match(r, p.get("packs", []), False) for _ in range(r.choice([0, 0, 0, 1, 1, 2]))]
    if excepts:
        out["except"] = excepts
    if r.random() < .2:
        out["scope"] = some(r, list(p["scopes"]))
    if r.random() < .12 and not floor:
        out["when"] = window(r)
    return terms(r, out, p)


def credentials(r):
    where = [{"host": "a.test"}, {"host": "a.test", "path": "/v1/**"}, {"host": "d.test"}, {"host": "github.com", "path": "/acme/**"},
             {"host": "b.a.test", "port": 8443}, {"host": "a.test", "scheme": "http"}, {"host": "reg.test", "port": 4873}]
    return {n: {"source": {"store": n}, "inject": {"header": "Authorization", "format": "Bearer {}"}, "only": some(r, where, 4)}
            for n in ("k1", "k2")}


def scope(r):
    out = r.choice([{"sandboxes": some(r, ["ci-*", "dev", "ci-1", "*"])}, {"labels": {"team": some(r, ["ops", "web", "w*"])}},
                    {"labels": {"team": some(r, ["ops", "web"]), "env": ["prod"]}}])
    return {**out, **({"regions": some(r, ["eu", "us"])} if r.random() < .15 else {})}


def policy(r):
    packs = r.choice([[], [], ["git@1"], ["git@1", {"pack": "npm@1", "hosts": ["reg.test:4873", "reg.test"]}],
                      [{"pack": "npm@1", "hosts": ["reg.test"]}]])
    p = {"version": 1, "packs": packs, "scopes": {"s1": scope(r), "s2": scope(r)}, "credentials": credentials(r),
         "approvers": {"ann": {"operators": ["uid 1"]}, "ben": {"operators": r.choice([["uid 1"], ["uid 1", "uid 2"], ["uid 2"]])}}}
    if not packs:
        del p["packs"]
    if r.random() < .4:
        p["upstreams"] = [{"host": h, "port": r.choice([443, 80, 8443]), **r.choice([{"region": "eu"}, {"region": "us"}, {},
                           {"cleartext_credentials": True}])} for h in some(r, ["a.test", "d.test", "b.a.test"])]
    p["rules"] = [rule(r, p, i) for i in range(r.randint(1, 5))]
    overs(r, p)
    return p


def overs(r, p):
    """over: where it may stand."""
    holds = [x["id"] for x in p["rules"] if x["decide"] == "hold"]
    for x in p["rules"]:
        if x.get("over") not in holds or "limits" not in x or x["decide"] != "allow":
            x.pop("over", None)
            if x["decide"] == "allow" and "limits" in x and holds and r.random() < .5:
                x["over"] = r.choice(holds)


# ---- a second one ----

def alter_match(r, m, packs):
    key = r.choice(list(m))
    if len(m) > 1 and key != "host" and r.random() < .3:
        del m[key]
    elif r.random() < .3:
        key = r.choice(["method", "path", "query", "effect", *RARE])
        if key not in ("git", "resource") or packs:
            m[key] = make_key(r, key, packs)
    elif isinstance(m[key], list) and len(m[key]) > 1 and r.random() < .5:
        m[key].pop(r.randrange(len(m[key])))
    else:
        m[key] = make_key(r, key, packs)


def edit(r, p):
    packs, rules = p.get("packs", []), p["rules"]
    x = r.choice(rules)
    what = r.randrange(12)
    if what == 0:
        rules.append(rule(r, p, len(rules) + 10))
    elif what == 1 and len(rules) > 1:
        rules.remove(x)
    elif what in (2, 3, 4):
        alter_match(r, x["match"], packs)
    elif what == 5:
        x["decide"] = r.choice([d for d in ("allow", "hold", "deny") if d != x["decide"]])
        terms(r, x, p)
    elif what == 6 and x.get("except"):
        x["except"].remove(r.choice(x["except"]))
        if not x["except"]:
            del x["except"]
    elif what == 7:
        x.setdefault("except", []).append(match(r, packs, False))
    elif what == 8 and x.get("except"):
        alter_match(r, r.choice(x["except"]), packs)
    elif what == 9:
        terms(r, x, p)
    elif what == 10:
        x.pop("scope" if r.random() < .5 else "when", None) or x.update({"scope": some(r, list(p["scopes"]))})
    else:
        part = r.choice(["scopes", "credentials", "approvers", "packs", "upstreams"])
        fresh = policy(r).get(part)
        if fresh is None:
            p.pop(part, None)
        else:
            p[part] = fresh


def edited(r, p):
    q = copy.deepcopy(p)
    for _ in range(r.choice([1, 1, 1, 2, 3])):
        edit(r, q)
    overs(r, q)
    return q


def turned(r, v, key=""):
    """The same in another order."""
    if isinstance(v, dict):
        items = list(v.items())
        r.shuffle(items)
        return {k: turned(r, x, k) for k, x in items}
    if isinstance(v, list):
        return r.sample([turned(r, x, key) for x in v], len(v))
    return v


def plain(s):
    return json.dumps(s, ensure_ascii=False)


def block(r, v, indent=0):
    """YAML in blocks, with comments and other quotes."""
    pad, out = " " * indent, []
    note = lambda: r.choice(["", "", "  # " + r.choice(["why", "nobody knows", "allow: everything"])])
    for k, x in v.items() if isinstance(v, dict) else enumerate(v):
        head = f"{pad}{k}:" if isinstance(v, dict) else f"{pad}-"
        if isinstance(x, (dict, list)) and x and r.random() < .8:
            out += [head + note(), block(r, x, indent + 2)]
        else:
            text = plain(x) if not isinstance(x, str) or "'" in x or r.random() < .5 else "'" + x + "'"
            out.append(f"{head} {text}{note()}")
        out += [pad + "# or not"] if r.random() < .05 else []
    return "\n".join(out)


def same(r, p):
    """Says the same: in another order, in another form, with other names."""
    q = turned(r, p)
    if r.random() < .5:
        q = renamed(q)
    return q, block(r, q) + "\n"


def renamed(p):
    text = json.dumps(p)
    for old, new in (('"ann"', '"nan"'), ('"s1"', '"first"'), ('"s2"', '"other"')):
        text = text.replace(old, new)
    return json.loads(text)


# ---- requests ----

def word(r):
    return r.choice(WORDS)


def from_glob(r, g):
    parts = []
    for part in g.strip("/").split("/"):
        if part == "**":
            parts += [word(r) for _ in range(r.choice([0, 1, 2]))]
        else:
            parts.append(part.replace("*", r.choice(["q", "zz", word(r)])))
    return "/" + "/".join(parts) + ("/" if g.endswith("/") and parts and parts[-1] else "")


def from_host(r, p):
    return p.replace("**.", r.choice(["m.", "m.n."])).replace("*.", r.choice(["b.", "m."]))


def value_of(r, globs):
    return r.choice(globs).replace("*", r.choice(["", "x", "on", "zz"]))


def fresh(r):
    return {"sandbox": r.choice(SANDBOXES), "labels": {k: v for k, v in (("team", r.choice(["ops", "web", "x"])), ("env", "prod"))
                                                       if r.random() < .5},
            "method": r.choice(METHODS), "scheme": "https", "host": r.choice(HOSTS), "port": 0, "path": from_glob(r, r.choice(PATHS)),
            "query": [], "fields": [], "body": None, "ws": False, "days": r.randrange(14), "minute": r.randrange(1440)}


def push(r, q, refs):
    q.update(method="POST", query=[], path=r.choice(["/acme/app", "/acme/app.git", "/x/y"]) + "/git-receive-pack",
             fields=[("Content-Type", "application/x-git-receive-pack-request")])
    old, new = r.choice(["0a", "ab", "a0"])
    name = from_glob(r, r.choice(refs))[1:]
    text = f"{IDS[old]} {IDS[new]} {name}\0 report-status-v2 side-band-64k object-format=sha1"
    q["body"] = f"{len(text) + 4:04x}{text}0000" + ("PACK" if new != "0" else "")


def by_pack(r, q, m):
    op, what = r.choice(m.get("op", ["git.push", "git.fetch", "npm.publish"])), r.choice(m.get("resource", ["github:acme/app"]))
    if op.startswith("npm") or what.startswith("npm"):
        name = r.choice(["left", "@acme%2Fx", "@acme/x", what[4:].replace("**", "q").replace("*", "q").replace("/", "%2F")])
        q.update(method=r.choice(["GET", "PUT", "DELETE"]), host="reg.test", path="/" + name, port=r.choice([0, 4873]))
        return
    where = from_glob(r, "/" + what.partition(":")[2]) if ":" in what else "/acme/app"
    if what.startswith("git:"):
        host, _, rest = where[1:].partition("/")
        q["host"], where = r.choice([q["host"], host]), "/" + rest
    elif "resource" in m:
        q["host"] = "github.com"
    if "push" in op or r.random() < .4:
        push(r, q, m.get("git", {}).get("refs", REFS))
        q["path"] = where + "/git-receive-pack" if r.random() < .7 else q["path"]
    elif r.random() < .5:
        q.update(method="GET", path=where + "/info/refs", query=[("service", r.choice(["git-upload-pack", "git-receive-pack"]))])
    else:
        q.update(method="POST", path=where + "/git-upload-pack", body="x", fields=[("Content-Type", "application/x-git-upload-pack-request")])


def values_for(r, asked, name):
    """Values at the edges of these conditions, by what the conditions name."""
    values = {}
    for c in asked:
        n = c.get("int_lte", c.get("int_gte"))
        value = n + r.choice([-1, 0, 1]) if n is not None else value_of(r, c.get("in") or c.get("glob") or [c.get("equals", "v")])
        if not c.get("absent") or r.random() < .2:
            values[c[name]] = value
    return values


def document(r, values):
    doc = {}
    for pointer, value in values.items():
        at, parts = doc, pointer[1:].split("/")
        for part in parts[:-1]:
            at = at.setdefault(part, {}) if isinstance(at.get(part, {}), dict) else {}
        at[parts[-1]] = {"true": True, "null": None}.get(value, value) if r.random() < .5 else \
            int(value) if str(value).isdigit() and r.random() < .5 else value
    return doc


def operation(r, asks):
    """A document of GraphQL that may be what these ask about."""
    to = values_for(r, asks.get("arguments", ()), "pointer")
    names = {p.split("/")[1] for p in to} | {value_of(r, asks["fields"]) or "x"} if "fields" in asks else {p.split("/")[1] for p in to}
    names |= {r.choice(ROOTS)} if not names or r.random() < .3 else set()
    roots = [name + (f"(to: {json.dumps(to[f'/{name}/to'])})" if f"/{name}/to" in to else "") for name in sorted(names)]
    return {"query": asks.get("type", r.choice(["query", "mutation"])) + " { " + " ".join(roots) + " }"}


def message(r, kind, asks):
    """One of JSON-RPC, perhaps a call of a tool."""
    params = document(r, values_for(r, asks.get("params", asks.get("arguments", ())), "pointer"))
    method = value_of(r, asks["method"]) if "method" in asks else r.choice(CALLED) if kind == "jsonrpc" else "tools/call"
    if kind == "mcp" and method == "tools/call":
        params = {"name": value_of(r, asks["tool"]) if "tool" in asks else r.choice(CALLED[:3]), "arguments": params}
    return {"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params else {})}


def body_of(r, q, m):
    kind = next(k for k in KINDS if k in m)
    q["method"] = q["method"] if q["method"] != "GET" else "POST"
    if kind in ("graphql", "jsonrpc", "mcp"):
        q["method"] = q["method"] if r.random() < .1 else "POST"
        doc = operation(r, m[kind]) if kind == "graphql" else message(r, kind, m[kind])
        q["body"] = json.dumps([doc] * r.choice([1, 2]) if r.random() < .1 else doc)
    elif kind == "json":
        q["body"] = json.dumps(document(r, values_for(r, m[kind], "pointer")))
    else:
        values = values_for(r, m[kind], "field")
        pairs = list(values.items())
        if r.random() < .2 and values:
            pairs += [(r.choice(list(values)), r.choice(["eur", "1", "zz"]))]
        media = "application/x-www-form-urlencoded"
        if kind == "form":
            q["form"] = pairs
        else:
            media = "multipart/form-data; boundary=b1"
            q["body"] = "".join(f'--b1\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in pairs) + "--b1--\r\n"
        q["fields"] = [f for f in q["fields"] if f[0] != "Content-Type"] + [("Content-Type", media)]
        return
    types = [f for f in q["fields"] if f[0] == "Content-Type"]
    q["fields"] += [] if types else [("Content-Type", "application/json")]


def fitting(r, m):
    """A request that the match may be about."""
    q = fresh(r)
    if "host" in m:
        q["host"] = from_host(r, r.choice(m["host"]))
    if "method" in m:
        q["method"] = r.choice(m["method"])
    if "effect" in m and "method" not in m:
        q["method"] = {"read": "GET", "delete": "DELETE"}.get(r.choice(m["effect"]), "POST")
    if "path" in m:
        q["path"] = from_glob(r, r.choice(m["path"]))
    if "scheme" in m:
        q["scheme"] = r.choice([m["scheme"]] if isinstance(m["scheme"], str) else m["scheme"])
    if "port" in m:
        q["port"] = r.choice(m["port"])
    q["query"] = [(k, value_of(r, v)) for k, v in m.get("query", {}).items()]
    q["query"] += [(k, "on") for k in m.get("query_names", []) if k not in m.get("query", {}) and r.random() < .5]
    q["fields"] = [(k, value_of(r, v)) for k, v in m.get("header", {}).items()]
    if "op" in m and "http" not in m["op"][0] or "resource" in m or "git" in m:
        by_pack(r, q, m)
    if any(kind in m for kind in KINDS):
        body_of(r, q, m)
    if "ws" in m:
        q.update(ws=True, method="GET", body=None)
        q.pop("form", None)
        q["fields"] += [("Sec-WebSocket-Protocol", value_of(r, m["ws"]["subprotocol"]))] if "subprotocol" in m["ws"] else []
    return q


def nudge(r, q):
    """One step to the side."""
    what = r.randrange(14)
    if what == 0:
        q["path"] = r.choice([q["path"] + "/", q["path"].upper(), q["path"] + "/more", q["path"].rstrip("/") or "/"])
    elif what == 1:
        q["method"] = r.choice(METHODS)
    elif what == 2:
        q["host"] = r.choice(HOSTS)
    elif what == 3 and q["query"]:
        k, v = r.choice(q["query"])
        q["query"] = r.choice([[], [(k, v.upper())], [(k.upper(), v)], [(k, v), (k, r.choice(["on", "zz", "off"]))], [(k, "zz")]])
    elif what == 4:
        q["query"] = q["query"] + [(r.choice(["other", *KEYS]), r.choice(["on", "zz"]))] if len(q["query"]) < 2 else q["query"]
    elif what == 5 and q["fields"]:
        k, v = r.choice(q["fields"])
        q["fields"] = [f for f in q["fields"] if f[0] != k] + r.choice([[], [(k, v.upper())], [(k, "zz/zz")]])
    elif what == 6:
        q.update(scheme=r.choice(["http", "https"]), port=r.choice([0, 0, 443, 80, 8443, 4873]))
    elif what == 7:
        q["sandbox"] = r.choice(SANDBOXES)
    elif what == 8:
        q["minute"], q["days"] = r.choice([0, 359, 360, 479, 480, 720, 1080, 1320]), r.randrange(14)
    elif what == 9 and q["body"] and r.random() < .5:
        q["body"] = q["body"].replace("eur", r.choice(["EUR", "usd"]))
    elif what == 10:
        q["fields"] = q["fields"] + [("X-HTTP-Method-Override", r.choice(["DELETE", "GET"]))] if r.random() < .4 else q["fields"]
    return q


def line(q, monday):
    """As judge_lines takes it."""
    esc = lambda s: "".join(c if c.isascii() and c.isalnum() or c in "-._~" else "".join(f"%{b:02X}" for b in c.encode()) for c in str(s))
    pairs = lambda v: "&".join(f"{esc(k)}={esc(x)}" for k, x in v)
    scheme = q["scheme"].replace("http", "ws") if q["ws"] else q["scheme"]
    url = f"{scheme}://{q['host']}{':%d' % q['port'] if q['port'] else ''}{q['path']}{'?' + pairs(q['query']) if q['query'] else ''}"
    body = None if q["ws"] else pairs(q["form"]) if "form" in q else q["body"]
    return [q["sandbox"], "GET" if q["ws"] else q["method"], url, "".join(f"{k}: {v}\n" for k, v in q["fields"]), body,
            "".join(f"{k}: {v}\n" for k, v in q["labels"].items()), str(monday + q["days"] * 86400 + q["minute"] * 60)]


def requests(r, old, new, n):
    for _ in range(n):
        x = r.choice(r.choice([old, new])["rules"])
        q = fitting(r, r.choice([x["match"], x["match"], {**x["match"], **r.choice(x.get("except") or [{}])}]))
        for _ in range(r.choice([0, 0, 1, 1, 2])):
            q = nudge(r, q)
        yield q
