"""The gateway under test: `countersign up` with a policy of the test's, and the operator's side of it.

    gw = Gateway(lab, policy_text, secrets={"demo-git": b"user:password"})
    Gateway(lab, policy_text, listeners=['{ name: e2b, socks5: "127.0.0.1:0", identity: token }'])   # beside agents
    env = gw.client_env("ci-7")            # what `countersign sandbox create` would set, for a client on this host
    ticket = gw.pending()                  # waits for one, gives its facts
    gw.approve(ticket["id"]); gw.deny(ticket["id"], "words")

PREFIX/bin must be first in PATH (./check arranges it).
"""
import base64
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import urllib.parse

WORDS = "Pushes to main are for people, ask in #release."
AGENTS = '{ name: agents, http: "127.0.0.1:0", identity: token }'
ROLES = ("ledger", "keeper", "resolver", "judge", "carrier", "lobby", "desk")


class Gateway:
