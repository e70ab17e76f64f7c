#!/usr/bin/env python3
"""Whether the agent still waits: said first, on the page, in the terminal and by the API; it decides what a yes does."""
import json
import re
import resource
import socket

from room import Person, command, setup, start, words
from gateway import Page
from harness import PATIENCE, main, test


def client(gw, ticket):
    return gw.show(ticket)["client"]


def asker(page, ticket):
    """The line at the top of a ticket's page."""
    answer, text = page.ask("GET", f"/tickets/{ticket}")
    assert answer.status == 200, text
    main_part = text.decode().partition("<main")[2]
    line = re.search(r'<p class="asker[^"]*" id="asker".*?</p>', main_part, re.S)
    assert line and main_part.index(line[0]) < main_part.index("<h1"), main_part[:2000]
    return words(line[0])


@test("E30 page", "E30 cli")
def a_ticket_says_whether_its_client_waits_or_since_when_it_is_gone(lab):
    up, gw = setup(lab)
    page = Page(gw)
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    waits = lab.wait_for("until when it waits", lambda: client(gw, ticket) if client(gw, ticket).get("until_ms") else None)
    assert waits["waits"] and 0 < waits["until_ms"] - waits["since_ms"] <= 610000, waits
    assert asker(page, ticket) == "The agent waits: a yes sends this now."
    assert "Agent       waits: a yes sends this now" in gw.cli("approvals", "show", ticket, rc=0).out.decode()
    assert gw.tickets()[0]["client"]["waits"]
    assert b"agent waits" in page.ask("GET", "/")[1]
    agent.signal(9)
    agent.wait()
    gone = lab.wait_for("the client is gone", lambda: None if client(gw, ticket)["waits"] else client(gw, ticket))
    assert gone["since_ms"] >= waits["since_ms"] and "until_ms" not in gone, gone
    line = asker(page, ticket)
    assert re.fullmatch(r"The agent left at 20[-\d]+ [:\d]+ UTC, \d+ \w+ ago: after a yes this is sent when it asks again\.", line), line
    assert re.search(r"Agent       left at 20[-\d: ]+: after a yes this is sent when it asks again", gw.cli("approvals", "show", ticket, rc=0).out.decode())
    assert b"agent left" in page.ask("GET", "/")[1]
    gw.approve(ticket)
    assert up.effects() == {}, "nobody waits: nothing leaves"
    assert asker(page, ticket).endswith(": approved, this is sent when it asks again.")
    again, env = command(gw, up, "/things", "--data-binary", "a=1")
    assert b"HTTP/1.1 200" in lab.run(again, env=env, rc=0).out
    assert up.effects() == {"POST /things": 1}
    assert "client" not in gw.show(ticket), "of what was sent nobody waits"


@test("E30 restart")
def who_was_told_to_ask_again_is_gone_and_so_is_everybody_after_a_restart(lab):
    lab.leaves("pending")
    up, gw = setup(lab, hold="inline_wait: 1s, expires: 2h")
    told, env = command(gw, up, "/things", "--data-binary", "a=1")
    lab.run(told, env=env, rc=0)
    ticket = gw.pending()["id"]
    first = lab.wait_for("nobody waits", lambda: None if client(gw, ticket)["waits"] else client(gw, ticket))
    gw.process.signal(9)
    gw.process.wait()
    gw.up()
    assert client(gw, ticket) == first, "since when it is gone outlives a restart"


@test("E30 restart")
def a_client_that_waited_at_a_restart_waits_no_more(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    lab.wait_for("it waits", lambda: client(gw, ticket).get("until_ms"))
    gw.process.signal(9)
    gw.process.wait()
    agent.wait()
    gw.up()
    assert not client(gw, ticket)["waits"]


@test("E30 events")
def the_page_hears_of_it(lab):
    """The script is told by an event of its own, which the terminal's list of changes does not take for a decision."""
    up, gw = setup(lab)
    page = Page(gw)
    stream = lab.start(["curl", "-sSN", "-b", page.cookie, "-H", f"Host: {page.host}", f"{page.origin}/api/v1/events"])
    stream.wait_line(r"event: hello")
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    ticket = gw.pending()["id"]
    agent.signal(9)
    agent.wait()
    lab.wait_for("it is gone", lambda: not client(gw, ticket)["waits"])
    stream.wait_line(r"event: asker\r?\n?")
    told = [json.loads(line[6:]) for line in stream.seen.decode().splitlines() if line.startswith("data: ") and "asker" in line]
    assert {"kind": "asker", "subject": ticket} in told, told
    gw.deny(ticket, "no")
    stream.signal(15)
    stream.wait()


def look(page):
    """One more browser that looks: the stream's socket, or the words with which it is turned away."""
    sock = socket.create_connection(("localhost", int(page.origin.rpartition(":")[2])), PATIENCE)
    sock.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {page.host}\r\nCookie: {page.cookie}\r\nSec-Fetch-Site: same-origin\r\n\r\n".encode())
    said = b""
    while b"event: hello" not in said and b"too many event streams" not in said:
        more = sock.recv(4096)
        assert more, said
        said += more
    return sock if b"event: hello" in said else said


@test()
def a_thousand_may_look_and_none_takes_the_places_of_all(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    page, files = Page(gw), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
    looking = []
    while isinstance(one := look(page), socket.socket):
        looking.append(one)
    assert len(looking) == 1152, len(looking)  # three quarters of what there is: more is for those who have next to none
    assert page.ask("GET", "/")[0].status == 200
    other = Person(gw, link=gw.cli_json("operator", "add", "alice")["url"])
    looking.append(look(other))
    assert isinstance(looking[-1], socket.socket), looking[-1]
    agent = start(lab, gw, up, "/things", "--data-binary", "a=1")
    gw.pending()
    for sock in (looking[0], looking[-1]):
        said = b""
        while b"event: ticket" not in said:
            said += sock.recv(4096)
    for sock in looking:
        sock.close()
    agent.signal(9)
    agent.wait()
    lab.wait_for("a place", lambda: isinstance(look(page), socket.socket))


main()
