#!/usr/bin/env python3
"""What deletes needs its name, typed; and what the page blocks is refused on every way that a yes may come."""
import gzip

from room import forms, send, setup, start
from gateway import Page
from harness import main, test


@test("E13 page", "E27 api", "E27 cli")
def what_deletes_is_approved_with_its_name_alone(lab):
    up, gw = setup(lab)
    page = Page(gw)
    agent = start(lab, gw, up, "/repos/acme/app", method="DELETE")
    ticket = gw.pending()
    assert ticket["effect"] == "delete" and ticket["reading"]["name"] == "app", ticket
    path = f"/api/v1/tickets/{ticket['id']}/approve"
    for name in ({}, {"name": ""}, {"name": "App"}, {"name": "app/"}, {"name": ticket["id"]}):
        status, said = gw.control("POST", path, {"digest": ticket["digest"], **name})
        assert status == 422 and '"app"' in said["detail"], (name, status, said)
    for more in ((), ("--name", "acme")):
        done = gw.cli("approvals", "approve", ticket["id"], *more)
        assert done.rc == 1 and b'a yes, "app"' in done.err, done.text()
    _, text = page.ask("GET", f"/tickets/{ticket['id']}")
    form = forms(text.decode())["approve"]
    assert '<input id="name" name="name"' in text.decode()
    lab.wait_for("the form is armed", lambda: send(page, form)[0] == 422)  # sooner it is refused, for it came too fast
    status, said = send(page, form, name="acme")
    assert status == 422 and "another name" in said, said
    assert gw.show(ticket["id"])["state"] == "pending" and up.effects() == {}
    status, where = send(page, form, name=" app ")
    assert status == 303, where
    assert agent.wait() == 0
    assert up.effects() == {"DELETE /repos/acme/app": 1}, up.effects()


@test("E27 deny")
def a_no_needs_no_name(lab):
    up, gw = setup(lab)
    agent = start(lab, gw, up, "/repos/acme/app", method="DELETE")
    gw.deny(gw.pending()["id"], "no")
    agent.wait_line(r"Denied by")
    agent.wait()
    assert up.effects() == {}


@test("E19 api", "E19 cli", "E19 page")
def what_the_page_blocks_the_terminal_and_the_api_refuse(lab):
    up, gw = setup(lab)
    page = Page(gw)
    twice = lab.dir / "twice.gz"
    twice.write_bytes(gzip.compress(gzip.compress(b'{"n":1}', mtime=0), mtime=0))
    agent = start(lab, gw, up, "/things", "-H", "Content-Type: application/json", "-H", "Content-Encoding: gzip",
                  "--data-binary", f"@{twice}")
    ticket = gw.pending()
    assert ticket["reading"]["blocks"], ticket["reading"]
    status, said = gw.control("POST", f"/api/v1/tickets/{ticket['id']}/approve", {"digest": ticket["digest"]})
    assert status == 409 and "cannot be shown" in said["detail"], said
    done = gw.cli("approvals", "approve", ticket["id"])
    assert done.rc == 1 and b"what cannot be shown cannot be approved" in done.err, done.text()
    shown = gw.cli("approvals", "show", ticket["id"], rc=0).out
    assert b"Blocked     what cannot be shown cannot be approved" in shown, shown
    _, text = page.ask("GET", f"/tickets/{ticket['id']}")
    have = forms(text.decode())
    assert "approve" not in have and gw.show(ticket["id"])["state"] == "pending"
    gw.deny(ticket["id"], "send it as it is")  # a no is always possible
    agent.wait()
    assert up.effects() == {}


main()
