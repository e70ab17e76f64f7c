#!/usr/bin/env python3
"""Searches files, directories and SQLite databases for a secret that must not be there.

Every file is looked at as it is and with percent, JSON, HTML and backslash escapes undone, white space taken
out, and gzip, zlib or deflate undone (whole files, and HTTP bodies with a Content-Encoding); in each view the
secret is searched literally, as UTF-16, as hex and in base64 (three alignments, both alphabets, without padding).
File names and link targets are searched too. With --user, user:password counts as a form of its own.

exit 0: nowhere; 1: found (each place on its own line); 2: something could not be read, so nothing is proven.
"""
import argparse
import base64
import binascii
import collections
import functools
import gzip
import os
import pathlib
import re
import shutil
import sqlite3
import stat
import sys
import tempfile
import urllib.parse
import zlib

SANDBOX_MAX = 64 << 20  # bytes that are searched of one sandbox
SANDBOX_PLACES = ("workspace", "home", "tmp", "var/tmp", "dev/shm", "run", "countersign")
Finding = collections.namedtuple("Finding", "path offset form view")
WINDOW, OVERLAP = 8 << 20, 64 << 10
BETWEEN = b"\0|\0"  # values of a table: no escape goes on behind it, and no form of a secret has it in it
INFLATED_MAX = 256 << 20
SHORTEST = 8  # a shorter secret would be found by chance


def base64_cores(secret):
    """What base64 of anything containing the secret must contain, for the secret at offset 0, 1 and 2 mod 3."""
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + secret)
        first = (0, 2, 3)[shift]
        whole = (shift + len(secret)) // 3 * 4
        partial = (0, 1, 2)[(shift + len(secret)) % 3]
        yield shift, encoded[first:whole + partial]


def needles(secrets):
    """(bytes, form) pairs, the shortest first; hex is matched in a lower-cased view."""
    return sought(tuple(secrets))[0]


def hex_needles(secrets):
    return sought(tuple(secrets))[1]


@functools.lru_cache(16)
def sought(secrets):
    """Once for what thousands of values are searched for. What holds a form of user:password holds that of the password."""
    found = {}
    secrets = {s for s in secrets if not any(other in s for other in secrets if other != s)}
    for secret in secrets:
        found[secret] = "literal"
        found[secret.decode("utf-8", "replace").encode("utf-16-le")] = "utf-16"
        found[secret.decode("utf-8", "replace").encode("utf-16-be")] = "utf-16"
        for shift, core in base64_cores(secret):
            found[core] = f"base64+{shift}"
            found[core.replace(b"+", b"-").replace(b"/", b"_")] = f"base64url+{shift}"
    return (sorted(found.items(), key=lambda needle: len(needle[0])),
            sorted(((binascii.hexlify(s), "hex") for s in secrets), key=lambda needle: len(needle[0])))


def unescape_json(data):
    data = re.sub(rb"\\u00([0-9a-fA-F]{2})", lambda m: bytes([int(m[1], 16)]), data)
    return re.sub(rb'\\(["\\/])', lambda m: m[1], data)


def unescape_octal(data):
    """\\x41 and \\101, as shells, Python and git print bytes."""
    data = re.sub(rb"\\x([0-9a-fA-F]{2})", lambda m: bytes([int(m[1], 16)]), data)
    return re.sub(rb"\\([0-3][0-7]{2})", lambda m: bytes([int(m[1], 8)]), data)


def unescape_html(data):
    def one(m):
        n = int(m[2], 16 if m[1] else 10)
        return bytes([n]) if n < 256 else m[0]
    data = re.sub(rb"&#([xX]?)([0-9a-fA-F]{1,6});", lambda m: one(m) if m[1] or m[2].isdigit() else m[0], data)
    for name, char in ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&quot;", b'"'), (b"&amp;", b"&")):
        data = data.replace(name, char)
    return data


def views(data):
    yield "as it is", data
    for name, change, sign in (
            ("percent", urllib.parse.unquote_to_bytes, b"%"), ("json", unescape_json, b"\\"),
            ("backslash", unescape_octal, b"\\"), ("html", unescape_html, b"&"),
            ("plus", lambda b: b.replace(b"+", b" "), b"+"),
            ("percent twice", lambda b: urllib.parse.unquote_to_bytes(urllib.parse.unquote_to_bytes(b)), b"%25")):
        if sign in data:
            changed = change(data)
            if changed != data:
                yield name, changed
    squeezed = data.translate(None, b" \t\r\n")
    if squeezed != data:
        yield "without white space", squeezed


def search_bytes(data, secrets, path):
    wanted, wanted_hex = needles(secrets), hex_needles(secrets)
    for base in range(0, max(1, len(data)), WINDOW):
        window = data[max(0, base - OVERLAP):base + WINDOW]
        for view, changed in views(window):
            for needle, form in wanted:
                if len(needle) > len(changed):
                    break
                at = changed.find(needle)
                if at >= 0:
                    yield Finding(path, at + max(0, base - OVERLAP) if view == "as it is" else None, form, view)
            lowered = changed.lower().translate(None, b": -")
            for needle, form in wanted_hex:
                if len(needle) > len(lowered):
                    break
                if needle in lowered:
                    yield Finding(path, None, form, view)


