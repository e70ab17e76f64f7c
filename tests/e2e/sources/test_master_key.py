#!/usr/bin/env python3
"""The master key in a file, a credential of systemd, or a program's answer: what is sealed under it opens with it and with
nothing else, it is asked for again with each keeper, and no log and no copy of the state directory has it."""
import os
import re
import secrets

import room  # noqa: F401
from gateway import Gateway, program, simple_policy
from harness import main, test
from programs import Programs

NO_START = (r"parent: the keeper \(pid \d+\) ended by exit 1; restarting it", "parent: the keeper does not come up; giving up")


def new_key(lab, raw=False):
    """Its bytes as they are written down; neither form may be anywhere but there."""
    key = secrets.token_bytes(32)
    lab.canary(key.hex())
    return key if raw else key.hex().encode() + b"\n"


def key_file(lab, key, name="key", mode=0o600):
    path = lab.exempt(lab.dir / name)
    path.write_bytes(key)
    os.chmod(path, mode)
    return path


def setup(lab, master, env=None):
    up, token = lab.upstream(), lab.canary(secrets.token_urlsafe(40))
    gw = Gateway(lab, simple_policy(up), {"api": token.encode()}, config=f"master_key: {master}\n" if master else "", env=env)
    return up, token, gw


def ask(lab, gw, up, token):
    done = lab.run(["curl", "-sS", f"https://{up.name}:{up.port}/ok"], env=gw.client_env(), rc=0)
    sent = [v for n, v in up.requests()[-1]["fields"] if n.lower() == "authorization"]
    assert sent == [f"Bearer {token}"], (sent, done.text())


def refused(lab, gw, *words, env=None):
    lab.expects(*NO_START, r"parent: master_key: ", r"keeper: (master_key: |keeper/)")
    done = lab.run([program(), "up", "--config", gw.config], env=env, rc=1)
    assert all(w in done.text() for w in words), done.text()
    assert "master_key: " not in gw.config.read_text() or done.text().count("restarting it") <= 1, "one start is enough to know"


def works(lab, master, env=None):
    up, token, gw = setup(lab, master, env)
    ask(lab, gw, up, token)
    ca = (gw.state / "ca.crt").read_bytes()
    assert not (gw.state / "keeper/master.key").exists() and (gw.state / "keeper/ca.key").exists()
    gw.kill("keeper")
    lab.wait_for("the next keeper", lambda: gw.cli("secret", "list").rc == 0)
    ask(lab, gw, up, token)
    gw.stop()
    gw.up()
    ask(lab, gw, up, token)
    assert (gw.state / "ca.crt").read_bytes() == ca
    return up, token, gw


@test()
def a_key_in_a_file_opens_what_is_sealed_under_it(lab):
    path = key_file(lab, new_key(lab))
    up, token, gw = works(lab, f"{{ file: {path} }}")
    gw.stop()
    os.chmod(path, 0o640)
    refused(lab, gw, "master_key: its file has mode 0640")
    os.chmod(path, 0o600)
    path.write_bytes(new_key(lab))
    refused(lab, gw, "keeper/ca.key is damaged, or was sealed under another master key")
    path.write_bytes(b"short")
    refused(lab, gw, "the 5 bytes that are there are no key")
    path.unlink()
    refused(lab, gw, f"master_key: cannot open {path}: No such file")


@test()
def a_key_of_systemd_is_read_from_its_folder(lab):
    folder = lab.exempt(lab.dir / "credentials")
    folder.mkdir()
    key_file(lab, new_key(lab, raw=True), "credentials/master", 0o440)
    up, token, gw = works(lab, "{ systemd: master }", env={"CREDENTIALS_DIRECTORY": folder})
    gw.stop()
    refused(lab, gw, "master_key: systemd gave the gateway no credentials")


@test()
def a_program_is_asked_for_the_key_at_each_start_of_the_keeper(lab):
    programs = Programs(lab)
    script = programs.write("kms", f'echo "$*" >> "$0.args"; sleep 1000 & cat {key_file(lab, new_key(lab))}')
    up, token, gw = works(lab, f"{{ exec: [{script}, 'a b', $HOME] }}")
    assert programs.calls("kms") == 3, "once for each keeper"
    assert set((programs.dir / "kms.args").read_text().splitlines()) == {"a b $HOME"}


BAD = {
    "ends_with_a_status": ("echo not-for-the-log; echo neither >&2; exit 3", ("ended with status 3", "run it by hand")),
    "prints_nothing": ("exit 0", ("the 0 bytes that are there",)),
    "prints_too_much": ("head -c 5000 /dev/zero | tr '\\0' a", ("longer than 4096 bytes",)),
    "prints_without_end": ("yes not-for-the-log", ("did not end within 30 s",)),
    "prints_another_thing": ("echo not-for-the-log", ("no key", "openssl rand -hex 32")),
    "is_killed": ("kill -SEGV $$", ("ended by signal 11",)),
    "hangs": ("sleep 1000 & sleep 1000", ("did not end within 30 s",)),
}


