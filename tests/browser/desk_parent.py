#!/usr/bin/env python3
"""A parent and a ledger for countersign-desk alone: starts the role as countersignd would, over a
store with hostile tickets in it. Prints the sign-in link and serves until its input ends.

usage: desk_parent.py --desk build/countersign-desk --dir EMPTY_DIR [--port N]
"""
import argparse, hashlib, json, os, re, select, signal, socket, sqlite3, struct, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = [os.path.join(HERE, "../../proxy/ledger/store", name) for name in ("schema.sql", "schema_2.sql", "schema_3.sql", "askers/schema_9.sql", "people/schema_10.sql", "gates/schema_12.sql", "askers/schema_13.sql", "tell/schema_14.sql", "egress/schema_15.sql", "people/schema_16.sql", "people/schema_17.sql", "people/schema_18.sql", "egress/schema_19.sql", "idle/schema_20.sql")]
CONFIG, READY, PEER, STOP, LISTEN, SECRETS = 1, 2, 3, 4, 10, 77
DECIDE, DECIDED, BODY_GET, BODY_IS, SANDBOX_PUT, SANDBOX_RM, SANDBOX_DONE, EVENT, NOTE = 100, 101, 102, 103, 104, 105, 106, 107, 108
POLICY_NOTICE, FREEZE = 99, 109
JOB, JOB_VIEW = 152, 3
SB_OPEN, SB_OPENED, SB_CLOSE, RELOAD, RELOADED, STATUS, SIGNIN = 110, 111, 112, 113, 114, 115, 116
ROLE_LEDGER, DESK_HTTP, CONTROL = 8, 3, 4
B32 = "0123456789abcdefghjkmnpqrstvwxyz"


def message_version():
    with open(os.path.join(HERE, "../../common/msg.h")) as header:
        return int(re.search(r"MSG_VERSION = (\d+)", header.read())[1])


def span(b):
    b = b.encode() if isinstance(b, str) else b
    return struct.pack(">I", len(b)) + b


class Reader:
    def __init__(self, b):
        self.b, self.i = b, 0

    def take(self, n):
        self.i += n
        return self.b[self.i - n:self.i]

    def u(self, n):
        return int.from_bytes(self.take(n), "big")

    def span(self):
        return self.take(self.u(4))


class Chan:
    def __init__(self, sock):
        self.sock, self.buf, self.fds = sock, b"", []

    def send(self, type_, id_=0, payload=b"", fds=()):
        head = struct.pack(">IHHQ", len(payload), type_, len(fds), id_)
        if fds:
            socket.send_fds(self.sock, [head + payload], list(fds))
        else:
            self.sock.sendall(head + payload)

    def read(self):
        got, fds, _, _ = socket.recv_fds(self.sock, 1 << 20, 4)
        self.fds += fds  # of those frames that come with one, in their order
        self.buf += got
        frames = []
        while len(self.buf) >= 16:
            n, type_, _, id_ = struct.unpack(">IHHQ", self.buf[:16])
            if len(self.buf) < 16 + n:
                break
            frames.append((type_, id_, self.buf[16:16 + n]))
            self.buf = self.buf[16 + n:]
        return frames if got else None


def id_text(b):
    v, out = int.from_bytes(b, "big") << 2, ""
    for i in range(26):
        out += B32[(v >> (125 - 5 * i)) & 31]
    return out


