#!/usr/bin/env python3
"""The credential: where it goes, where it never comes back, and that the client's own is replaced."""
import base64
import re
import secrets
import urllib.parse

from gateway import Gateway, simple_policy
from harness import main, test

FORMS = ("raw", "base64", "base64url", "percent")


def setup(lab, secret=None, extra=""):
    up = lab.upstream()
    secret = lab.canary(secret or secrets.token_urlsafe(40))
    gw = Gateway(lab, simple_policy(up, extra=extra), {"api": secret.encode()})
    return up, secret, gw, gw.client_env(), f"https://{up.name}:{up.port}"


def ask(lab, env, url, *more, rc=None):
    return lab.run(["curl", "-sS", "--suppress-connect-headers", "-D", "-", *more, url], env=env, rc=rc)


@test()
def an_echo_is_scrubbed_in_every_form_of_the_table(lab):
    up, secret, gw, env, base = setup(lab)
    for form in FORMS:
        for shift in (0, 1, 2):
            done = ask(lab, env, f"{base}/echo?form={form}&shift={shift}")
            assert b"HTTP/1.1 200" in done.out and b"*" in done.out, done.text()
    assert len(up.requests()) == len(FORMS) * 3


@test()
def a_rotated_secret_is_used_soon_and_the_one_before_is_scrubbed_for_the_time_that_was_set(lab):
    up, old, new = lab.upstream(), secrets.token_urlsafe(40), secrets.token_urlsafe(40)  # no canaries: they are asked for
    gw = Gateway(lab, simple_policy(up), {"api": old.encode()})
    env, base = gw.client_env(), f"https://{up.name}:{up.port}"
    ask(lab, env, f"{base}/ok", rc=0)

    def echo(text):
        raw = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()
        return ask(lab, env, f"{base}/raw?b64={urllib.parse.quote_plus(base64.b64encode(raw))}", rc=0).out

    def earlier():
        return gw.cli_json("secret", "list")["secrets"][0]["earlier"]
    gw.cli("secret", "rotate", "api", "--keep", "1h", stdin=new.encode(), rc=0)
    assert re.search(rb"1 earlier for (1 h|59 min|60 min)", gw.cli("secret", "list", rc=0).out)

    def used():
        ask(lab, env, f"{base}/ok", rc=0)
        return ["Authorization", f"Bearer {new}"] in [list(f) for f in up.requests()[-1]["fields"]]
    lab.wait_for("the new value", used)
    assert old.encode() not in echo(old) and new.encode() not in echo(new)
    gw.kill("carrier")  # what it was given it remembers: the next one is told anew
    assert old.encode() not in echo(old)
    gw.cli("secret", "rm", "api", "--earlier", rc=0)
    assert earlier() == 0
    gw.cli("secret", "set", "api", "--keep", "1s", stdin=b"a third value of it", rc=0)
    gw.cli("secret", "set", "api", "--keep", "1s", stdin=b"a fourth value of it", rc=0)
    lab.wait_for("the end of their time", lambda: earlier() == 0)
    assert gw.cli("secret", "set", "api", "--keep", "soon", stdin=b"a fifth value of it").rc == 2
    gw.kill("carrier")
    assert b"a third value of it" in echo("a third value of it")
    assert b"a fourth" not in echo("a fourth value of it")


@test()
def an_echo_in_a_header_is_scrubbed(lab):
    up, secret, gw, env, base = setup(lab)
    done = ask(lab, env, f"{base}/echo?form=raw&header=1", rc=0)
    assert b"HTTP/1.1 200" in done.out, done.text()


@test()
def an_echo_split_over_any_boundary_is_scrubbed(lab):
    up, secret, gw, env, base = setup(lab)
    for sizes in ("1", "2,3", "7,13", "17", "64"):
        for how in ("chunk", "split"):
            done = ask(lab, env, f"{base}/echo?form=base64&{how}={sizes}", rc=0)
            assert b"*" in done.out


