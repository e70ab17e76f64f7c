#!/usr/bin/env python3
"""A credential whose source is a program, or systemd: what reaches the upstream, when it is asked again, and what bad
answers get."""
import base64
import os
import secrets
import socket
import threading
import urllib.parse

import room  # noqa: F401
from gateway import NOT_RELEASED, Gateway, simple_policy
from harness import main, test
from programs import Programs


def setup(lab, body, more="", argv="", store=()):
    """A gateway whose credential is what a script of this body prints."""
    up, programs = lab.upstream(), Programs(lab)
    script = programs.write("op", body)
    source = f"exec: {{ argv: [{script}{argv}]{more} }}"
    gw = Gateway(lab, simple_policy(up, secret=source), dict(store))
    lab.expects(NOT_RELEASED)
    return up, programs, gw


def ask(lab, gw, up, path="/ok"):
    return lab.run(["curl", "-sS", "--suppress-connect-headers", "-D", "-", f"https://{up.name}:{up.port}{path}"],
                   env=gw.client_env())


def bearers(up):
    return [v for r in up.requests() for n, v in r["fields"] if n.lower() == "authorization"]


def refused(lab, gw, up, *words):
    """Nothing is sent, and the operator is told which step failed."""
    done = ask(lab, gw, up)
    assert b"502" in done.out.splitlines()[0] and b"credential-unavailable" in done.out, done.text()
    assert up.requests() == []
    check = gw.cli("secret", "check", "api")
    assert check.rc == 1 and all(w in check.out.decode() for w in words), check.text()


@test()
def what_a_program_prints_is_the_credential(lab):
    token = lab.canary(secrets.token_urlsafe(40))
    up, programs, gw = setup(lab, f"echo {token}")
    for _ in range(3):
        assert b" 200" in ask(lab, gw, up).out.splitlines()[0]
    assert bearers(up) == [f"Bearer {token}"] * 3
    assert programs.calls("op") == 1, "a value that lives is used again"
    echo = ask(lab, gw, up, "/echo?form=base64")
    assert b"*" in echo.out, "and is looked for in answers"
    assert b"gives a value" in gw.cli("secret", "check", "api", rc=0).out


@test()
def no_shell_reads_its_arguments_and_it_has_the_variables_of_the_policy_alone(lab):
    token = lab.canary(secrets.token_urlsafe(40))
    up, programs, gw = setup(lab, 'env | sort > "$0.env"; printf "%s" "$*" > "$0.args"; echo "$SERVICE_TOKEN"',
                             more=", env: { SERVICE_TOKEN: { store: service }, ACCOUNT: 'a b' }",
                             argv=", '$(id); `id` > x', read", store={"service": token.encode()})
    assert b" 200" in ask(lab, gw, up).out.splitlines()[0]
    assert bearers(up) == [f"Bearer {token}"]
    assert (programs.dir / "op.args").read_text() == "$(id); `id` > x read"
    names = {line.split("=")[0] for line in (programs.dir / "op.env").read_text().splitlines()}
    assert names <= {"ACCOUNT", "SERVICE_TOKEN", "PATH", "LANG", "TZ", "PWD", "SHLVL", "_"}, names


@test()
def a_value_is_fetched_again_when_most_of_its_life_is_over(lab):
    up, programs, gw = setup(lab, 'n=$(wc -l < "$0.calls"); echo "{\\"data\\":{\\"token\\":\\"token-number-$n\\"},\\"ttl\\":2}"',
                             more=", value: /data/token, expires_in: /ttl")
    seen = set()

    def changed():
        assert b" 200" in ask(lab, gw, up).out.splitlines()[0]
        seen.update(bearers(up))
        return len(seen) > 2
    lab.wait_for("new values", changed)
    assert "Bearer token-number-1" in seen and "Bearer token-number-2" in seen, seen
    # what it was before may still be echoed; a value that never was is handed on
    for n, covered in (("1", True), ("2", True), ("none", False)):
        said = f"token-number-{n}".encode()
        whole = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said)
        up.script({"/earlier": "/raw?" + urllib.parse.urlencode({"b64": base64.b64encode(whole).decode()})})
        answer = ask(lab, gw, up, "/earlier").out
        assert b" 200" in answer.splitlines()[0] and (said not in answer) == covered, answer


@test()
def a_stand_in_for_sops_decrypts_with_a_sealed_key(lab):
    """Called as sops is: `sops decrypt --extract '["token"]' FILE`, the key in SOPS_AGE_KEY; it writes one text without a line end."""
    value, key = lab.canary(secrets.token_urlsafe(40)), lab.canary("AGE-SECRET-KEY-1" + secrets.token_hex(24).upper())
    up, programs = lab.upstream(), Programs(lab)
    (programs.dir / "app.yaml").write_text(base64.b64encode(f"{key} {value}".encode()).decode())
    sops = programs.write("sops", """[ "$1 $2 $3" = 'decrypt --extract ["token"]' ] && [ $# = 4 ] || exit 100
kept=($(base64 -d "$4")); [ "${kept[0]}" = "$SOPS_AGE_KEY" ] || { echo 'Error getting data key: 0 successful groups required, got 0' >&2; exit 128; }
printf %s "${kept[1]}" """)
    argv = f"""[{sops}, decrypt, --extract, '["token"]', {programs.dir}/app.yaml]"""
    gw = Gateway(lab, simple_policy(up, secret=f"exec: {{ argv: {argv}, env: {{ SOPS_AGE_KEY: {{ store: age }} }} }}"), {"age": key.encode()})
    lab.expects(NOT_RELEASED)
    assert b" 200" in ask(lab, gw, up).out.splitlines()[0]
    assert bearers(up) == [f"Bearer {value}"] and programs.calls("sops") == 1
    gw.cli("secret", "set", "age", stdin=b"AGE-SECRET-KEY-1WRONG", rc=0)
    check = lab.wait_for("the next question", lambda: (said := gw.cli("secret", "check", "api")).rc == 1 and said)
    assert b"status 128" in check.out and b"data key" not in check.both, check.text()


