"""The rooms of the house: who may include whom, that no two rooms need each other, how many files stand in one folder,
and that what a comment or a README names is there. Each check yields (where, what is wrong); house.py runs them all."""
import collections
import fnmatch
import os
import re

INCLUDE = re.compile(r'\s*#\s*include\s+([<"])([^>"]+)[>"]')
LIBRARY = re.compile(r"^<(event|openssl/|yaml|yajl/|sqlite3|libpq-fe|ares|seccomp|zlib|cmocka|curl|nghttp2|idn2|libpsl|brotli|zstd|png\.h|jpeglib|gif_lib|webp/)")
NET_ONLY = re.compile(r"^<(event2/|event\.h|openssl/ssl\.h)")
FILES = 25  # that may stand in one folder

# Arrows point down: a room includes what stands in its own row or in one above it here.
LEVELS = {"common": 0, "policy": 1, "proxy": 2, "web-approval": 3, "broker": 3, "sandbox-shim": 3, "cli": 4}
# Said by the design; no .may_include may loosen it.
NEVER = [
    ("proxy/front/", r"proxy/(keeper|ledger)/|policy/load/|common/crypto/secret\.h"),
    ("proxy/judge/", r"proxy/(keeper|ledger)/|policy/load/|common/crypto/secret\.h"),
    (r"proxy/(parent|lobby|resolver)/|web-approval/|sandbox-shim/|cli/", r"common/crypto/(secret|seal)\.h"),
    (r"(?!web-approval/viewer/|tests/)", r"<(png\.h|jpeglib|gif_lib|webp/)"),  # pictures are opened behind walls alone
    ("proxy/fetcher/", r"proxy/(keeper|ledger|judge|carrier|front)/|policy/load/|common/crypto/seal\.h"),
    ("proxy/dock/", r"common/crypto/|policy/|<openssl/|proxy/(keeper|ledger|judge|carrier|front)/|<sqlite3"),
    ("broker/", r"common/crypto/|policy/(?!load/read/)|<openssl/|proxy/(keeper|ledger|judge|carrier|front|parent)/|sandbox-shim/|web-approval/"),
    ("sandbox-shim/(warden|start)/", r"common/crypto/|policy/|<openssl/|proxy/\w+/|sandbox-shim/run/"),
    ("policy/", r"<(event2/|openssl/|sys/socket|netdb|curl)"),
    ("proxy/carrier/plan/", r"secret|scrub|cred|inject|proxy/(keeper|carrier/[^p])"),
    ("sandbox-shim/inside/", r"^(?!<|sandbox-shim/inside/(\w+/)?shim_\w+\.h)"),  # the shim links no house code
]


def includes(lines):
    """(line number, what is included; a library's header in <...>) of each #include."""
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if found:
            yield number, f"<{found[2]}>" if found[1] == "<" else found[2]


def rules(top, folder):
    """The folder's own .may_include, or the nearest above it; None: there is none."""
    path = os.path.join(top, folder, ".may_include")
    if os.path.exists(path):
        return [t.strip() for t in open(path, encoding="utf-8") if t.strip() and not t.startswith("#")]
    return rules(top, os.path.dirname(folder)) if folder else None


def check_includes(top, path, lines):
    if path.startswith("tests/"):
        return
    folder = os.path.dirname(path)
    law = rules(top, folder)
    if not law:
        yield path, f"{folder}/.may_include is missing or empty"
        return
    for number, target in includes(lines):
        if target[0] == "<" and not LIBRARY.match(target):
            continue
        if not any(fnmatch.fnmatchcase(target, rule) for rule in law):
            yield f"{path}:{number}", f"may not include {target} (see {room(top, path)}/.may_include)"


def check_never(path, lines):
    level = LEVELS.get(path.split("/")[0])
    for number, target in includes(lines):
        for prefix, pattern in NEVER:
            if re.match(prefix, path) and re.search(pattern, target):
                yield f"{path}:{number}", f"the design forbids {target} here"
        if level is not None and LEVELS.get(target.split("/")[0], 0) > level:
            yield f"{path}:{number}", f"an arrow up: {target} stands above this room"
        if NET_ONLY.match(target) and not path.startswith(("common/net/", "tests/")):
            yield f"{path}:{number}", f"only common/net names {target}"


def room(top, path):
    """The folder with the .may_include that a file answers to."""
    folder = os.path.dirname(path)
    while folder and not os.path.exists(os.path.join(top, folder, ".may_include")):
        folder = os.path.dirname(folder)
    return folder