def inflate(data, bits):
    try:
        return zlib.decompressobj(bits).decompress(data, INFLATED_MAX)
    except zlib.error:
        return b""


def pieces(data):
    """The contents of a pack of checkpoints (sandbox-shim/checkpoint/form.h)."""
    at = 8
    while at + 40 <= len(data):
        size, stored = int.from_bytes(data[at + 32:at + 36], "big"), int.from_bytes(data[at + 36:at + 40], "big")
        piece = data[at + 40:at + 40 + stored]
        if stored < size:
            yield inflate(piece, 15)
        at += 40 + max(stored, 1)


def decoded_bodies(data):
    """Compressed content: a whole file, or what follows a head that names an encoding."""
    for m in re.finditer(rb"\x1f\x8b\x08", data):
        yield "gzip", inflate(data[m.start():], 31)
    if data[:1] == b"x" and len(data) > 2 and (data[0] << 8 | data[1]) % 31 == 0:
        yield "zlib", inflate(data, 15)
    if data.startswith(b"CSPACK1\n"):
        for body in pieces(data):
            yield "piece", body
    for m in re.finditer(rb"(?i)content-encoding: *deflate.*?\r\n\r\n", data, re.S):
        yield "deflate", inflate(data[m.end():], 15) or inflate(data[m.end():], -15)


def sqlite_tables(path):
    """The text and blobs of every table, one behind the other: a long value is split over pages in the file itself. They are
    thousands and short, and what none of them holds no two of them hold with the bytes between them."""
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory) / "copy.db"
        for end in ("", "-wal"):
            if os.path.exists(f"{path}{end}"):
                shutil.copy(f"{path}{end}", f"{copy}{end}")
        database = sqlite3.connect(copy)
        database.text_factory = bytes
        try:
            names = [row[0].decode() for row in database.execute("select name from sqlite_master where type='table'")]
            for name in names:
                quoted = name.replace('"', '""')
                rows = database.execute(f'select * from "{quoted}"')
                yield name, BETWEEN.join(value for row in rows for value in row if isinstance(value, bytes))
        finally:
            database.close()


def search_file(path, secrets):
    data = path.read_bytes()
    yield from search_bytes(data, secrets, str(path))
    for name, body in decoded_bodies(data):
        yield from (f._replace(path=f"{path} ({name})", offset=None) for f in search_bytes(body, secrets, ""))
    if data.startswith(b"SQLite format 3\0"):
        for table, values in sqlite_tables(path):
            yield from search_bytes(values, secrets, f"{path} (table {table})")


def walk(path, excluded):
    path = pathlib.Path(path)
    if any(path == e or e in path.parents for e in excluded):
        return
    yield path
    if path.is_dir() and not path.is_symlink():
        for entry in sorted(os.scandir(path), key=lambda e: e.name):
            yield from walk(entry.path, excluded)


def search(secrets, paths, excluded=(), again=3):
    """Findings of any of the secrets (bytes) below the paths. Raises OSError for what cannot be read. If a file goes meanwhile
    (a database's log goes into it when the last one closes it), all is looked at once more."""
    try:
        return search_once(secrets, paths, excluded)
    except FileNotFoundError:
        if again == 0:
            raise
        return search(secrets, paths, excluded, again - 1)


def search_once(secrets, paths, excluded):
    for secret in secrets:
        if len(secret) < SHORTEST:
            raise ValueError(f"a canary of {len(secret)} bytes would be found by chance")
    found, excluded = [], [pathlib.Path(e) for e in excluded]
    for start in paths:
        os.lstat(start)
        for path in walk(start, excluded):
            found += search_bytes(os.fsencode(path), secrets, f"{path} (its name)")
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found += search_bytes(os.fsencode(os.readlink(path)), secrets, f"{path} (link target)")
            elif stat.S_ISREG(mode):
                found += search_file(path, secrets)
    return found


def search_sandbox(secrets, pid):
    """The same in a sandbox that runs, or waits for who asks for one: what its first process was given, and what can be
    written in it. What goes while it is looked at is not there."""
    found, left = [], SANDBOX_MAX
    for name in ("cmdline", "environ"):
        found += search_bytes(pathlib.Path(f"/proc/{pid}/{name}").read_bytes(), secrets, f"{name} of {pid}")
    for place in SANDBOX_PLACES:
        for folder, _, files in os.walk(f"/proc/{pid}/root/{place}"):
            for path in (pathlib.Path(folder, name) for name in files):
                try:
                    mode = path.lstat()
                    if stat.S_ISREG(mode.st_mode) and (left := left - mode.st_size) > 0:
                        found += search_file(path, secrets)
                    found += search_bytes(os.fsencode(path.name), secrets, f"{path} (its name)")
                except FileNotFoundError:
                    pass
    return found


