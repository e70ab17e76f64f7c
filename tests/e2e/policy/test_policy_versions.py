#!/usr/bin/env python3
"""What happens around a policy in a running gateway: its own tests run before it is in force, its versions are kept,
and an earlier one can be put in force again."""
import contextlib
import itertools
import os
import pathlib
import pwd
import re
import secrets
import signal
import subprocess
import time

import room  # noqa: F401
from gateway import Gateway, Page, program, simple_policy
from harness import PATIENCE, main, test


def setup(lab, **more):
    up = lab.upstream()
    secret = lab.canary(secrets.token_urlsafe(32))
    return up, Gateway(lab, simple_policy(up), {"api": secret.encode()}, hold="inline_wait: 0s, expires: 2h", **more)


def ask(lab, gw, up, path, *more):
    done = lab.run(["curl", "-sS", "--max-time", str(PATIENCE), "--suppress-connect-headers", "-D", "-", *more,
                    f"https://{up.name}:{up.port}{path}"], env=gw.client_env())
    return done.out


def post(lab, gw, up, path="/things"):
    return ask(lab, gw, up, path, "-X", "POST", "--data-binary", "a=1")


def case(up, name, method, decide, more=""):
    return (f"  - name: {name}\n    request: {{ method: {method}, url: \"https://{up.name}:{up.port}/things\" }}\n"
            f"    expect: {{ decide: {decide}{more} }}\n")


def write_tests(gw, *cases, policy="policy.yaml"):
    (gw.lab.dir / "policy_test.yaml").write_text(f"policy: {policy}\ncases:\n" + "".join(cases))


@test("B51 reload")
def a_reload_runs_the_policys_own_tests_first(lab):
    up, gw = setup(lab)
    write_tests(gw, case(up, "a read passes", "GET", "allow"), case(up, "a write waits", "POST", "hold", ", rule: writes"))
    gw.cli("reload", rc=0)
    before = gw.cli_json("status")["policy"]
    # somebody opens all writes, and the tests say that nobody meant that
    gw.policy.write_text(simple_policy(up).replace("effect: [write, delete]", "path: /never").replace(
        "effect: read", "effect: [read, write]"))
    done = gw.cli("reload", rc=3)
    for words in (b"policy_test.yaml:6", b'"a write waits" failed', b"decide: wanted hold, got allow", b"rule reads"):
        assert words in done.err, done.text()
    assert gw.cli_json("status")["policy"] == before
    assert b'"held"' in post(lab, gw, up) and up.effects() == {}, up.effects()
    assert b"policy_test.yaml:6" in gw.process.seen, gw.process.seen[-800:]
    # a start refuses it too, in the same words
    gw.stop()
    done = gw.cli("up", "--config", gw.config, rc=3)
    assert b"policy_test.yaml:6" in done.err and b"wanted hold, got allow" in done.err, done.text()
    write_tests(gw, case(up, "a read passes", "GET", "allow"))
    gw.up()
    assert b" 200" in post(lab, gw, up).splitlines()[0]
    lab.wait_for("the end of the ticket that no rule holds any more", lambda: not gw.tickets())


@test("B51 reload")
def a_test_file_that_is_none_refuses_a_reload(lab):
    up, gw = setup(lab)
    tests = lab.dir / "policy_test.yaml"
    before = gw.cli_json("status")["policy"]
    gw.policy.write_text(simple_policy(up, write="deny"))
    write_tests(gw, case(up, "x", "GET", "alow"))
    assert b"policy_test.yaml:5" in gw.cli("reload", rc=3).err
    tests.write_text("policy: policy.yaml\ncases: []\n")
    assert b"has no case" in gw.cli("reload", rc=3).err
    tests.unlink()
    (lab.dir / "elsewhere").write_text("policy: policy.yaml\ncases: []\n")
    tests.symlink_to(lab.dir / "elsewhere")
    assert b"is a symbolic link" in gw.cli("reload", rc=3).err
    tests.unlink()
    write_tests(gw, case(up, "x", "GET", "allow"))
    tests.chmod(0o666)
    assert b"anybody may write" in gw.cli("reload", rc=3).err
    assert gw.cli_json("status")["policy"] == before
    tests.chmod(0o600)
    # what the file says in policy: is for `policy test`; here its cases are asked of the image that is to be used
    write_tests(gw, case(up, "a write is off", "POST", "deny", ", rule: writes"), policy="[nowhere.yaml]")
    gw.cli("reload", rc=0)
    assert gw.cli_json("status")["policy"] != before