@test()
def an_echo_in_a_coding_nobody_asked_for_is_refused(lab):
    up, secret, gw, env, base = setup(lab)
    for enc in ("gzip", "deflate"):
        done = lab.run(["curl", "-sS", "--compressed", "--suppress-connect-headers", "-D", "-", f"{base}/echo?form=raw&enc={enc}"], env=env)
        assert b"HTTP/1.1 200" not in done.out or done.rc != 0, done.text()
    assert all(["Accept-Encoding", "identity"] in [list(f) for f in r["fields"]] for r in up.requests())


@test()
def the_clients_own_authorization_is_replaced(lab):
    up, secret, gw, env, base = setup(lab)
    ask(lab, env, base + "/ok", "-H", "authorization: Bearer mine", "-H", "Cookie: login=1", rc=0)
    fields = up.requests()[0]["fields"]
    assert [v for n, v in fields if n.lower() == "authorization"] == [f"Bearer {secret}"], fields
    assert not [v for n, v in fields if n.lower() == "cookie"], fields


@test()
def no_credential_over_cleartext(lab):
    up, secret, gw, env, base = setup(lab)
    done = ask(lab, env, f"http://{up.name}:{up.plain_port}/ok")
    assert b" 200" not in done.out, done.text()
    assert up.requests() == []


@test()
def an_upstream_nobody_vouches_for_gets_no_byte(lab):
    up = lab.upstream()
    other = lab.upstream()
    text = simple_policy(up).replace(str(up.ca), str(other.ca))
    gw = Gateway(lab, text, {"api": lab.canary(secrets.token_urlsafe(40)).encode()})
    done = ask(lab, gw.client_env(), f"https://{up.name}:{up.port}/ok")
    assert b"HTTP/1.1 502" in done.out, done.text()
    assert b"tls-failed" not in done.out  # coarse for the client, the cause for the operator
    lab.wait_for("the cause in the audit", lambda: any(r.get("code") == "tls-failed" for r in gw.audit()))
    assert up.requests() == []


@test()
def the_host_must_be_the_tunnels(lab):
    up, secret, gw, env, base = setup(lab)
    done = ask(lab, env, base + "/ok", "-H", "Host: other.test")
    assert b" 421" in done.out or b" 400" in done.out, done.text()
    assert up.requests() == []


@test()
def a_private_address_that_no_policy_names_is_refused(lab):
    up = lab.upstream()
    text = simple_policy(up).replace(', allow_private: ["127.0.0.1/32"]', "")
    gw = Gateway(lab, text, {"api": lab.canary(secrets.token_urlsafe(40)).encode()})
    done = ask(lab, gw.client_env(), f"https://{up.name}:{up.port}/ok")
    assert b"HTTP/1.1 50" in done.out or b"HTTP/1.1 403" in done.out, done.text()
    assert up.requests() == []


@test("D33 absolute", "D32 connect")
def without_a_token_nothing_passes(lab):
    up, secret, gw, env, base = setup(lab)
    naked = {k: v.replace(gw.token("agent"), "x" * 26) if "@" in v else v for k, v in env.items()}
    done = ask(lab, naked, base + "/ok")
    assert done.rc != 0 and b"407" in done.both, done.text()
    assert up.requests() == []


@test("B44 absolute")
def plain_http_has_the_same_rules(lab):
    up, secret, gw, env, base = setup(lab)
    done = ask(lab, env, "http://nobody.test/")
    assert b"HTTP/1.1 403" in done.out, done.text()


@test()
def a_secret_file_is_found_beside_the_policy_that_names_it(lab):
    up = lab.upstream()
    secret = lab.canary(secrets.token_urlsafe(40))
    gw = Gateway(lab, simple_policy(up), {"api": b"another, from the store"})
    folder = lab.dir / "policies"
    (folder / "keys").mkdir(parents=True)
    (folder / "keys/api").write_text(secret)
    lab.exempt(folder / "keys/api").chmod(0o600)
    (folder / "team.yaml").write_text(simple_policy(up, secret="file: keys/api"))
    gw.config.write_text(gw.config.read_text().replace("[policy.yaml]", "[policies/team.yaml]"))
    gw.stop()
    gw.up()
    ask(lab, gw.client_env(), f"https://{up.name}:{up.port}/ok", rc=0)
    sent = {k.lower(): v for k, v in up.requests()[-1]["fields"]}
    assert sent.get("authorization") == f"Bearer {secret}", sent


main()
