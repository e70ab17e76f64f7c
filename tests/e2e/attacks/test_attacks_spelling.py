#!/usr/bin/env python3
"""One request in many spellings (attacks.tsv B10, B11, B60 to B63): beside a wider allow, what is denied or held is so in each."""
import room  # noqa: F401
from attack import everywhere, wide
from harness import main, test  # noqa: F401


def post(rig, transport, path, *fields, body=b"x", split=None):
    wire = rig.open(transport, split=split) if split else rig.open(transport)
    got = wire.talk(wire.head("POST", path, *fields, f"Content-Length: {len(body)}") + body, 1)
    wire.close()
    return got


def stopped(rig, what, got, held):
    if held:
        rig.held(what, got)
    else:
        rig.refused(what, got, closed=False, status=403)


RESERVED = ":@+!$&'()*,;="


def escapes(c):
    return {f"%{ord(c):02X}", f"%{ord(c):02x}"}


@everywhere("B60", more=lambda up: wide(up, [(f"deny{n}: path: \"/w/projects/*{c if c not in '*;' else 'x'}setIamPolicy\"", "deny") for n, c in enumerate(RESERVED)]
                                        + [("hold: path: /w/teams/@core/members", "hold")]))
def an_escape_of_a_reserved_character_changes_nothing(rig, transport):
    for n, c in enumerate(RESERVED):
        if c in "*;":  # a wildcard, and what begins parameters
            continue
        for path in (f"/w/projects/p{c}setIamPolicy", *(f"/w/projects/p{e}setIamPolicy" for e in escapes(c)),
                     *(f"/w/projects/p{e}setIamPolicy/" for e in escapes(c)), *(f"/w//projects/p{e}SetIamPolicy" for e in escapes(c))):
            stopped(rig, f"B60 {path}", post(rig, transport, path, split=(None, "bytes", 7)[n % 3]), False)
    for path in ("/w/teams/@core/members", "/w/teams/%40core/members", "/w/teams/%40core/members/", "/w/teams/%40Core/members", "/w/teams/%40core;a=b/members",
                 "/w/teams/%40core%3Ba/members", "/w/teams/%40core/members%3Fa", "/w/teams/%40core/members%23"):
        stopped(rig, f"B60 {path}", post(rig, transport, path), True)
    for path in ("/w/projects/p%3AgetIamPolicy", "/w/teams/%40cores/members"):
        rig.passed(f"B60 {path} is another", post(rig, transport, path), [("POST", path, b"x")])


@everywhere("B61", more=lambda up: wide(up, [("app: resource: \"git:upstream.test/@acme/app\"", "deny")]))
def a_resource_is_one_in_each_of_its_spellings(rig, transport):
    query = "/info/refs?service=git-upload-pack"
    for n, repo in enumerate(("/@acme/app", "/%40acme/app", "/%40acme/app.git", "/%40Acme/App", "//%40acme/app", "/%40acme;x=1/app", "/%40acme%3Bx/app")):
        wire = rig.open(transport, split=(None, "bytes", 7)[n % 3]) if n % 3 else rig.open(transport)
        rig.refused(f"B61 {repo}", wire.talk(wire.head("GET", repo + query), 1), closed=False)
        wire.close()
    wire = rig.open(transport)
    rig.passed("B61 another", wire.talk(wire.head("GET", "/%40acme/other" + query), 1), [("GET", "/%40acme/other" + query, b"")])
    wire.close()


DANGER = ("X-Danger: 1", "x-danger: 1", "X_Danger: 1", "X.Danger: 1", "X-Danger: 1, 2", "X-Danger: 2,1", "X-Danger: 2 ,\t1", "X-Danger: 2\r\nX-Danger: 1", "X_Danger: 2\r\nX-Danger: 1",
          "X-Danger: 2\r\nX_Danger: 1", "X-Danger:\t1 \t", "X-Danger: 01", "X-Danger: \"1\"", "X-Danger: 1;a=b")
WORDS = ("X-Words: safe mode", "X-Words: safe  mode", "X-Words: safe\tmode", "X_words: Safe \t Mode", "X-Words: a, safe mode")


