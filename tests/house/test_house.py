#!/usr/bin/env python3
"""Does the law of the house see a breach? Each is planted in a small tree of its own, which is in order without it."""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import house  # noqa: E402
import rooms  # noqa: E402

# A tree in order: path, text.
ORDER = {
    "common/.may_include": "common/*.h\n", "common/README.md": "# common\n\n`span.h` bytes.\n",
    "common/span.h": "/* Bytes. */\n", "common/span.c": '#include "common/span.h"\n',
    "common/net/.may_include": "common/*.h\n", "common/net/loop.h": '#include "common/span.h"\n', "common/net/README.md": "# net\n",
    "proxy/.may_include": "common/*.h\nproxy/*.h\n<event2/*>\n", "proxy/README.md": "# proxy: `walk.h`, see `common/net/loop.h`\n",
    "proxy/walk.h": "/* See front/main.c. */\n", "proxy/front/README.md": "# front\n",
    "proxy/front/main.c": '#include "common/net/loop.h"\n#include "proxy/walk.h"\nint main(void)\n{\n    return 0;\n}\n',
    "proxy/front/limits.h": "enum { HEADS_MAX = 4 };\n", "tests/unit/test_front.c": "static void heads(void **state)\n{\n}\n",
    "tests/limits.tsv": "# bounds\nname\theader\twhose\tpast\ttest\n"
                        "HEADS_MAX\tproxy/front/limits.h\tsandbox\trefused\ttests/unit/test_front.c:heads\n",
}
LONG = "int f(void)\n{\n" + "    ;\n" * 61 + "}\n"
# Name, what is written in place of or beside the above, what the house says of it.
BREACHES = [
    ("an include that no rule has", {"common/span.c": '#include "proxy/walk.h"\n'}, "common/span.c:1: may not include proxy/walk.h"),
    ("no rules at all", {"cli/main.c": "int x;\n", "cli/README.md": "# cli\n"}, "cli/main.c: cli/.may_include is missing"),
    ("an arrow up", {"common/.may_include": "*.h\n", "common/span.c": '#include "proxy/walk.h"\n'}, "an arrow up: proxy/walk.h"),
    ("the desk above the gateway", {"proxy/.may_include": "*.h\n", "proxy/front/main.c": '#include "web-approval/desk.h"\n',
                                    "web-approval/desk.h": ""}, "an arrow up: web-approval/desk.h"),
    ("what the design forbids", {"proxy/.may_include": "*.h\n", "proxy/front/main.c": '#include "proxy/keeper/ca.h"\n',
                                 "proxy/keeper/ca.h": ""}, "the design forbids proxy/keeper/ca.h"),
    ("house code in the shim", {"sandbox-shim/.may_include": "*.h\n", "sandbox-shim/inside/shim_a.h": '#include "common/span.h"\n'},
     "the design forbids common/span.h"),
    ("a library that only the wire names", {"proxy/front/main.c": "#include <event2/event.h>\n"}, "only common/net names"),
    ("a circle of two rooms", {"common/span.h": '#include "common/net/loop.h"\n'}, "common: a circle of rooms: common/span.h includes common/net/loop.h; common/net/loop.h includes"),
    ("a circle of three", {"common/a/a.h": '#include "common/b/b.h"\n', "common/b/b.h": '#include "common/c/c.h"\n',
                           "common/c/c.h": '#include "common/a/a.h"\n',
                           **{f"common/{r}/.may_include": "common/*.h\n" for r in "abc"}}, "common/a: a circle of rooms"),
    ("a full folder", {f"common/f{n}.h": "" for n in range(24)}, "common: 28 files, at most 25"),
    ("a README that names what is gone", {"common/README.md": "# common\n\n`dynbuf.h`\n"}, "common/README.md: names dynbuf.h"),
    ("a comment that does", {"proxy/walk.h": "/* See front/walk.c. */\n"}, "proxy/walk.h: names front/walk.c"),
    ("names in braces", {"common/README.md": "`span.{c,h}`, `common/{span,arena}.h`\n"}, "names common/arena.h"),
    ("a test that does", {"tests/e2e/test_a.py": '"""As attacks.md says."""\n'}, "tests/e2e/test_a.py: names attacks.md"),
    ("a long function", {"common/span.c": LONG}, "f() has 61 lines, at most 60"),
    ("a long file", {"common/span.c": "int x;\n" * 601}, "601 lines, at most 600"),
    ("a long header", {"common/span.h": "\n" * 201}, "201 lines, at most 200"),
    ("a room without README", {"common/text/utf8.c": ""}, "common/text: no README.md"),
    ("a long README", {"common/README.md": "\n" * 21}, "over 20 lines"),
    ("a bound without a row", {"proxy/front/limits.h": "enum { HEADS_MAX = 4, BODIES_MAX = 2 };\n"}, "BODIES_MAX has no row"),
    ("a bound in a sub-room", {"proxy/front/way/way.h": "enum { WAYS_MAX = 4 };\n"}, "WAYS_MAX has no row"),
    ("a version that nobody is told of", {"configure.ac": "AC_INIT([x], [0.2.0], [], [x])\n", "CHANGES": "What changed.\n\n0.1.0\n"},
     "does not begin with version 0.2.0"),
    ("two messages of one number", {"proxy/msgs.h": "enum msg_type {\n    M_ONE = 1, /* A>B */\n    M_TWO = 1, /* B>A */\n};\n"}, "M_TWO has the number of M_ONE"),
    ("two of them in two files", {"proxy/msgs.h": "enum msg_type {\n    M_ONE = 1, /* A>B */\n};\n",
                                 "proxy/msgs_box.h": "enum msg_type_box {\n    M_TWO = 1, /* B>A */\n};\n"}, "M_TWO has the number of M_ONE"),
    ("a row without its test", {"tests/unit/test_front.c": "\n"}, "HEADS_MAX: there is no tests/unit/test_front.c:heads"),
]
# What looks like a breach and is none.
FINE = [
    ("as it is", {}),
    ("a version that is told of", {"configure.ac": "AC_INIT([x], [0.2.0], [], [x])\n", "CHANGES": "What changed.\n\n0.2.0\n\n0.1.0\n"}),
    ("folders of one room", {"common/span.h": '#include "common/text/utf8.h"\n', "common/text/utf8.h": '#include "common/span.h"\n'}),
    ("names that others have", {"common/README.md": "# `net/loop.h`, `proxy/front/`: `limits.h`, `ma*.c`; [x.md](net/loop.h)\n"}),
    ("a corpus is no room", {f"tests/fuzz/corpus/json/{n}": "" for n in range(30)}),
]


def said(change):
    with tempfile.TemporaryDirectory() as top:
        for path, text in {**ORDER, **change}.items():
            os.makedirs(os.path.dirname(f"{top}/{path}"), exist_ok=True)
            pathlib.Path(top, path).write_text(text, encoding="utf-8")
        return house.law(top)


def main():
    failed = 0
    for name, change, want in BREACHES:
        problems = said(change)
        ok = any(want in p for p in problems)
        print(f"{'ok' if ok else 'not ok'} {name}" + ("" if ok else f": {problems}"))
        failed += not ok
    for name, change in FINE:
        problems = said(change)
        print(f"{'not ok' if problems else 'ok'} fine: {name}" + (f": {problems}" if problems else ""))
        failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    assert rooms.FILES == 25
    sys.exit(main())