def forms_of(secret, user=None):
    """The secret, and as user:password where there is a user."""
    secret = secret.encode() if isinstance(secret, str) else secret
    return [secret] + ([user.encode() + b":" + secret] if user else [])


def pack(content):
    packed = zlib.compress(content, 1)
    packed = packed if len(packed) < len(content) else content
    return b"CSPACK1\n" + bytes(32) + len(content).to_bytes(4, "big") + len(packed).to_bytes(4, "big") + packed


def planted(secret):
    """Name -> bytes for the self-test: each hides the secret in a form the search must see through."""
    both = b"demo:" + secret
    quoted = urllib.parse.quote_from_bytes(secret, safe="").encode()
    made = {"literal": b"x" + secret + b"y", "header": b"Authorization: Basic " + base64.b64encode(both),
            "hex": binascii.hexlify(secret).upper(), "hexdump": binascii.hexlify(secret, b" "),
            "utf16": secret.decode().encode("utf-16-le"), "quoted": quoted, "lowerquoted": re.sub(rb"%..", lambda m: m[0].lower(), quoted),
            "percent": "".join(f"%{c:02x}" for c in secret).encode(),
            "half": b"%" + binascii.hexlify(secret[:1]) + secret[1:],
            "twice": urllib.parse.quote(urllib.parse.quote_from_bytes(secret, safe="")).encode(),
            "json": b'{"a":"' + b"".join(b"\\u%04x" % c for c in secret) + b'"}',
            "slash": secret.replace(b"/", b"\\/"), "html": b"".join(b"&#x%x;" % c for c in secret),
            "octal": b"".join(b"\\%03o" % c for c in secret), "wrapped": base64.encodebytes(b"-" * 70 + secret),
            "pack": pack(b" " * 99 + secret), "second in a pack": pack(b"first") + pack(b" " * 99 + secret)[8:],
            "gzip": gzip.compress(b"abc" + secret), "zlib": zlib.compress(secret),
            "http": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(secret),
            "quotedbase64": urllib.parse.quote(base64.b64encode(both), safe="").encode(),
            "edge": b"." * (WINDOW - 5) + secret + b"." * 10}
    for shift in range(3):
        made[f"base64-{shift}"] = base64.b64encode(b"#" * shift + secret + b"tail")
        made[f"base64url-{shift}"] = base64.urlsafe_b64encode(b"#" * shift + secret + b"tail")
    return made


def self_test():
    secret = b"cnry/8Zq+T4>x?~wL0\xc3\xa4kEy"
    failed = 0
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        for name, data in planted(secret).items():
            (directory / name).write_bytes(data)
            failed += tell(bool(search([secret], [directory / name])), f"found as {name}")
        (directory / "clean").mkdir()
        (directory / "clean" / "a").write_bytes(secret[:-1] + base64.b64encode(secret[1:-2]) + os.urandom(4096))
        failed += tell(not search([secret], [directory / "clean"]), "nothing found where nothing is")
        (directory / "clean" / secret.replace(b"/", b"%2F").decode()).write_bytes(b"")
        failed += tell(bool(search([secret], [directory / "clean"])), "found in a file name")
        database = sqlite3.connect(directory / "a.db")
        database.execute("create table t (b)")
        database.execute("insert into t values (?)", (b"\1" * 1985 + secret * 90,))
        database.executemany("insert into t values (?)", [(value,) for value in planted(secret).values() if len(value) < WINDOW])
        database.execute("create table u (a, b)")
        database.execute("insert into u values (?, ?)", (secret[:-1], secret[-1:]))
        database.commit()
        failed += tell(bool(search([secret * 90], [directory / "a.db"])), "found across SQLite pages")
        seen = {(f.form, f.view) for f in search([secret], [directory / "a.db"]) if "(table t)" in f.path}
        failed += tell(len(seen) > 12, f"found in {len(seen)} ways among a table's values")
        failed += tell(not any("(table u)" in f.path for f in search([secret], [directory / "a.db"])), "halves in two values are not it")
        database.close()
        failed += tell(not search([secret], [directory / "literal"], [directory / "literal"]), "exclusion")
    return 1 if failed else 0


def tell(good, name):
    print(("ok " if good else "not ok ") + "canary: " + name)
    return 0 if good else 1


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--self-test", action="store_true")
    options.add_argument("--secret-file", action="append", default=[], help="its content, without a last newline")
    options.add_argument("--user")
    options.add_argument("--except", dest="excluded", action="append", default=[])
    options.add_argument("paths", nargs="*")
    args = options.parse_args()
    if args.self_test:
        return self_test()
    if not args.secret_file or not args.paths:
        options.error("a --secret-file and a path are needed")
    try:
        secrets = [form for name in args.secret_file
                   for form in forms_of(pathlib.Path(name).read_bytes().rstrip(b"\n"), args.user)]
        found = search(secrets, args.paths, args.excluded)
    except (OSError, ValueError, sqlite3.Error) as why:
        print(f"canary: {why}", file=sys.stderr)
        return 2
    for one in found:
        print(f"{one.path}: {one.form}, {one.view}" + (f", at byte {one.offset}" if one.offset is not None else ""))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
