#!/usr/bin/env python3
"""Mutations of GraphQL that look like something else (attacks.tsv B24 to B29, B31): where only queries pass, none of them does."""
import json
import urllib.parse

import room  # noqa: F401
from attack import everywhere, wide
from harness import main, test  # noqa: F401

READ, DROP = "{ok}", "mutation{drop}"
PATH = "/w/graphql"


def say(query, **more):
    return json.dumps({"query": query, **more})


def both(*pairs):
    """Members as they stand, also twice."""
    return "{" + ",".join(f"{json.dumps(k)}:{json.dumps(v)}" for k, v in pairs) + "}"


def get(**params):
    return "?" + urllib.parse.urlencode(params, quote_via=urllib.parse.quote)


AB = "query A{ok} mutation B{drop}"
FORM, RAW, PARTS = "application/x-www-form-urlencoded", "application/graphql", "multipart/form-data; boundary=x"
HASH = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def part(name, text):
    return f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'


# id: what is stopped, and what passes: (body or None for a GET, what follows the path, media type)
STOPPED = {
    "B24": [say(AB, operationName=name) for name in ("A", "B", "C", "", "a", 1, ["A"])] + [
        say(AB), say(AB, operationName=None), both(("query", AB), ("operationName", "A"), ("operationName", "B")), both(("query", AB), ("operationName", "A"), ("OperationName", "B")),
        (say(AB, operationName="A"), get(operationName="B")), (say(AB), get(operationName="A")), say("query A{ok} query B{ok}"), say("query A{ok} query A{ok}", operationName="A"),
        say("{ok} " + DROP), say("query A{ok}", operationName="B")],
    "B25": [say(text) for text in ("#{ok}\n" + DROP, "#\r" + DROP, ",,,\t" + DROP, "\ufeff" + DROP, "fragment F on M{drop} mutation{...F}", "fragment query on M{drop} mutation{...query}",
                                   "{ok(s:\"\"\"\\\"\"\"\"\"\")} " + DROP, "mutation query{drop}", "mutation A @query {drop}", "#\u2028" + DROP + "\n{ok}", "mutation($q:S=\"query {ok}\"){drop}",
                                   "{ok(s:\"\\\"\")} mutation{drop}", "mutation{query:drop}", "MUTATION{drop}", "{a:#\rb\nmutation#\r\n{drop}}",  "\\u006dutation{drop}", "{ok", "{ok}}" + DROP, "")],
    "B26": [f"[{say(READ)},{say(DROP)}]", f"[{say(DROP)},{say(READ)}]", f"[[{say(READ)}]]", f"[[{say(DROP)}]]", "[]", f"[{say(READ)},[]]", f"[{say(READ)},null]", f"[{say(DROP)}]",
            "[" + ",".join([say(READ)] * 10000) + "]", f"{say(READ)}{say(DROP)}", f"{say(READ)}\n{say(DROP)}"],
    "B27": [(None, get(query=DROP)), (None, get(query=READ) + "&" + get(query=DROP)[1:]), (None, get(query=READ) + ";query=" + urllib.parse.quote(DROP)), (None, get(query="query A{ok} mutation B{drop}", operationName="A")),
            (None, get(query=READ, Query=DROP)), (None, get(query=READ, x="1")), (None, get(mutation="{drop}")), (None, get(operations=say(DROP))), (say(READ), get(mutation="{drop}")), (say(READ), get(query=DROP)), (say(READ), get(query=READ)), (say(DROP), get(query=READ)),
            (DROP, "", RAW), (READ, get(operationName="x"), RAW), (say(READ), "", RAW), ("query=" + DROP, "", FORM), ("query=" + READ, "", FORM), (say(READ), "", "text/plain"),
            (say(READ), "", "application/json; charset=utf-16"), (say(READ), "", "text/json"), (READ, "", "application/json"), (json.dumps(READ), "", "application/json")],
    "B28": [json.dumps({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": HASH}}}), say(READ, extensions={"persistedQuery": {"version": 1, "sha256Hash": HASH}}),
            say(READ, extensions={"PersistedQuery": {"sha256Hash": HASH}}), *(json.dumps({name: HASH}) for name in ("id", "documentId", "doc_id", "queryId", "operationId")),
            *(say(READ, **{name: HASH}) for name in ("id", "documentId", "doc_id", "queryId", "operationId", "hash")), json.dumps({"id": HASH, "documentId": HASH}), json.dumps({"variables": {}}),
            (None, get(documentId=HASH)), *((None, get(**{name: HASH})) for name in ("docId", "hash", "sha256Hash", "persistedQuery")), (None, get(extensions=json.dumps({"persistedQuery": {"sha256Hash": HASH}}))), (None, get(query=READ, id=HASH))],
    "B29": [(part("operations", say(READ)) + part("map", "{}") + "--x--\r\n", "", PARTS), (part("map", '{"0": ["query"]}') + part("operations", say(READ)) + part("0", DROP) + "--x--\r\n", "", PARTS),
            (part("operations", say(READ)) + part("operations", say(DROP)) + "--x--\r\n", "", PARTS), (part("0", "x") + part("operations", say(DROP)) + "--x--\r\n", "", PARTS)],
    "B31": [say(text) for text in ("{deleteUser}", "{ok x:deleteUser}", "{...F} fragment F on Q{ok ...on Q{deleteUser}}", "{ok deleteUser@skip(if:true)}", "query($a:Boolean=false){deleteUser@include(if:$a)}",
                                   "{DeleteUser}", "{removal(of:\"all\")}", "query($o:O=all){removal(of:$o)}", "{a:removal(of:none) b:removal(of:all)}", "{removal(of:\"\\u0061ll\")}", "{removal(of:[all])}")]
           + [say("query($o:O){removal(of:$o)}", variables={"o": "none", "O": "all"}), say("{Removal(of:all)}"), say("{removal(of:\"\"\"all\r\"\"\")}"),
              say("query($o:O){removal(of:$o)}", variables={"o": "all"}), say("query($i:I){removal(of:$i)}", variables={"i": ["all"]})],
}
PASSED = {
    "B24": [say("query A{ok} query B{ok}", operationName="B"), say("query A{ok}", operationName="A", variables=None)],
    "B25": [say("{mutation drop:ok}"), say("query mutation{ok}"), say("{ok(s:\"mutation{drop}\")}"), say("{ok(s:\"\"\"\n}\nmutation{drop}\"\"\")}"), say("#mutation\n{ok}"),
            say("{...mutation} fragment mutation on Q{ok}"), say("{ok(s:\"\\u007d mutation\")}")],
    "B26": [f"[{say(READ)},{say(READ)}]", f"[{say(READ)}]"],
    "B27": [(None, get(query=READ)), (None, get(query="query($a:A){ok(a:$a)}", variables='{"a":1}')), (READ, "", RAW), (say(READ), "?x=1")],
    "B28": [say(READ, extensions={"clientLibrary": {"name": "x"}}), say(READ, extensions=None)],
    "B29": [],
    "B31": [say("{ok(deleteUser:1){deleteUser}}"), say("{deleteUser:ok}"), say("query($o:O=none){removal(of:$o)}"), say("{__schema{types{name}}}")],
}
RULES = [("queries: path: /w/graphql, graphql: { type: [mutation, subscription] }", "deny"), ("fields: path: /w/graphql, graphql: { fields: \"delete*\" }", "deny"),
         ("arguments: path: /w/graphql, graphql: { arguments: [{ pointer: /removal/of, equals: all }] }", "deny")]


def ask(rig, transport, case, n):
    body, more, kind = case if isinstance(case, tuple) and len(case) == 3 else (*case, "application/json") if isinstance(case, tuple) else (case, "", "application/json")
    data = (body or "").encode()
    head = ["GET", PATH + more] if body is None else ["POST", PATH + more, f"Content-Type: {kind}", f"Content-Length: {len(data)}"]
    wire = rig.open(transport, split=("bytes", 7)[n % 2]) if n % 5 == 4 and len(data) < 1000 else rig.open(transport)
    got = wire.talk(wire.head(*head) + data, 1)
    wire.close()
    return got, (head[0], head[1], data)


@everywhere(list(STOPPED), more=lambda up: wide(up, RULES))
def what_may_be_a_mutation_is_stopped(rig, transport, case):
    for n, what in enumerate(STOPPED[case]):
        got, _ = ask(rig, transport, what, n)
        rig.refused(f"{case} {str(what)[:200]}", got, closed=False, status=403)
    for n, what in enumerate(PASSED[case]):
        got, arrives = ask(rig, transport, what, n)
        rig.passed(f"{case} {what}", got, [arrives])


if __name__ == "__main__":
    main()
