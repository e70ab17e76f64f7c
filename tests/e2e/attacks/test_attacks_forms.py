#!/usr/bin/env python3
"""Forms, forms with files and JSON that look like something else (attacks.tsv B34, B35, B36): what a rule denies by what the body says does
not pass in another type, spelling or cut."""
import room  # noqa: F401
from attack import everywhere, wide
from harness import main, test  # noqa: F401

FORM, JSON, PARTS = "application/x-www-form-urlencoded", "application/json", "multipart/form-data; boundary=b1"
DISPOSITION = "Content-Disposition: form-data; "


def part(head, text):
    return f"--b1\r\n{head}\r\n\r\n{text}\r\n"


def field(name, value):
    return part(f'{DISPOSITION}name="{name}"', value)


def file(name, filename, value="x", kind="text/plain"):
    return part(f'{DISPOSITION}name="{name}"; filename="{filename}"\r\nContent-Type: {kind}', value)


def whole(*parts):
    return "".join(parts) + "--b1--\r\n"


def odd(head):
    """One that says list to who reads the head in this way, and may say something else to who reads it in another."""
    return whole(part(head, "list"))


LIST, DELETE = field("action", "list"), field("action", "delete")
SAYS_DELETE, SAYS_LIST = '{"action":"delete"}', '{"action":"list"}'