@test("B51 reload")
def a_reload_is_not_confirmed_by_a_role_that_says_nothing(lab):
    lab.expects("parent: the judge has not said that it has the new policy")
    up, gw = setup(lab)
    gw.policy.write_text(simple_policy(up, write="deny"))
    judge = gw.pid("judge")
    gw.lab.stops(judge)
    try:
        done = gw.cli("reload", rc=3)
    finally:
        os.kill(judge, signal.SIGCONT)
    assert b"the judge has not said that it acts on it" in done.err and b"reload again" in done.err, done.text()
    gw.cli("reload", rc=0)
    assert b"Writes are off" in post(lab, gw, up)


def map_no_more(pid):
    """Asked by the user whom the process belongs to: another one needs CAP_SYS_RESOURCE, which not every root has."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    uid, gid = (int(re.search(rf"^{who}:\s+(\d+)", status, re.M)[1]) for who in ("Uid", "Gid"))
    other = {} if uid == os.getuid() else {"user": uid, "group": gid, "extra_groups": []}
    subprocess.run(["prlimit", "--pid", str(pid), "--as=4096:"], check=True, **other)


@test("B51 reload")
def a_role_that_cannot_take_the_new_policy_begins_anew_with_it(lab):
    lab.leaves("pending")
    lab.expects(r"\w+: .*(cannot be mapped|message 5 that cannot be used|in force no more)",
                "AddressSanitizer failed to allocate")  # nor can its report, without memory
    up, gw = setup(lab)
    for n, role in enumerate(("judge", "keeper", "desk")):
        ask(lab, gw, up, "/ok")
        old = gw.pid(role)
        lab.expects(rf"parent: the {role} \(pid {old}\) ended by exit 1; restarting it")
        gw.policy.write_text(simple_policy(up, write="hold" if n % 2 else "deny"))
        map_no_more(old)
        gw.cli("reload", rc=None if role == "desk" else 0)  # the desk's client loses it
        gw.process.wait_line(rf"the {role} \(pid {old}\) ended by exit")
        lab.wait_for(f"the next {role}", lambda: all(r["ready"] for r in gw.cli_json("status")["roles"]))
        assert gw.pid(role) != old
        assert gw.process.seen.count(b"cannot be mapped") == n + 1, gw.process.seen[-800:]
        lab.wait_for("the new policy", lambda: (b'"held"' if n % 2 else b"Writes are off") in post(lab, gw, up))


def in_time(lab, gw):
    """for attempt in in_time(...): with attempt: ...; again when the parent's patience (5 s) ended before the test had
    done what it does meanwhile: the machine was too slow, and nothing is known of the gateway."""
    def ended():
        return gw.process.seen.count(b"has not said that it has the new policy")

    lab.expects("parent: the .* has not said that it has the new policy")
    for last in (False, False, False, True):
        before, done = ended(), []

        @contextlib.contextmanager
        def attempt():
            try:
                yield
                done.append(True)
            except AssertionError:
                with contextlib.suppress(AssertionError):  # the log may come behind the answer
                    lab.wait_for("the end of its patience", lambda: ended() > before, 1)
                if last or ended() == before:
                    raise
        lab.wait_for("every role", lambda: all(r["ready"] for r in gw.cli_json("status")["roles"]))
        yield attempt()
        if done:
            return


def reload_that_waits(lab, gw, policy):
    """`countersign reload` of that policy (never the same twice), which is in force but not confirmed by everybody."""
    before = gw.cli_json("status")["policy"]
    gw.policy.write_text(another(policy))
    asked = lab.start([program(), "reload"], env={"COUNTERSIGN_STATE": gw.state, "PATH": os.environ["PATH"]})
    lab.wait_for("the new policy", lambda: asked.popen.poll() is not None or gw.cli_json("status")["policy"] != before)
    assert asked.popen.poll() is None, f"answered before every role was: {asked.seen}"
    return asked


def another(policy, number=itertools.count()):
    return policy.replace("name: test\n", f"name: test{next(number)}\n")


@contextlib.contextmanager
def stopped(gw, role):
    pid = gw.pid(role)
    gw.lab.stops(pid)
    try:
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@test("B51 reload")
def a_role_that_dies_meanwhile_is_waited_for_no_longer(lab):
    up, gw = setup(lab)
    for attempt in in_time(lab, gw):
        with attempt, stopped(gw, "judge") as judge:
            asked = reload_that_waits(lab, gw, simple_policy(up, write="deny"))
            lab.kills(judge)
            assert asked.wait() == 0, asked.seen
    lab.wait_for("the judge's return", lambda: b"Writes are off" in post(lab, gw, up))


@test("B51 reload")
def of_two_reloads_at_once_each_is_told_what_became_of_it(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    for attempt in in_time(lab, gw):
        with attempt:
            with stopped(gw, "judge"):
                first = reload_that_waits(lab, gw, simple_policy(up, write="deny"))
                second = reload_that_waits(lab, gw, simple_policy(up, within="9m"))
                assert first.wait() == 3, first.seen
                assert b"another change of the policy came before every role had confirmed this one" in first.seen, first.seen
                assert second.popen.poll() is None, f"the first one's answers are not the second's: {second.seen}"
            assert second.wait() == 0 and b"in force" in second.seen, second.seen
    assert b'"held"' in post(lab, gw, up)


@test("B51 reload")
def a_refused_reload_meanwhile_leaves_the_first_one_waiting(lab):
    up, gw = setup(lab)
    for attempt in in_time(lab, gw):
        with attempt:
            with stopped(gw, "judge"):
                first = reload_that_waits(lab, gw, simple_policy(up, write="deny"))
                inforce = gw.cli_json("status")["policy"]
                gw.policy.write_text("version: 1\n- broken")
                assert b"policy.yaml:" in gw.cli("reload", rc=3).err
                assert gw.cli_json("status")["policy"] == inforce and first.popen.poll() is None, first.seen
            assert first.wait() == 0, first.seen
    assert b"Writes are off" in post(lab, gw, up)


@test("B51 reload")
def a_signal_meanwhile_is_another_change(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    for attempt in in_time(lab, gw):
        with attempt, stopped(gw, "judge"):
            first = reload_that_waits(lab, gw, simple_policy(up, write="deny"))
            gw.policy.write_text(another(simple_policy(up, within="9m")))
            os.kill(gw.daemon(), signal.SIGHUP)
            assert first.wait() == 3, first.seen
            assert b"another change of the policy came" in first.seen, first.seen
    lab.wait_for("the last policy", lambda: b'"held"' in post(lab, gw, up))  # a signal is not answered


@test("B51 reload")
def a_sandboxs_front_is_waited_for_until_it_ends(lab):
    up, gw = setup(lab)
    for attempt in in_time(lab, gw):
        assert b" 200" in ask(lab, gw, up, "/ok").splitlines()[0]
        with attempt, stopped(gw, "front") as front:
            asked = reload_that_waits(lab, gw, simple_policy(up, write="deny"))
            lab.kills(front)
            assert asked.wait() == 0 and b"in force" in asked.seen, asked.seen
    assert b"Writes are off" in post(lab, gw, up)
    assert gw.pid("front") not in (None, front)


@test("B51 reload")
def a_front_that_says_nothing_is_named_with_its_sandbox(lab):
    lab.expects("parent: the front of agent has not said that it has the new policy")
    up, gw = setup(lab)
    ask(lab, gw, up, "/ok")
    gw.policy.write_text(simple_policy(up, write="deny"))
    with stopped(gw, "front"):
        done = gw.cli("reload", rc=3)
        assert b"the front of agent has not said that it acts on it" in done.err, done.text()
    gw.cli("reload", rc=0)
    assert b"Writes are off" in post(lab, gw, up)


@test("B51 reload")
def a_front_that_starts_meanwhile_is_not_waited_for(lab):
    """Not the judge is stopped: without him nobody knows whose connection it is, and no front starts."""
    up, gw = setup(lab)
    for attempt in in_time(lab, gw):
        sandbox = f"late{len(gw.tokens)}"
        env = gw.client_env(sandbox)
        with attempt:
            with stopped(gw, "resolver"):
                asked = reload_that_waits(lab, gw, simple_policy(up, write="deny"))
                client = lab.start(["curl", "-sS", "--max-time", str(PATIENCE), f"https://{up.name}:{up.port}/ok"], env=env)
                lab.wait_for("the front", lambda: [r for r in gw.cli_json("status")["roles"] if r["role"] == "front"
                                                   and r["ready"] and r["pid"] == gw.pid("front")])
                assert asked.popen.poll() is None, asked.seen
                front = gw.pid("front")
                gw.lab.stops(front)  # so that it could not say anything, were it asked
            try:
                assert asked.wait() == 0, asked.seen
            finally:
                os.kill(front, signal.SIGCONT)
            assert client.wait(30) == 0, client.seen
    assert b"Writes are off" in post(lab, gw, up)


@test("B51 reload")
def a_desk_that_dies_takes_its_question_along(lab):
    lab.leaves("pending")
    up, gw = setup(lab)
    for attempt in in_time(lab, gw):
        with attempt:
            with stopped(gw, "judge"):
                first = reload_that_waits(lab, gw, simple_policy(up, write="deny"))
                gw.kill("desk")
                assert first.wait() != 0 and b"in force" not in first.seen, first.seen
                second = reload_that_waits(lab, gw, simple_policy(up, within="9m"))
            assert second.wait() == 0, second.seen
    assert b'"held"' in post(lab, gw, up)


def versions(gw):
    return gw.cli_json("policy", "history")


def current(gw):
    return versions(gw)["current"]


def notes(gw, about, n=1):
    return [r["what"] for r in gw.recorded(n, kind="note", about=about)]


def two_versions(lab):
    """The first holds writes, the second denies them and is in force."""
    up, gw = setup(lab)
    first = current(gw)
    gw.policy.write_text(simple_policy(up, write="deny"))
    gw.cli("reload", rc=0)
    second = current(gw)
    assert first != second
    assert b"Writes are off" in post(lab, gw, up)
    return up, gw, first, second


@test("B52 rollback")
def an_earlier_version_is_in_force_until_it_is_ended(lab):
    up, gw, first, second = two_versions(lab)
    listed = versions(gw)
    assert [v["digest"] for v in listed["versions"]] == [second, first], listed
    assert [v["current"] for v in listed["versions"]] == [True, False] and "pinned" not in listed
    assert {f["kind"] for f in listed["versions"][0]["files"]} == {"policy", "pack", "ca"}, listed
    said = gw.cli("policy", "rollback", first[:8], rc=0).out
    assert first[:12].encode() in said and b"rollback --end" in said, said
    assert b'"held"' in post(lab, gw, up)
    text, me = gw.cli("policy", "history", rc=0).out, pwd.getpwuid(os.getuid()).pw_name
    assert b"(in force, pinned)" in text and f"pinned by a rollback of {me}".encode() in text, text
    assert f"PINNED by a rollback of {me}".encode() in gw.cli("status", rc=0).out
    assert b"is pinned to version " + first[:12].encode() in gw.cli("doctor").out
    answer, page = Page(gw).ask("GET", "/")
    assert b"An earlier policy is in force</b>: version <code>" + first[:12].encode() in page, page
    # the user's files are as they were, and a reload says that they are not in force
    assert gw.policy.read_text() == simple_policy(up, write="deny")
    refused = gw.cli("reload", rc=3)
    assert b"is pinned to version " + first[:12].encode() in refused.err and b"nothing was changed" in refused.err
    gw.stop()
    gw.policy.write_text("version: 1\n- broken")  # it is not even read
    gw.up()
    assert b"pinned to version " + first[:12].encode() in gw.process.seen, gw.process.seen
    assert current(gw) == first and b'"held"' in post(lab, gw, up, "/other")
    # back to the files, which must load and pass their tests
    assert b"policy.yaml:" in gw.cli("policy", "rollback", "--end", rc=3).err
    gw.policy.write_text(simple_policy(up, write="deny"))
    write_tests(gw, case(up, "a write waits", "POST", "hold"))
    assert b'"a write waits" failed' in gw.cli("policy", "rollback", "--end", rc=3).err
    assert current(gw) == first and versions(gw)["pinned"] == first
    (lab.dir / "policy_test.yaml").unlink()
    gw.cli("policy", "rollback", "--end", rc=0)
    assert current(gw) == second and "pinned" not in versions(gw)
    assert b"Writes are off" in post(lab, gw, up) and up.effects() == {}
    assert b"not pinned" in gw.cli("policy", "rollback", "--end", rc=3).err
    gw.stop()
    gw.up()
    assert current(gw) == second
    said = [(n["how"], n["policy"], n.get("from")) for n in notes(gw, "policy", 6)]
    assert said == [("start", first, None), ("reload", second, first), ("rollback", first, second),
                    ("start", first, None), ("rollback-end", second, first), ("start", second, None)], said
    assert [n["by"].split()[0] for n in notes(gw, "policy") if "by" in n] == ["uid"] * 3
    refused = notes(gw, "policy-refused", 2)
    assert [n["how"] for n in refused] == ["rollback-end"] * 2 and "a write waits" in refused[1]["why"], refused


@test("B52 rollback")
def a_held_ticket_whose_rule_is_gone_is_not_executed(lab):
    up, gw = setup(lab)
    gw.policy.write_text(simple_policy(up, write="deny"))
    gw.cli("reload", rc=0)
    denied = current(gw)
    gw.policy.write_text(simple_policy(up))
    gw.cli("reload", rc=0)
    assert b'"held"' in post(lab, gw, up)
    gw.approve(gw.pending()["id"])
    gw.cli("policy", "rollback", denied, rc=0)
    assert b"Writes are off" in post(lab, gw, up)
    assert up.effects() == {}, up.effects()


@test("B51 rollback")
def what_is_stored_is_used_only_if_it_is_what_it_was(lab):
    up, gw, first, second = two_versions(lab)
    here = lab.dir / "state" / "policies"
    assert oct(here.stat().st_mode)[-3:] == "700" and oct((here / first).stat().st_mode)[-3:] == "700"
    files = sorted((here / first).iterdir())
    assert all(oct(f.stat().st_mode)[-3:] == "600" for f in files), files
    text = gw.cli("policy", "show", first, "policy.yaml", rc=0).out.decode()
    assert text == simple_policy(up)
    shown = gw.cli_json("policy", "show", first)
    assert shown["digest"] == first and shown["rules"] == 2 and shown["name"] == "test", shown
    assert b"no policy is stored in " in gw.cli("policy", "show", first, "--state-dir", lab.dir / "nowhere", rc=4).err
    stored = here / first / next(f["stored_as"] for f in shown["files"] if f["kind"] == "policy")
    for name, change in (
            ("a byte", lambda: stored.write_text(text.replace("hold", "allow", 1))),
            ("a file less", stored.unlink),
            ("a link", lambda: stored.symlink_to(gw.policy)),
            ("the manifest cut", lambda: (stored.unlink(), stored.write_text(text), (here / first / "manifest").write_bytes(
                (here / first / "manifest").read_bytes()[:-5])))):
        change()
        done = gw.cli("policy", "rollback", first, rc=3)
        assert b"countersign: " in done.err, (name, done.text())
        assert current(gw) == second and "pinned" not in versions(gw), name
        gw.cli("policy", "show", first, rc=1)
        assert b"Writes are off" in post(lab, gw, up), name
    # a version that is in force again is stored again, whole
    gw.policy.write_text(text)
    gw.cli("reload", rc=0)
    assert gw.cli("policy", "show", first, "policy.yaml", rc=0).out.decode() == text
    # what makes no digest, or more than one, or none
    refused = len(notes(gw, "policy-refused", 4))
    assert refused == 4
    for words in ("abc", "../../x", "g" * 8, "0" * 64, first[:5], "A" * 8):
        gw.cli("policy", "rollback", words, rc=3)
    assert len(notes(gw, "policy-refused")) == refused
    # a pin to what is not there is no way to start, and says how to go on
    gw.cli("policy", "rollback", second, rc=0)
    gw.stop()
    next(f for f in (here / second).iterdir() if f.name.endswith("policy.yaml")).write_text("x")
    done = gw.cli("up", "--config", gw.config, rc=3)
    assert b"is not what was stored" in done.err and b"policies/pin" in done.err, done.text()
    (here / "pin").write_text("digest nonsense\n")
    assert b"policies/pin" in gw.cli("up", "--config", gw.config, rc=3).err
    (here / "pin").unlink()
    gw.up()
    assert current(gw) == first


@test("B51 rollback")
def an_end_in_the_middle_of_storing_leaves_no_half_version(lab):
    up, gw = setup(lab)
    here = lab.dir / "state" / "policies"
    policy = simple_policy(up)
    for n in range(8):
        gw.policy.write_text(policy.replace("name: test", f"name: test{n}"))
        pid = gw.daemon()
        os.kill(pid, signal.SIGHUP)
        time.sleep(0.004 * n)
        lab.kills(pid)
        gw.process.wait()
        for version in (v for v in here.iterdir() if v.is_dir() and len(v.name) == 64):
            gw.cli("policy", "show", version.name, rc=0)
        gw.up()
        assert not (here / "new-version").exists()
        assert next(v for v in versions(gw)["versions"] if v["current"])["name"] == f"test{n}"


@test()
def the_newest_hundred_are_kept_and_what_is_pinned(lab):
    up, gw = setup(lab)
    here = lab.dir / "state" / "policies"
    first = current(gw)
    source = here / first
    for n in range(120):  # older ones, as they would be
        name = f"{n:064x}"
        (here / name).mkdir(mode=0o700)
        text = (source / "manifest").read_text().replace(f"digest {first}", f"digest {name}")
        (here / name / "manifest").write_text(text)
        os.utime(here / name / "manifest", (1000 + n, 1000 + n))
    os.utime(source / "manifest", (1, 1))
    gw.cli("policy", "rollback", first, rc=0)
    os.utime(source / "manifest", (1, 1))
    gw.stop()
    gw.up()
    listed = versions(gw)["versions"]
    assert len(listed) == 100 and listed[0]["digest"] == first and listed[-1]["digest"] == f"{21:064x}", listed[-1]


@test()
def a_rollback_says_that_its_floors_are_others(lab):
    up, gw = setup(lab)
    first = current(gw)
    (lab.dir / "floors.yaml").write_text(
        "version: 1\nrules:\n  - id: never\n    match: { host: other.example }\n    decide: deny\n    say: Never.\n")
    gw.config.write_text(gw.config.read_text() + "floors: floors.yaml\n")
    gw.cli("reload", rc=0)
    assert current(gw) != first
    assert b"ITS FLOORS ARE THOSE OF THEN" in gw.cli("policy", "rollback", first, rc=0).out


@test("B51 rollback")
def where_signatures_are_asked_for_a_version_without_them_stays_out(lab):
    up, gw, first, second = two_versions(lab)
    key = lab.dir / "key"
    lab.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key, "-C", ""], rc=0)

    def sign(path):
        lab.run(["rm", "-f", f"{path}.sig"], rc=0)
        lab.run(["ssh-keygen", "-Y", "sign", "-n", "countersign-policy", "-f", key, path], rc=0)
    (lab.dir / "signers").write_text("operator " + (lab.dir / "key.pub").read_text())
    gw.config.write_text(gw.config.read_text() + "policy_signers: signers\n")
    sign(up.ca)
    sign(gw.policy)
    gw.cli("reload", rc=0)
    assert current(gw) == second  # the same policy, and signed now
    assert b"taken without signatures" in gw.cli("policy", "rollback", first, rc=3).err
    assert current(gw) == second
    gw.policy.write_text(simple_policy(up, within="9m"))
    sign(gw.policy)
    gw.cli("reload", rc=0)
    assert current(gw) not in (first, second)
    gw.cli("policy", "rollback", second, rc=0)
    assert current(gw) == second and b"Writes are off" in post(lab, gw, up)


main()
