"""For gdb: spans, buffers, ids and exchanges as a person reads them, and the steps an exchange has taken.

    sudo gdb -p $(pgrep -n -f countersign-judge) -x /usr/local/share/countersign/gdb/countersign.py
    (gdb) break step_hold
    (gdb) continue
    (gdb) print *x                       an exchange: its id, where it stands, then every field
    (gdb) countersign-trace              the last steps of this process
    (gdb) countersign-trace 1099511627777     those of one exchange

What a struct secret holds is never printed.
"""
import gdb
import gdb.printing

SHOWN = 400  # bytes of a text


def text(pointer, length):
    """The bytes as a quoted text; others than printable ASCII as \\xNN."""
    if length == 0:
        return '""'
    if not int(pointer):
        return f"<{length} bytes at no address>"
    try:
        data = bytes(gdb.selected_inferior().read_memory(int(pointer), min(length, SHOWN)))
    except gdb.MemoryError:
        return f"<{length} bytes that cannot be read>"
    shown = "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else f"\\x{b:02x}" for b in data)
    return f'"{shown}"' + (f"... ({length} bytes)" if length > SHOWN else "")


class Span:
    """struct span, struct dynbuf: {p, n}."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        failed = "failed" in [f.name for f in self.value.type.fields()] and bool(self.value["failed"])
        return "<failed>" if failed else text(self.value["p"], int(self.value["n"]))


class Bytes:
    """struct id, struct digest: {b}, shown in hexadecimal."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        first, last = self.value["b"].type.range()
        return "".join(f"{int(self.value['b'][i]):02x}" for i in range(first, last + 1))


class Secret:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return "<secret>"


class Exchange:
    """struct exchange of any role: where it stands first; states are enums and print as their names."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        at = [str(self.value[name]) for name in ("step", "wait") if name in [f.name for f in self.value.type.fields()]]
        return f"exchange {int(self.value['xid'])} at {', '.join(at)}"

    def children(self):
        for field in self.value.type.fields():
            if field.name and field.name not in ("xid", "step", "wait"):
                yield field.name, self.value[field.name]


class Trace(gdb.Command):
    """countersign-trace [EXCHANGE]: the last steps this process has marked, the oldest first; at most 256."""

    def __init__(self):
        super().__init__("countersign-trace", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        of = int(gdb.parse_and_eval(argument)) if argument.strip() else None
        ring, size, at = (gdb.parse_and_eval(f"'common/trace.c'::{name}") for name in ("ring", "size", "next"))
        marks = [ring[(int(at) + i) % int(size)] for i in range(int(size))]
        marks = [m for m in marks if int(m["exchange"]) and of in (None, int(m["exchange"]))][-256:]
        for m in marks:
            us = (int(m["ns"]) - int(marks[0]["ns"])) // 1000
            gdb.write(f"{us:10}  {int(m['exchange'])}  {m['what'].string():17} {m['came'].string()}\n")
        if not marks:
            gdb.write("no step is remembered\n")


def printers():
    found = gdb.printing.RegexpCollectionPrettyPrinter("countersign")
    found.add_printer("span", "^(span|dynbuf)$", Span)
    found.add_printer("id", "^(id|digest)$", Bytes)
    found.add_printer("secret", "^secret$", Secret)
    found.add_printer("exchange", "^exchange$", Exchange)
    return found


gdb.printing.register_pretty_printer(None, printers(), replace=True)
Trace()