# id: its path, what is stopped, and what passes: (body, the lines of Content-Type)
CASES = {
    "B34": ("/w/json",
            [(SAYS_DELETE, kind) for kind in (JSON, "text/plain", "application/octet-stream", None, JSON + ";charset=utf-16", FORM, "text/json", "application/json, text/html", "text/html, application/json",
                                              "APPLICATION/JSON", "application/json; charset=utf-7", "application/vnd.x+json", "application/json;", "application/json; x=y", "multipart/form-data; boundary=b1",
                                              "multipart/mixed; boundary=b1", "*/*", "json", "application/x-ndjson", JSON + "\r\nContent-Type: text/plain", "text/plain\r\nContent-Type: " + JSON,
                                              JSON + "\r\nContent_Type: text/plain", JSON + "\r\nContent-Encoding: gzip")]
            + [("action=delete", FORM), ("action=delete", JSON), (whole(DELETE), PARTS), (whole(DELETE), JSON), ("\ufeff" + SAYS_DELETE, JSON)],
            [(SAYS_LIST, JSON), (SAYS_LIST, "Application/JSON; charset=UTF-8"), (SAYS_LIST, "application/vnd.x+json")]),
    "B35": ("/w/form",
            [(body, FORM) for body in ("action=delete", "action=delete&action=list", "action=list&action=delete", "%61ction=delete", "action=%64elete", "action=Delete", "Action=delete", "action=+delete",
                                       "action[]=delete", "action[x]=delete", "x=1;action=delete", "action=list;action=delete", "action%3Ddelete", "x=%26action%3Ddelete;", "action=list%00", "action=list&%00=x",
                                       "_charset_=utf-7&action=list", "action=list%", "action=list%zz", "action=list%ff", "a.ction=delete&a_ction=x;", "action=%2564elete",
                                       "&".join(f"a{n}=1" for n in range(10001)) + "&action=list")]
            + [(body, kind) for body in ("action=delete",) for kind in (FORM + "; charset=utf-8", FORM + "; charset=utf-7", "Application/X-WWW-Form-URLEncoded", "text/plain", None)],
            [(body, FORM) for body in ("action=list", "action", "actions=delete", "note=delete", "action=list&note=a%26b")]),
    "B36": ("/w/up",
            [(body, PARTS) for body in (
                whole(DELETE), whole(LIST, DELETE), whole(DELETE, LIST), whole(field("Action", "delete")), whole(field("action[]", "delete")), whole(field("%61ction", "delete")), whole(field("action", "%64elete")),
                whole(field("action", " delete")), whole(file("action", "x", "delete")), whole(part(DISPOSITION + 'name="action"\r\nContent-Type: application/json', "delete")),
                whole(file("doc", "a.exe")), whole(file("doc", "A.EXE")), whole(file("doc", "a.exe.")), whole(file("doc", "a.exe%20")), whole(file("doc", "../a.txt")), whole(file("doc", "a.exe::$DATA")),
                "\r\n" + whole(LIST), "x\r\n" + whole(LIST), whole(LIST) + "x", whole(LIST) + whole(DELETE), LIST + "--b1\r\n", LIST, LIST + "--b1-- \r\n",
                whole(LIST).replace("\r\n", "\n"), whole(field("action", f"list\n--b1\n{DISPOSITION}name=\"action\"\n\ndelete")), whole(field("action", "list\r\n--b1x")), whole(LIST, "--b12\r\n"),
                whole(field("action", "list\r\n--b1--")), "--b1 \r\n" + whole(LIST)[6:], odd("Content-Type: text/plain"), odd('Content-Disposition: attachment; name="action"'), odd(DISPOSITION + "\r\n name=\"action\""),
                odd(DISPOSITION + 'name="action"\r\n' + DISPOSITION + 'name="x"'), odd('Content-Disposition : form-data; name="action"'), odd(DISPOSITION + 'name="action"\r\nX: y'),
                odd(DISPOSITION + 'name="action"; name="x"'), odd(DISPOSITION + 'name="x"; name*=utf-8\'\'action'), odd(DISPOSITION + "name*=utf-8''action"), odd(DISPOSITION + 'name*0="act"; name*1="ion"'),
                odd(DISPOSITION + 'filename="x"; name="action"'), odd(DISPOSITION + 'name="a\\"ction"'), odd(DISPOSITION + "name='action'"), odd(DISPOSITION + 'name="x;name=action"'), odd(DISPOSITION + 'name="=?utf-8?q?action?="'),
                odd(DISPOSITION + 'name="doc"; filename="a.txt"; filename*=utf-8\'\'a.exe'), odd(DISPOSITION + 'name="doc"; filename*=utf-8\'\'a.txt'), odd(DISPOSITION + 'name="doc"; filename="a.txt"; filename="a.exe"'),
                odd(DISPOSITION + 'name="action"\r\nContent-Type: text/plain; charset=utf-7'), odd(DISPOSITION + 'name="action"\r\nContent-Type: multipart/mixed; boundary=c'),
                odd(DISPOSITION + 'name="action"\r\nContent-Transfer-Encoding: base64'), odd(DISPOSITION + 'name="action"\r\nContent-Transfer-Encoding: quoted-printable'),
                odd(DISPOSITION + 'name="action"\r\nContent-Length: 2'), whole(field("_charset_", "utf-7"), LIST), whole(field("action", "list\0")), whole(*[field(f"a{n}", "x") for n in range(1001)]))]
            + [(whole(LIST), kind) for kind in ("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=b", "multipart/form-data; boundary=b1; boundary=b1", "multipart/form-data; boundary=b2; boundary=b1",
                                                "multipart/form-data; boundary*=b1", "multipart/form-data; boundary*0=b; boundary*1=1", "multipart/form-data; boundary=b1,b2", "multipart/form-data; boundary='b1'",
                                                "multipart/form-data; boundary=\"b\\1\"", "multipart/form-data; boundary=" + "b" * 71, "multipart/form-data; boundary=b1; charset=utf-7", "multipart/mixed; boundary=b1",
                                                "multipart/form-data; boundary=b1, text/plain", None, "text/plain")],
            [(whole(LIST), PARTS), (whole(LIST), 'Multipart/Form-Data;Boundary="b1"'), (whole(LIST)[:-2], PARTS), (whole(field("note", "delete\r\n--b\r\n")), PARTS), (whole(), PARTS),
             (whole(LIST, file("doc", "a.txt", "delete")), PARTS), (whole(part(DISPOSITION + 'name="doc"; filename="a b"; filename*=utf-8\'\'a%20b\r\nContent-Type: image/png', "x")), PARTS)]),
}
RULES = [("members: path: /w/json, json: [{ pointer: /action, equals: delete }]", "deny"), ("fields: path: /w/form, form: [{ field: action, equals: delete }]", "deny"),
         ("parts: path: /w/up, multipart: [{ field: action, equals: delete }]", "deny"), ("files: path: /w/up, multipart: [{ file: doc, glob: \"*.exe\" }]", "deny")]


def ask(rig, transport, path, case, n):
    body, kind = case
    data = body.encode()
    wire = rig.open(transport, split=("bytes", 7)[n % 2]) if n % 5 == 4 and len(data) < 1000 else rig.open(transport)
    got = wire.talk(wire.head("POST", path, *([f"Content-Type: {kind}"] if kind else []), f"Content-Length: {len(data)}") + data, 1)
    wire.close()
    return got, ("POST", path, data)


@everywhere(list(CASES), more=lambda up: wide(up, RULES))
def what_is_denied_passes_in_no_other_form(rig, transport, case):
    path, stopped, passed = CASES[case]
    for n, what in enumerate(stopped):
        got, _ = ask(rig, transport, path, what, n)
        rig.refused(f"{case} {str(what)[:200]}", got, closed=False)
    for n, what in enumerate(passed):
        got, arrives = ask(rig, transport, path, what, n)
        rig.passed(f"{case} {what}", got, [arrives])


if __name__ == "__main__":
    main()
