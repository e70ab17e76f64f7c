#!/usr/bin/env python3
"""An agent whose own client can ask its user, by the Model Context Protocol of 2026-07-28: what is held leads that user to the
ticket's page, and comes again by itself. Client and server are the packages of the protocol itself."""
import json
import re
import subprocess

import room  # noqa: F401
from gateway import Gateway, upstream_yaml
from harness import HERE, main, test
from ports import free_port
from servers import npm_modules
import certs

HOST = "mcp.test"


class Shop:
    """The server, and a gateway before it that holds each payment."""

    def __init__(self, lab, wait):
        self.lab, self.port, self.log, self.clients = lab, free_port(), lab.dir / "paid", 0
        self.modules = npm_modules(HERE / "npm") / "node_modules"
        ca = certs.CA(lab.dir / "ca")
        cert, key = ca.leaf(HOST)
        config = lab.dir / "mcp.json"
        config.write_text(json.dumps({"port": self.port, "cert": str(cert), "key": str(key), "log": str(self.log)}))
        lab.start(["node", HERE / "clients/mcp_rounds.cjs", self.modules, config], ready="ready")
        place = f"host: {HOST}, port: {self.port}"
        self.gw = Gateway(lab, f"""version: 1
name: asks
packs: [{{ pack: mcp@1, hosts: ["{HOST}:{self.port}"] }}]
upstreams:
{upstream_yaml(HOST, self.port, ca.cert)}rules:
  - {{ id: look, match: {{ {place}, effect: read }}, decide: allow }}
  - {{ id: pay, match: {{ {place}, effect: write }}, decide: hold, approve: {{ within: 2h, inline_wait: {wait} }} }}
""")

    def client(self, elicitation):
        """One that says it can ask so; it has listed the tools."""
        env = self.gw.client_env()
        process = self.lab.start(["node", HERE / "clients/elicits.cjs", self.modules, f"https://{HOST}:{self.port}/mcp",
                                  json.dumps({"elicitation": elicitation})], env=env, stdin=subprocess.PIPE, ready="speaks 2026-07-28 pay")
        return process

    def paid(self):
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []


def say(client, line):
    client.popen.stdin.write(line.encode() + b"\n")
    client.popen.stdin.flush()


def end(client):
    client.popen.stdin.close()
    assert client.wait() == 0


@test()
def the_agents_own_client_leads_its_user_to_the_page(lab):
    shop = Shop(lab, "30s")
    client = shop.client({"url": {}})
    say(client, "pay 5")
    asked = client.wait_line(r"asked url (http\S+) ([^\n]*)\n")
    ticket = shop.gw.pending()["id"]
    assert asked[1].decode() == f"{re.match('https?://[^/]+', shop.gw.page)[0]}/tickets/{ticket}", asked[1]
    assert b"Who may decide it does so on its page" in asked[2], asked[2]
    say(client, "accept")
    assert shop.paid() == [] and [t["id"] for t in shop.gw.tickets()] == [ticket]
    shop.gw.approve(ticket)
    client.wait_line(r"paid 5\n")
    call, = shop.paid()
    assert call["params"]["arguments"] == {"amount": 5} and not {"requestState", "inputResponses"} & set(call["params"]), call
    # What was done is done: the same payment again is another question, which its user declines where it is asked.
    say(client, "pay 6")
    client.wait_line(r"asked url http\S+[^\n]*\n(?s:.*)asked url http\S+")
    other = shop.gw.pending()["id"]
    say(client, "decline")
    client.wait_line(r"failed [^\n]*Cancelled by its own client")
    shown = shop.gw.show(other)
    assert shown["state"] == "cancelled" and shown["decided_by"] == "client", shown
    assert len(shop.paid()) == 1 and shop.gw.tickets() == []
    end(client)


@test()
def a_client_that_shows_forms_and_one_that_shows_nothing(lab):
    lab.leaves("pending")
    shop = Shop(lab, "1s")
    form = shop.client({"form": {}})
    say(form, "pay 7")
    form.wait_line(r"asked form answer,reason [^\n]*Page: http")
    say(form, "cancel")  # only closed: it is held as ever, and the agent is told so
    form.wait_line(r"failed [^\n]*Repeat the same request")
    assert shop.gw.pending()["state"] == "pending"
    say(form, "pay 7")
    form.wait_line(r"asked form(?s:.*)asked form")
    say(form, "decline")
    form.wait_line(r"failed [^\n]*Cancelled by its own client")
    # What is said in the form comes with the denial, to the agent and to the record.
    say(form, "pay 9")
    form.wait_line(r"asked form(?s:.*)asked form(?s:.*)asked form")
    other = shop.gw.pending()["id"]
    say(form, "deny not this bill")
    form.wait_line(r"failed [^\n]*Cancelled by its own client[^\n]*not this bill")
    shown = shop.gw.show(other)
    assert shown["state"] == "cancelled" and shown["decided_reason"].endswith("own client, and said: not this bill"), shown
    assert b"not this bill\n            (untrusted: written by whoever asks)\n" in shop.gw.cli("approvals", "show", other, rc=0).out
    # Nobody decides: it comes again by itself, and in the end the agent is told as others are.
    say(form, "pay 7")
    form.wait_line(r"asked form(?s:.*)asked form(?s:.*)asked form(?s:.*)asked form")
    say(form, "wait please do it")
    form.wait_line(r"failed (?s:.*)failed (?s:.*)failed (?s:.*)failed [^\n]*Repeat the same request")
    assert len([r for r in shop.gw.audit() if r.get("code") == "held"]) >= 8
    plain = shop.client({"other": {}})
    say(plain, "pay 8")
    plain.wait_line(r"failed [^\n]*Repeat the same request")
    assert shop.paid() == [] and len(shop.gw.tickets()) == 2
    end(form)
    end(plain)


if __name__ == "__main__":
    main()