@test()
def many_that_wait_make_one_call(lab):
    token = lab.canary(secrets.token_urlsafe(40))
    up, programs, gw = setup(lab, f'while [ ! -e "$0.go" ]; do sleep 0.05; done; echo {token}')
    gw.client_env()
    results = []
    threads = [threading.Thread(target=lambda: results.append(ask(lab, gw, up))) for _ in range(8)]
    for t in threads:
        t.start()
    lab.wait_for("the first call", lambda: programs.calls("op"))
    (programs.dir / "op.go").touch()
    for t in threads:
        t.join()
    assert all(b" 200" in r.out.splitlines()[0] for r in results), results[0].text()
    assert programs.calls("op") == 1 and bearers(up) == [f"Bearer {token}"] * 8


BAD = {
    "ends_with_a_status": ("exit 3", "", ("status 3", "run it by hand")),
    "prints_nothing": ("exit 0", "", ("empty",)),
    "prints_ten_megabytes": ("head -c 10000000 /dev/zero | tr '\\0' a", "", ("more than 64 KiB",)),
    "prints_two_lines": ("printf 'token-one\\r\\nX-Evil: 1\\n'", "", ("control character",)),
    "prints_too_little": ("echo abc", "", ("shorter than",)),
    "is_killed": ("kill -SEGV $$", "", ("signal 11",)),
    "prints_no_json": ("echo token-token", ", value: /a", ("not JSON",)),
    "prints_json_without_it": ("echo '{\"b\":\"token-token\"}'", ", value: /a", ("no text at /a",)),
    "hangs": ("sleep 1000 & sleep 1000", ", timeout: 1s", ("more than 1 s",)),
}


def bad_program(name):
    body, more, words = BAD[name]

    def run(lab):
        up, programs, gw = setup(lab, body, more=more)
        refused(lab, gw, up, *words)
        calls = programs.calls("op")
        assert b"502" in ask(lab, gw, up).out.splitlines()[0]
        assert programs.calls("op") == calls, "a failure is remembered for a while"
    run.__name__ = f"a_program_that_{name}_is_refused_in_words"
    return run


for each in BAD:
    test("D24 config")(bad_program(each))


@test()
def a_program_that_is_not_there_is_named(lab):
    up = lab.upstream()
    gw = Gateway(lab, simple_policy(up, secret="exec: { argv: [/nonexistent/op] }"))
    lab.expects(NOT_RELEASED)
    refused(lab, gw, up, "/nonexistent/op cannot be run", "No such file")


@test()
def a_program_has_no_network_and_cannot_leave_its_group(lab):
    door = socket.create_server(("127.0.0.1", 0))
    port = door.getsockname()[1]
    up, programs, gw = setup(lab, f"""
(exec 3<>/dev/tcp/127.0.0.1/{port}) 2> "$0.tcp" && echo connected > "$0.tcp"
(exec 3<>/dev/udp/127.0.0.1/53) 2> "$0.udp" && echo connected > "$0.udp"
setsid true 2> "$0.setsid" && echo left > "$0.setsid"
unshare -Un true 2> "$0.unshare" && echo left > "$0.unshare"
echo token-of-a-program""")
    assert b" 200" in ask(lab, gw, up).out.splitlines()[0]
    door.setblocking(False)
    try:
        door.accept()
        raise AssertionError("it reached a listener")
    except BlockingIOError:
        pass
    finally:
        door.close()
    for what in ("tcp", "udp", "setsid", "unshare"):
        said = (programs.dir / f"op.{what}").read_text()
        assert said and "connected" not in said and "left" not in said, f"{what}: {said}"


@test()
def a_dead_fetcher_is_a_refusal_and_the_next_one_works(lab):
    token = lab.canary(secrets.token_urlsafe(40))
    up, programs, gw = setup(lab, f'[ -e "$0.go" ] || sleep 1000; echo {token}')
    result = []
    thread = threading.Thread(target=lambda: result.append(ask(lab, gw, up)))
    gw.client_env()
    thread.start()
    lab.wait_for("the call", lambda: programs.calls("op"))
    gw.kill("fetcher")
    thread.join()
    assert b"502" in result[0].out.splitlines()[0], result[0].text()
    (programs.dir / "op.go").touch()
    lab.wait_for("the next one", lambda: b" 200" in ask(lab, gw, up).out.splitlines()[0])
    assert bearers(up) == [f"Bearer {token}"]


@test()
def a_credential_of_systemd_is_read_from_its_folder(lab):
    up, token = lab.upstream(), lab.canary(secrets.token_urlsafe(40))
    folder = lab.exempt(lab.dir / "credentials")
    folder.mkdir()
    (folder / "api-token").write_text(token)
    os.chmod(folder / "api-token", 0o440)
    gw = Gateway(lab, simple_policy(up, secret="systemd: api-token"), env={"CREDENTIALS_DIRECTORY": folder})
    assert b" 200" in ask(lab, gw, up).out.splitlines()[0]
    assert bearers(up) == [f"Bearer {token}"]


@test()
def a_credential_that_systemd_did_not_give_is_refused(lab):
    up = lab.upstream()
    lab.expects(NOT_RELEASED, r"parent: credential api: (cannot open|systemd gave)")
    gw = Gateway(lab, simple_policy(up, secret="systemd: api-token"))
    refused(lab, gw, up, "systemd gave the gateway no credential")


main()