class Ledger:
    def __init__(self, path, chan):
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.executescript("PRAGMA journal_mode=WAL;" + "".join(open(name, encoding="utf-8").read() for name in SCHEMA))
        self.chan, self.seq, self.hash, self.bodies = chan, 0, bytes(32), {}
        self.note_file = os.path.join(os.path.dirname(path), "notes.jsonl")

    def audit(self, kind, ticket=None, **more):
        self.seq += 1
        now = int(time.time() * 1000)
        text = json.dumps({"seq": self.seq, "time_ms": now, "kind": kind, "ticket": ticket, **more})
        self.hash = hashlib.sha256(self.hash + text.encode()).digest()
        self.db.execute("INSERT INTO audit VALUES (?,?,?,?,?,?,?)", (self.seq, now, kind, None, ticket, text, self.hash))
        if ticket:
            self.chan.send(EVENT, self.seq, span("ticket") + span(ticket))

    def ticket(self, tell=True, body=b"", waits=None, **kw):
        now = int(time.time() * 1000)
        id_ = id_text(os.urandom(16))
        row = dict(id=id_, state="pending", sandbox="builder", session="builder", tenant="default", method="POST",
                   scheme="https", host="api.example.com", port=443, path="/v1/things", query=None, fields_json="[]",
                   head=b"", body_size=len(body), body_sha256=hashlib.sha256(body).digest(), digest=os.urandom(32),
                   join_key=os.urandom(32), op="rest.write", effect="write", resource="", credential="", code="rule",
                   rule_id="hold-writes", rule_file="policy.yaml", rule_line=12, policy=bytes(32), summary="",
                   facts_json="[]", agent_reason="", approve_by="", dialect="problem", reason_required=0,
                   created_ms=now, expires_ms=now + 30 * 60000, expires_boot_ms=now + 30 * 60000)
        row.update(kw)
        row["id"] = id_ if "id" not in kw else kw["id"]
        names = ",".join(row)
        self.db.execute(f"INSERT INTO ticket ({names}) VALUES ({','.join('?' * len(row))})", list(row.values()))
        self.bodies[row["id"]] = body
        if waits is not None:  # since so many ms a client waits for it, or nobody does
            self.db.execute("INSERT INTO asker VALUES (?,?,?,?)", (row["id"], waits > 0, now - abs(waits), now + 40000 if waits > 0 else 0))
        if tell:
            self.audit("ticket-opened", row["id"])
        return row["id"]

    def decide(self, id_, r):
        ticket = id_text(r.take(16))
        verdict, who, channel, _how, reason, digest = r.u(1), r.span(), r.span(), r.span(), r.span(), r.take(32)
        row = self.db.execute("SELECT state, digest FROM ticket WHERE id=?", (ticket,)).fetchone()
        if row is None:
            code, state = 3, 0
        elif row[0] != "pending":
            code, state = 2, 0
        elif row[1] != digest:
            code, state = 5, 1
        else:
            code, state = 1, 2 if verdict == 1 else 3
            self.db.execute("UPDATE ticket SET state=?, decided_ms=?, decided_by=?, decided_channel=?, decided_reason=? WHERE id=?",
                            ("approved" if verdict == 1 else "denied", int(time.time() * 1000), who.decode(), channel.decode(),
                             reason.decode(), ticket))
            self.audit("ticket-decided", ticket, by=who.decode(), reason=reason.decode())
        self.chan.send(DECIDED, id_, bytes([code, state]))

    def body_get(self, id_, r):
        body = self.bodies.get(id_text(r.take(16)))
        if body is None:
            self.chan.send(BODY_IS, id_, b"\0" + struct.pack(">Q", 0) + span(b""))
        elif len(body) <= 256 * 1024:
            self.chan.send(BODY_IS, id_, b"\1" + struct.pack(">Q", len(body)) + span(body))
        else:
            fd = os.memfd_create("body")
            os.write(fd, body)
            self.chan.send(BODY_IS, id_, b"\1" + struct.pack(">Q", len(body)) + span(b""), [fd])
            os.close(fd)

    def sandbox_put(self, id_, r):
        name, session, owner, tenant, kind = (r.span().decode() for _ in range(5))
        gen, has, hash_ = r.u(8), r.u(1), r.take(32)
        labels = {r.span().decode(): r.span().decode() for _ in range(r.u(2))}
        now = int(time.time() * 1000)
        self.db.execute("INSERT OR REPLACE INTO sandbox(name,session,owner,tenant,kind,generation,token_hash,labels_json,created_ms,changed_ms) VALUES (?,?,?,?,?,?,?,?,?,?)",
                        (name, session, owner, tenant, kind, gen, hash_ if has else None, json.dumps(labels), now, now))
        self.chan.send(SANDBOX_DONE, id_, b"\1" + span(b""))

    def frame(self, type_, id_, payload):
        r = Reader(payload)
        if type_ == DECIDE:
            self.decide(id_, r)
        elif type_ == BODY_GET:
            self.body_get(id_, r)
        elif type_ == SANDBOX_PUT:
            self.sandbox_put(id_, r)
        elif type_ == SANDBOX_RM:
            self.db.execute("DELETE FROM sandbox WHERE name=?", (r.span().decode(),))
            self.chan.send(SANDBOX_DONE, id_, b"\1" + span(b""))
        elif type_ == FREEZE:
            frozen = {"by": (r.u(1), r.span().decode())[1], "reason": r.span().decode(), "since_ms": int(time.time() * 1000)}
            self.db.execute("DELETE FROM meta WHERE key='frozen'")
            if payload[0]:
                self.db.execute("INSERT INTO meta(key,value) VALUES('frozen',?)", (json.dumps(frozen),))
            self.chan.send(FREEZE, id_, b"\1" + span(""))
        elif type_ == NOTE:
            kind, text = r.span().decode(), r.span().decode()
            json.loads(text)
            with open(self.note_file, "a", encoding="utf-8") as f:
                f.write(kind + " " + text + "\n")


def start_viewer(desk, fd):
    """What opens a picture, with its channel to the desk as descriptor 3."""
    program = os.path.join(os.path.dirname(os.path.abspath(desk)), "countersign-view-picture")
    subprocess.Popen(["/bin/sh", "-c", 'exec "$0" 3<&0 </dev/null', program], stdin=fd)
    os.close(fd)


