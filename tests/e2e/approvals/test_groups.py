#!/usr/bin/env python3
"""A burst of requests of one shape: one row of the list, decided together on its own page, each by its own digest; and
what became of them in the history."""
import json
import re

from room import forms, send, setup, start, words
from gateway import Page
from harness import main, test

PEOPLE = [("ann", "member"), ("bob", "member"), ("eve", "owner"), ("joe", "member"), ("kim", "member")]


def burst(lab, gw, up):
    agents = []
    for n, (name, role) in enumerate(PEOPLE):
        agents.append(start(lab, gw, up, "/v1/invitations", "-H", "Content-Type: application/json",
                            "--data-binary", json.dumps({"email": f"{name}@e.example", "role": role})))
        lab.wait_for("it is held", lambda: len(gw.tickets()) > n)
    return agents


def text_of(page, path):
    answer, text = page.ask("GET", path)
    assert answer.status == 200, text
    return text.decode()


@test("E3 page", "E21 page", "E25 page")
def a_burst_is_decided_together_after_it_was_opened(lab):
    up, gw = setup(lab)
    page = Page(gw)
    agents = burst(lab, gw, up)
    listed = text_of(page, "/")
    rows = re.findall(r'<li class="card group.*?</li>', listed, re.S)
    assert len(rows) == 1 and listed.count('<li class="card') == 1, listed
    assert "5 alike:" in rows[0] and "<form" not in rows[0] and "5 of 5 agents wait" in rows[0], rows[0]
    where = re.search(r'href="(/groups/[^"]+)"', rows[0])[1]
    opened = text_of(page, where)
    table = re.search(r"<tbody>(.*?)</tbody>", opened, re.S)[1].split("</tr>")[:5]
    odd = [n for n, row in enumerate(table) if 'class="odd"' in row]
    assert odd == [2] and "owner" in words(table[2]) and "odd one" in words(table[2]), [words(row) for row in table]
    assert [bool(re.search(r" checked", row)) for row in table] == [True, True, False, True, True]
    ids = [re.search(r'/tickets/([^"]+)', row)[1] for row in table]
    gw.deny(ids[1], "not bob")  # meanwhile, elsewhere
    agents[1].wait()
    action, hidden = forms(opened)["group"]
    picked = {f"r{n}": "1" for n in (0, 1, 3)}
    forged = [(n, v.replace(ids[0], ids[2]) if n == "rows" else v) for n, v in hidden]
    assert send(page, (action, forged), verdict="approve", **picked)[0] == 403, "the form is bound to what was shown"
    assert up.effects() == {}
    status, said = lab.wait_for("the form is armed", lambda: (lambda got: got if got[0] != 409 else None)(
        send(page, (action, hidden), verdict="approve", reason="as every month", **picked)))
    assert status == 200 and "<h1>2 of 3 approved</h1>" in said, said
    assert re.search(ids[1][:10] + r".*not pending any more", words(said)), words(said)
    for n in (0, 3):
        assert agents[n].wait() == 0
    assert up.effects() == {"POST /v1/invitations": 2}, up.effects()
    sent = sorted(json.loads(up.body(r["n"]))["email"] for r in up.requests())
    assert sent == ["ann@e.example", "joe@e.example"], sent
    _, left = gw.pending(2)[0], gw.tickets()
    assert {t["id"] for t in left} == {ids[2], ids[4]}, "what was not picked still waits"
    assert '<li class="card group' not in text_of(page, "/"), "two of a kind are no group"
    for ticket, agent in ((ids[2], agents[2]), (ids[4], agents[4])):
        gw.deny(ticket, "no")
        agent.wait()
    found = text_of(page, "/history?q=every+month&state=done")
    assert found.count('<li class="row past">') == 2 and ids[0] in found and ids[3] in found, words(found)
    lines = page.ask("GET", "/history/export?sandbox=agent")[1].decode().splitlines()
    assert {json.loads(line)["id"] for line in lines} == set(ids), lines


main()
