#!/usr/bin/env python3
"""What a sandbox can do to those who decide (attacks.tsv E9, E21, E22, E33, E34, E35): many requests, large ones, words for the
record, and every way to their page."""
import http.client
import json
import re
import threading
import time

import room  # noqa: F401
from attack import Rig, everywhere
from gateway import Page
from harness import PATIENCE, main, test

REQUESTS = 10000
CLIENTS = 8
CAP = 64  # of one sandbox, by default


def port_of(rig):
    return int(rig.gw.page.rpartition(":")[2].partition("/")[0])


@everywhere("E9 E10")
def no_way_in_leads_to_the_desk(rig, transport):
    """By the proxy, to each name and number that could be it; and what a sandbox holds opens nothing there."""
    wire, port = rig.open(transport), port_of(rig)
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", f"0.0.0.0:{port}", f"0:{port}", f"127.1:{port}", f"[::ffff:127.0.0.1]:{port}",
                 f"LOCALHOST.:{port}", f"desk:{port}", f"countersign.internal:{port}", f"upstream.test:{port}"):
        for path in ("/", "/api/v1/tickets", "/sign-in?t=x"):
            got = rig.plain(f"GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\n".encode() + wire.auth.encode() + b"Connection: close\r\n\r\n", transport)
            rig.refused(f"E9 {host}{path}", got, closed=False)
            assert b"<html" not in got.data and b'"tickets"' not in got.data, got
        got = rig.plain(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n".encode() + wire.auth.encode() + b"\r\n", transport, timeout=PATIENCE, eof=True)
        rig.holds(f"E9 a tunnel to {host}", not any(200 <= s < 300 for s in got.status) or not got.data.partition(b"\r\n\r\n")[2], got)
    for fields in ({"Authorization": rig.gw.basic()}, {"Cookie": "countersign=" + rig.gw.token("agent")}, {"Authorization": "Bearer " + rig.gw.token("agent")},
                   {"Cookie": "__Host-countersign=" + rig.gw.token("agent")}, {"Proxy-Authorization": rig.gw.basic()}):
        for path in ("/", "/api/v1/tickets", "/history", "/me"):
            conn = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            conn.request("GET", path, headers={"Host": f"localhost:{port}", **fields})
            answer = conn.getresponse()
            text = answer.read()
            conn.close()
            rig.holds(f"E10 {path} with {next(iter(fields))}", answer.status in (303, 403, 404) and b"class=\"card" not in text, (answer.status, text[:300]))


@test("E21 flood", "E22 flood", "E34 flood")
def ten_thousand_writes_of_one_are_sixty_four_questions(lab):
    lab.leaves("pending", "denied")
    rig = Rig(lab, hold="inline_wait: 0s, expires: 2h")  # and the pending that there is by default
    counts, lock = {}, threading.Lock()

    def flood(k):
        wire = rig.open("unix", who="flood")
        for n in range(k, REQUESTS, CLIENTS):
            got = wire.talk(wire.head("POST", f"/h/{n}", "Content-Length: 1") + b"x", 1)
            with lock:
                counts[got.status[0]] = counts.get(got.status[0], 0) + 1
            if got.closed or b"Connection: close" in got.data:
                wire.close()
                wire = rig.open("unix", who="flood")
        wire.close()
    page = Page(rig.gw)
    threads = [threading.Thread(target=flood, args=(k,)) for k in range(CLIENTS)]
    for t in threads:
        t.start()
    lab.wait_for("the flood", lambda: counts.get(429, 0) > 100)
    neighbour = rig.open("connect")
    rig.listener("run-flood")
    got = neighbour.talk(neighbour.head("POST", "/h/mine", "Content-Length: 1") + b"x", 1)
    assert got.status == [403] and b"Countersign-Ticket: " in got.data, got  # it is heard in the middle of it
    began = time.process_time()
    answer, listed = page.ask("GET", "/")
    assert answer.status == 200 and len(listed) < 400000, (answer.status, len(listed))
    mine = next(t["id"] for t in rig.gw.tickets() if t["path"] == "/h/mine")
    assert mine in page.ask("GET", f"/tickets/{mine}")[1].decode() and time.process_time() >= began
    rig.gw.deny(mine, "seen in all of it")
    for t in threads:
        t.join()
    assert sum(counts.values()) == REQUESTS and counts == {403: CAP, 429: REQUESTS - CAP}, counts
    tickets = rig.gw.tickets()
    assert len(tickets) == CAP and {t["sandbox"] for t in tickets} == {"run-flood"}, len(tickets)
    again = rig.open("unix", who="flood")
    known = tickets[0]
    rig.gw.deny(known["id"], "no")
    for _ in range(20):  # after a no the same question is answered without asking anybody
        got = again.talk(again.head("POST", known["path"], "Content-Length: 1") + b"x", 1)
        assert got.status == [403] and b"denied" in got.data, got
    assert len(rig.gw.tickets()) == CAP - 1 and rig.requests() == []
    rows = re.findall(r'<li class="card[^"]*"', page.ask("GET", "/")[1].decode())
    assert 0 < len(rows) < CAP, "a flood of one kind is gathered"
    rig.settle()


@test("E34 large", "E17 large")
def fifty_megabytes_are_refused_or_shown_in_part_and_never_block_others(lab):
    lab.leaves("pending")
    rig = Rig(lab, hold="inline_wait: 0s, expires: 2h, pending: 1000")
    page = Page(rig.gw)
    body = b"line of padding\n" * (50 << 16) + b'"delete": "everything"\n'
    assert len(body) > 50 << 20
    wire = rig.open("unix", who="large")
    got = wire.talk(wire.head("POST", "/h/large", f"Content-Length: {len(body)}") + body, 1)
    held = b"Countersign-Ticket: " in got.data
    assert held or got.status in ([413], []), got
    assert rig.requests() == []
    if held:
        ticket = rig.gw.pending()["id"]
        answer, shown = page.ask("GET", f"/tickets/{ticket}")
        assert answer.status == 200 and len(shown) < 1 << 20 and b'class="approve"' not in shown, (answer.status, len(shown))
        answer, whole = page.ask("GET", f"/tickets/{ticket}/body")
        assert answer.status == 200 and whole == body
    small = rig.open("unix", who="other")
    rig.stopped("a neighbour", small.talk(small.head("POST", "/h/small", "Content-Length: 1") + b"x", 1))
    assert page.ask("GET", "/")[0].status == 200
    desk = rig.gw.pid("desk")
    conn = http.client.HTTPConnection("127.0.0.1", port_of(rig), timeout=PATIENCE)
    conn.request("POST", "/sign-in", headers={"Host": f"localhost:{port_of(rig)}", "Origin": f"http://localhost:{port_of(rig)}",
                                              "Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(50 << 20)})
    assert conn.getresponse().status == 413
    conn.close()
    assert rig.gw.pid("desk") == desk


SAID = ('no\n{"kind":"ticket-decided","by":"root"}', "=cmd|'/c calc'!A1", "\x1b]0;owned\x07\x1b[31mred", '","by":"root","x":"', "a\r\nCountersign-Decision: allow\r\n\r\n",
        "\u202eevil\u2066", "@SUM(1)\t-1+1", "\u2028line", "<b>no</b>")


@test("E33 words", "E35 desk")
def words_for_the_record_stay_words(lab):
    lab.leaves("pending", "denied")
    rig = Rig(lab, hold="inline_wait: 0s, expires: 2h, pending: 1000")
    page = Page(rig.gw)
    for n, words in enumerate(SAID):
        wire = rig.open("unix", who="a")
        path = "/h/" + "".join(f"%{b:02X}" for b in b"\r\n{\"kind\":1}\x1b[2J") + str(n) if n % 2 else f"/h/{n}"
        got = wire.talk(wire.head("POST", path, "Content-Length: 1", "X-Note: =1+1\t,\"x\"") + b"x", 1)
        ticket = re.search(rb"Countersign-Ticket: (\w+)", got.data)
        if not ticket:
            continue
        ticket = ticket[1].decode()
        for _ in range(3):  # E35: looked at by whatever follows links, nothing of it changes
            for where in (f"/tickets/{ticket}", f"/tickets/{ticket}/approve", f"/tickets/{ticket}/deny", f"/tickets/{ticket}/body"):
                page.ask("GET", where)
        assert rig.gw.show(ticket)["state"] == "pending"
        status, said = rig.gw.control("POST", f"/api/v1/tickets/{ticket}/deny", {"digest": rig.gw.show(ticket)["digest"], "reason": words})
        if status != 200:
            assert status in (400, 422), (words, status, said)  # refused in words is as good
            rig.gw.deny(ticket, "no")
            continue
        record = rig.gw.recorded(kind="ticket-decided", ticket=ticket)
        assert len(record) == 1 and record[0]["by"] != "root", record
        got = wire.talk(wire.head("POST", path, "Content-Length: 1", "X-Note: =1+1\t,\"x\"") + b"x", 1)
        head = got.data.partition(b"\r\n\r\n")[0].decode("latin-1")
        assert got.status == [403] and not re.search("(?m)^Countersign-Decision: allow", head) and "\x1b" not in head, got
        json.loads(got.data.partition(b"\r\n\r\n")[2])
        for kind in ((), ("--json",)):
            out = rig.gw.cli("audit", "tail", "-n", "5", *kind, rc=0).out + rig.gw.cli("approvals", "show", ticket, *kind, rc=0).out
            assert kind or not re.search("[\u202a-\u202e\u2066-\u2069]", out.decode()), (words, out)
            assert b"\x1b" not in out and b"\r" not in out, (words, out)
    rows = rig.gw.audit()
    assert all(isinstance(r, dict) for r in rows) and rig.gw.cli("audit", "verify").rc == 0
    for line in page.ask("GET", "/history/export")[1].decode().splitlines():
        json.loads(line)
    link = rig.gw.cli_json("signin")["url"]
    for _ in range(3):  # a preview of a link signs nobody in, and uses nothing up
        answer, _ = page.ask("GET", "/" + link.split("/", 3)[3])
        assert answer.status == 200 and not answer.getheader("Set-Cookie")
    assert page.ask("POST", "/sign-in", "t=" + link.partition("t=")[2])[0].status == 303


main()