def parent_frame(chan, args, type_, id_, payload):
    directory = args.dir
    if type_ == JOB and payload == bytes([JOB_VIEW]):
        start_viewer(args.desk, chan.fds.pop(0))
    elif type_ == SIGNIN:
        print("signin " + Reader(payload).span().decode(), flush=True)
    elif type_ == READY:
        print("ready", flush=True)
    elif type_ == SB_OPEN:
        chan.send(SB_OPENED, id_, b"\1" + span(directory + "/run/" + Reader(payload).span().decode() + ".sock"))
    elif type_ == RELOAD:
        chan.send(RELOADED, id_, b"\0" + span("policy.yaml:3:5: unknown key `alow`; did you mean `allow`?"))
    elif type_ == STATUS:
        chan.send(STATUS, id_, span(json.dumps({"version": "0", "roles": {"desk": "up", "ledger": "up"}})))


def listeners(directory, port):
    http = socket.socket()
    http.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    http.bind(("127.0.0.1", port))
    control = socket.socket(socket.AF_UNIX)
    control.bind(directory + "/control.sock")
    os.chmod(directory + "/control.sock", 0o600)
    for s in (http, control):
        s.listen(64)
        s.setblocking(False)
    return http, control


def notice():
    """The policy is pinned, and its last change was refused, for a reason that somebody else wrote."""
    import sample_tickets
    now = int(time.time() * 1000)
    why = 'policy_test.yaml:6:5: "a write waits" failed: decide: wanted hold, got allow by rule ' + "\n".join(sample_tickets.XSS) + sample_tickets.SPOOF
    return (span("4f0c" * 16) + span("uid 1000") + struct.pack(">Q", now - 3 * 3600 * 1000)
            + span("rollback-end") + span("uid 1000") + struct.pack(">Q", now - 240000) + span(why))


def start(args):
    store = os.path.join(args.dir, "store")
    os.makedirs(store, exist_ok=True)
    http, control = listeners(args.dir, args.port)
    url = f"http://localhost:{http.getsockname()[1]}"
    ours, theirs = socket.socketpair()
    ledger_ours, ledger_theirs = socket.socketpair()
    ledger = Ledger(store + "/ledger.db", Chan(ledger_ours))
    import sample_tickets
    sample_tickets.fill(ledger)
    frozen = {"by": "uid 0", "reason": "<img src=x onerror=alert(1)> an incident", "since_ms": int(time.time() * 1000) - 90000}
    ledger.db.execute("INSERT INTO meta(key,value) VALUES('frozen',?)", (json.dumps(frozen),))

    def as_three():
        os.dup2(theirs.fileno(), 3)
        os.set_inheritable(3, True)

    child = subprocess.Popen([args.desk], preexec_fn=as_three, close_fds=False, stdin=subprocess.DEVNULL)
    theirs.close()
    chan = Chan(ours)
    config = {"db": store + "/ledger.db", "desk_url": url, "proxy_url": "http://127.0.0.1:3128", "ca": args.dir + "/ca.crt",
              "bundle": args.dir + "/bundle.crt", "state_dir": args.dir, "owner_uid": str(os.getuid()), "boot": "b0",
              "mode": "shadow"}
    chan.send(CONFIG, 0, struct.pack(">IH", message_version(), len(config)) + b"".join(span(k) + span(v) for k, v in config.items()))
    chan.send(LISTEN, 0, bytes([DESK_HTTP]) + span("desk"), [http.fileno()])
    chan.send(LISTEN, 0, bytes([CONTROL]) + span("control"), [control.fileno()])
    chan.send(PEER, 0, bytes([ROLE_LEDGER]) + struct.pack(">Q", 0) + span("") + struct.pack(">Q", 1), [ledger_theirs.fileno()])
    ledger_theirs.close()
    chan.send(SECRETS, 0, struct.pack(">H", 1) + span("github"))
    chan.send(POLICY_NOTICE, 0, notice())
    return child, chan, ledger


def serve(args):
    child, chan, ledger = start(args)
    commands = sys.stdin
    while True:
        ready, _, _ = select.select([chan.sock, ledger.chan.sock, commands], [], [])
        for c in (chan, ledger.chan):
            if c.sock not in ready:
                continue
            frames = c.read()
            if frames is None:
                return child
            for type_, id_, payload in frames:
                if c is chan:
                    parent_frame(chan, args, type_, id_, payload)
                else:
                    ledger.frame(type_, id_, payload)
        if commands in ready:
            line = commands.readline()
            if not line:
                return child
            if line.strip() == "ticket":  # one more, for the live list
                print("ticket " + ledger.ticket(summary="One that came later"), flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--desk", required=True)
    ap.add_argument("--dir", required=True)
    ap.add_argument("--port", type=int, default=0)
    args = ap.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    child = None
    try:
        child = serve(args)
    finally:
        if child:
            child.terminate()
            status = child.wait(5)
            if status not in (0, -signal.SIGTERM):
                sys.exit(f"the desk ended with status {status}")


if __name__ == "__main__":
    sys.path.insert(0, HERE)
    main()