def bad_program(name):
    body, words = BAD[name]

    def run(lab):
        programs = Programs(lab)
        script = programs.write("kms", body)
        up = lab.upstream()
        good = programs.write("good", f"cat {key_file(lab, new_key(lab))}")
        gw = Gateway(lab, simple_policy(up), config=f"master_key: {{ exec: [{good}] }}\n")
        gw.stop()
        gw.config.write_text(gw.config.read_text().replace(str(good), str(script)))
        refused(lab, gw, *words)
        assert programs.calls("kms") == 1
        said = b"".join(p.read_bytes() for p in lab.out.iterdir() if p.suffix != ".cmd")
        assert b"not-for-the-log" not in said and b"neither" not in said
    run.__name__ = f"a_program_that_{name}_is_no_key_in_words"
    return run


for each in BAD:
    test()(bad_program(each))


@test()
def a_keeper_that_ends_while_the_program_fails_is_back_when_it_answers(lab):
    programs = Programs(lab)
    script = programs.write("kms", f'[ -e "$0.fails" ] && exit 9; cat {key_file(lab, new_key(lab))}')
    up, token, gw = setup(lab, f"{{ exec: [{script}] }}")
    ask(lab, gw, up, token)
    lab.expects("parent: master_key: .* ended with status 9", r"judge: .*", r"carrier: .*")
    (programs.dir / "kms.fails").touch()
    calls = programs.calls("kms")
    lab.kills(gw.pid("keeper"))
    lab.wait_for("it is asked, and again", lambda: programs.calls("kms") >= calls + 2)
    assert gw.pid("keeper") is None and gw.cli("status").rc == 0
    (programs.dir / "kms.fails").unlink()
    lab.wait_for("the keeper", lambda: gw.pid("keeper") and gw.cli("secret", "list").rc == 0)
    ask(lab, gw, up, token)


@test()
def the_end_of_the_gateway_does_not_wait_for_the_program(lab):
    programs = Programs(lab)
    script = programs.write("kms", "sleep 1000 & sleep 1000")
    up = lab.upstream()
    config = lab.dir / "countersign.yaml"
    (lab.dir / "policy.yaml").write_text(simple_policy(up))
    config.write_text(f"version: 1\nstate_dir: state\npolicy: [policy.yaml]\ndesk: {{ http: \"localhost:0\" }}\n"
                      f"listeners: []\nmaster_key: {{ exec: [{script}] }}\n")
    process = lab.start([program(), "up", "--config", config])
    lab.wait_for("the program", lambda: programs.calls("kms"))
    assert process.stop(grace=20) >= 0, "it had to be killed"


@test()
def a_key_is_moved_out_as_the_words_say(lab):
    up, token, gw = setup(lab, None)
    ask(lab, gw, up, token)
    gw.stop()
    path = lab.exempt(lab.dir / "moved")
    gw.config.write_text(gw.config.read_text() + f"master_key: {{ file: {path} }}\n")
    inside = lab.exempt(gw.state / "keeper/master.key")
    key = inside.read_bytes()
    lab.canary(key.hex())
    key_file(lab, key, "moved")
    refused(lab, gw, "keeper/master.key is there", "copy its 32 bytes", "remove the file")
    assert inside.read_bytes() == key, "what is refused is left as it is"
    inside.unlink()
    gw.up()
    ask(lab, gw, up, token)
    assert b"kept outside the state directory" in gw.cli("doctor").out
    gw.stop()
    gw.config.write_text(re.sub("master_key: .*\n", "", gw.config.read_text()))
    refused(lab, gw, "keeper/master.key is missing", "master_key:")


@test()
def a_secret_is_sealed_under_it_while_no_gateway_runs(lab):
    path = key_file(lab, new_key(lab))
    up, token = lab.upstream(), lab.canary(secrets.token_urlsafe(40))
    config = lab.dir / "countersign.yaml"
    config.write_text(f"version: 1\nmaster_key: {{ file: {path} }}\n")
    state = lab.dir / "state"

    def secret(*words, rc=0, stdin=None):
        return lab.run([program(), "secret", *words, "--state-dir", state], stdin=stdin, rc=rc)
    secret("set", "api", "--config", config, stdin=token.encode())
    assert not (state / "keeper/master.key").exists()
    assert b"api" in secret("list", "--config", config).out
    lab.expects(*NO_START, "keeper: keeper/master.key is missing")
    done = secret("set", "api", stdin=token.encode(), rc=1)
    assert b"master_key:" in done.both, done.text()
    gw = Gateway(lab, simple_policy(up), config=f"master_key: {{ file: {path} }}\n")
    ask(lab, gw, up, token)


@test()
def another_place_of_the_key_needs_a_restart(lab):
    up, token, gw = setup(lab, f"{{ file: {key_file(lab, new_key(lab))} }}")
    gw.config.write_text(gw.config.read_text().replace("/key }", "/key2 }"))
    assert b"master_key" in gw.cli("reload", rc=0).out
    ask(lab, gw, up, token)
    gw.config.write_text(gw.config.read_text().replace("/key2 }", "/key }"))


main()