@everywhere("B62", more=lambda up: wide(up, [("danger: path: /w/field, header: { X-Danger: \"1\" }", "deny"), ("words: path: /w/field, header: { X-Words: \"safe mode\" }", "hold")]))
def a_field_is_one_in_each_of_its_spellings(rig, transport):
    for n, (line, held) in enumerate([(line, False) for line in DANGER] + [(line, True) for line in WORDS]):
        stopped(rig, f"B62 {line!r}", post(rig, transport, "/w/field", *line.split("\r\n"), split=(None, "bytes", 7)[n % 3]), held)
    rig.passed("B62 another value", post(rig, transport, "/w/field", "X-Danger: 12", "X-Words: safemode"), [("POST", "/w/field", b"x")])


JSON = (b'{"mode": "wipe"}', b'{"mode": "wipe\\u0000"}', b'{"mode": "wi\\u0000pe"}', b'{"mode": "\\u0000wipe"}', b'{"mode": "\\u0077ipe\\u0000"}', b'{"mode": " WIPE\\n"}', b'{"n1": 5.0}',
        b'{"n1": "05"}', b'{"n1": 50e-1}')
FORMS = (b"mode=wipe", b"mode=wipe%00", b"mode=wi%00pe", b"mode=%00wipe", b"mode=wipe%00x", b"mode=+wipe", b"mode=wip%2565", b"n1=05", b"n1=5.0", b"n1=%2B5")


@everywhere("B63", more=lambda up: wide(up, [("json: path: /w/json, json: [{ pointer: /mode, equals: wipe }]", "deny"), ("five: path: /w/json, json: [{ pointer: /n1, equals: \"5\" }]", "deny"),
                                             ("form: path: /w/form, form: [{ field: mode, equals: wipe }]", "deny"), ("six: path: /w/form, form: [{ field: n1, equals: \"5\" }]", "deny")]))
def a_value_is_one_in_each_of_its_spellings(rig, transport):
    for path, kind, bodies in (("/w/json", "application/json", JSON), ("/w/form", "application/x-www-form-urlencoded", FORMS)):
        for n, body in enumerate(bodies):
            got = post(rig, transport, path, f"Content-Type: {kind}", body=body, split=(None, "bytes", 7)[n % 3])
            rig.refused(f"B63 {body}", got, closed=False, status=403)
        good = b'{"mode": "list", "n1": 6}' if path == "/w/json" else b"mode=list&n1=6"
        rig.passed(f"B63 {good}", post(rig, transport, path, f"Content-Type: {kind}", body=good), [("POST", path, good)])


WIDE = ("/w/admin/%EF%BD%84elete", "/w/%F0%9D%90%9Admin/delete", "/w/ADM%C4%B1N/delete", "/w/admin/del%CC%81ete", "/w/ad%C2%ADmin/delete", "/w/admin%EF%BC%8Fdelete",
        "/w/admin/delete%C2%A0", "/w/%C3%A1dmin/delete", "/w/admin;x/%EF%BD%84elete/")


@everywhere("B10", more=lambda up: wide(up, [("admin: path: /w/admin/delete", "deny"), ("five: path: /w/items/5", "hold")]))
def a_character_that_folds_to_ascii_hides_nothing(rig, transport):
    for n, path in enumerate(WIDE):
        stopped(rig, f"B10 {path}", post(rig, transport, path, split=(None, "bytes", 7)[n % 3]), False)
    for path in ("/w/items/%D9%A5", "/w/items/%EF%BC%95"):
        stopped(rig, f"B10 {path}", post(rig, transport, path), True)
    for path in ("/w/x/%EF%BC%8E%EF%BC%8E/admin", "/w/x%EF%BC%8F%E2%80%A5%EF%BC%8Fadmin"):
        rig.refused(f"B10 {path}", post(rig, transport, path), closed=False)
    for path in ("/w/admin/%E5%89%8A", "/w/items/%D9%A6"):
        rig.passed(f"B10 {path} is another", post(rig, transport, path), [("POST", path, b"x")])


ENDS = ("/w/delete.", "/w/delete%20", "/w/delete/", "/w/delete?", "/w/delete%23", "/w/delete%20./", "/w/%20delete", "/w/delete...", "/w/delete+", "/w/Delete%3F")


@everywhere("B11", more=lambda up: wide(up, [("delete: path: /w/delete", "deny")]))
def what_a_name_ends_with_hides_nothing(rig, transport):
    for n, path in enumerate(ENDS):
        stopped(rig, f"B11 {path}", post(rig, transport, path, split=(None, "bytes", 7)[n % 3]), False)
    for path in ("/w/delete.json", "/w/deleted", "/w/.delete"):
        rig.passed(f"B11 {path} is another", post(rig, transport, path), [("POST", path, b"x")])


if __name__ == "__main__":
    main()