def arrows(top, paths):
    """Which room includes from which, and one line that does: {room: {room: "file includes header"}}."""
    graph, at = collections.defaultdict(dict), {path: room(top, path) for path in paths}
    for path in paths:
        if path.startswith("tests/"):
            continue
        for _, target in includes(open(os.path.join(top, path), encoding="utf-8")):
            if at.get(target, at[path]) != at[path]:
                graph[at[path]].setdefault(at[target], f"{path} includes {target}")
    return graph


def way(graph, start, goal):
    """The shortest way from one room to another along the arrows, or None."""
    ways, seen = collections.deque([[start]]), {start}
    while ways:
        here = ways.popleft()
        if here[-1] == goal and len(here) > 1:
            return here
        for next_one in sorted(graph.get(here[-1], ())):
            if next_one == goal or next_one not in seen:
                seen.add(next_one)
                ways.append([*here, next_one])
    return None


def check_circles(top, paths):
    """No room may need one that needs it."""
    graph, told = arrows(top, paths), set()
    for folder in sorted(graph):
        circle = way(graph, folder, folder)
        if circle is None or frozenset(circle) in told:
            continue
        told.add(frozenset(circle))
        yield folder, "a circle of rooms: " + "; ".join(graph[a][b] for a, b in zip(circle, circle[1:]))


def check_folders(everything):
    """At most FILES files in a folder, but for a fuzzer's corpus: each of its files is an input."""
    count = collections.Counter(os.path.dirname(path) for path in everything)
    for folder, n in sorted(count.items()):
        if n > FILES and not folder.startswith("tests/fuzz/corpus/"):
            yield folder or ".", f"{n} files, at most {FILES}: give it sub-rooms"


NAME = re.compile(r"(?<![\w$<>)/.-])([A-Za-z_*][\w*{},./-]*\.(?:c|h|py|sh|mjs|sql|md|tsv))(?![\w(-]|\.\w|\]\()")
PATH = re.compile(r"(?<![\w$<>)/.-])((?:\.\./)*[\w-]+(?:/[\w-]+)*/?)")
# Named, and of no file of the tree: made by the build, by a test or by a gateway; the kernel's; a form of a name.
ELSEWHERE = {"config.h", "env.sh", "_in.h", "schema_sql.h", "linux/netfilter_ipv4.h", "netfilter_ipv6/ip6_tables.h"}


def words(path, text):
    """Of a file, what is written for people."""
    if path.endswith((".c", ".h")):
        return "\n".join(re.findall(r"/\*.*?\*/", text, re.S))
    if path.endswith(".py"):
        return "\n".join(re.findall(r'"""(?:[^"]|"(?!""))*"""', text))
    return text if path.endswith(".md") else ""


def spelled(name):
    """a.{c,h} is two names."""
    found = re.search(r"\{([^{}]*)\}", name)
    if not found:
        return [name]
    return [full for part in found[1].split(",") for full in spelled(name[:found.start()] + part + name[found.end():])]


def check_names(top, everything):
    """What is named is there: from the top, from a folder at or above the one that names it, in a folder below that, or in
    one that the text has named before."""
    have, by_name = set(everything), collections.defaultdict(list)
    for path in everything:
        by_name[os.path.basename(path)].append(path)
    for path in everything:
        if not path.endswith((".c", ".h", ".md", ".py")) or path.startswith("tests/house/"):
            continue
        text = words(path, open(os.path.join(top, path), encoding="utf-8").read())
        for found in NAME.finditer(text):
            for name in spelled(found[1]):
                if name in ELSEWHERE or "NAME" in name or is_there(path, name, text[:found.start()], have, by_name):
                    continue
                yield path, f"names {name}, which is not there"


def is_there(path, name, before, have, by_name):
    folder, places = os.path.dirname(path), [""]
    while folder:
        places.append(folder)
        folder = os.path.dirname(folder)
    for said in set(PATH.findall(before)):
        for place in {said.rstrip("/"), os.path.dirname(said)} - {""}:  # it may be a folder, or end in a file
            places += [place, os.path.join(os.path.dirname(path), place)]
    wanted = {os.path.normpath(os.path.join(place, name)) for place in places}
    if "*" in name:
        return any(fnmatch.filter(have, one) for one in wanted)
    if wanted & have:
        return True
    room = os.path.dirname(path).split("/")
    room = "/".join(room[:2] if room[0] in ("proxy", "tests", "common") else room[:1])
    return "/" not in name and bool(room) and any(p.startswith(room + "/") for p in by_name.get(name, []))
