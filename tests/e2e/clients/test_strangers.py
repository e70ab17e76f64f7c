#!/usr/bin/env python3
"""Programs that speak neither HTTP/1.1 nor TLS: what each prints itself, and what the operator reads; and Debian's Chromium, which needs
more than variables to work in a sandbox."""
import glob
import secrets
import shutil

import room  # noqa: F401
from gateway import Gateway, program, simple_policy
from harness import Skip, main, test

H2 = """require("http2").connect(process.argv[1]).on("error", e => { console.log(e.code, e.message); process.exit(1); });"""
ONLY = "Only HTTP and HTTPS pass the gateway of this sandbox."


class Inside:
    """A gateway with one upstream, and commands in a captured sandbox of it."""

    def __init__(self, lab):
        self.lab, self.work, self.up = lab, lab.dir / "work", lab.upstream()
        self.work.mkdir()
        self.gw = Gateway(lab, simple_policy(self.up), {"api": lab.canary(secrets.token_urlsafe(32)).encode()})

    def __call__(self, *words):
        if not shutil.which(str(words[0])):
            raise Skip(f"{words[0]} of Debian")
        done = self.lab.run([program(), "run", "--quiet", "--state-dir", self.gw.state, "--workspace", self.work, "--",
                             "sh", "-c", '"$@"; sleep 1', "sh", *map(str, words)])  # what is refused is counted four times a second
        return " ".join(done.both.decode(errors="replace").split())

    def told(self, code, words):
        """In the counts of `status`, in the audit, and by the doctor."""
        self.lab.wait_for(f"{code} is counted", lambda: any(c == code for _, c in self.gw.refused()))
        self.gw.recorded(code=code)
        story = " ".join(self.gw.cli("doctor").out.decode().split())
        assert words in story, story

    def logs(self, words):
        self.lab.wait_for(f"the log to say: {words}", lambda: words.encode() in self.gw.process.seen)


@test()
def ssh_prints_why(lab):
    inside = Inside(lab)
    said = inside("/usr/bin/ssh", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                  "git@git.test", "git-upload-pack app")
    assert ONLY in said and "For Git use https://HOST/PATH" in said, said
    inside.told("ssh", "a program that speaks SSH")
    assert inside.up.requests() == []


@test()
def psql_prints_why(lab):
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/psql"))
    if not found:
        raise Skip("psql (postgresql-client of Debian)")
    inside = Inside(lab)
    said = inside(found[-1], "-h", "db.test", "-U", "me", "-d", "app", "-c", "select 1")
    assert "FATAL:" in said and ONLY in said, said
    said = inside(found[-1], "host=db.test user=me dbname=app sslmode=require")
    assert "server does not support SSL" in said, said
    inside.told("postgresql", "a program that speaks PostgreSQL")


@test()
def a_client_of_http2_alone_can_name_it(lab):
    inside = Inside(lab)
    at = f"{inside.up.name}:{inside.up.port}"
    said = inside("/usr/bin/openssl", "s_client", "-alpn", "h2", "-connect", at, "-servername", inside.up.name)
    assert "no application protocol" in said, said
    inside.told("tls-alpn", "HTTP/2 alone, as gRPC does")
    inside.logs("the client offers HTTP/2 or another, and not http/1.1")


@test()
def nodes_http2_can_name_it(lab):
    inside = Inside(lab)
    said = inside("node", "-e", H2, f"https://{inside.up.name}:{inside.up.port}")
    assert "NO_APPLICATION_PROTOCOL" in said.upper().replace(" ", "_"), said
    inside.told("tls-alpn", "set it to HTTP/1.1, or to REST")
    assert inside.up.requests() == []


@test()
def of_a_client_that_speaks_http2_unasked_the_operator_reads_why(lab):
    """As gRPC does without TLS. What it is told is HTTP/1.1, of which curl shows nothing; the operator reads why."""
    inside = Inside(lab)
    said = inside("/usr/bin/curl", "-sS", "--noproxy", "*", "--http2-prior-knowledge", f"http://{inside.up.name}:{inside.up.plain_port}/ok")
    assert said.startswith("curl: ("), said
    inside.told("http2-preface", "speaks HTTP/2 without being asked, as gRPC does")
    assert inside.up.requests() == []


@test()
def chromium_opens_a_page(lab):
    """With Debian's own wrapper, without a flag about certificates, sandboxes or proxies."""
    inside = Inside(lab)
    said = inside("/usr/bin/chromium", "--headless", "--disable-gpu", "--dump-dom", f"https://{inside.up.name}:{inside.up.port}/ok")
    assert '{"ok":true}' in said, said
    assert any(r["target"] == "/ok" for r in inside.up.requests()), inside.up.requests()


if __name__ == "__main__":
    main()
