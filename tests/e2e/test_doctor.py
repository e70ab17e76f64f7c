#!/usr/bin/env python3
"""`countersign doctor` names what was broken on purpose: on the host, and from inside each kind of sandbox."""
import glob
import json
import pathlib
import re
import secrets
import shutil
import socket
import sys

from existing import api_setup, variables
from gateway import NOT_RELEASED, Gateway, program, simple_policy
from harness import HERE, PATIENCE, Skip, main, test

sys.path.insert(0, str(HERE / "lab"))
import cable  # noqa: E402
import netns  # noqa: E402

WHY = netns.own()
PROXIES = ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "grpc_proxy",
           "npm_config_proxy", "npm_config_https_proxy", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY")
NOWHERE = "10.99.99.99:443"  # no route leads there


def faketime(shift):
    """The environment that moves a program's clock."""
    found = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    if not found:
        raise Skip("libfaketime (package faketime) is not here")
    return {"LD_PRELOAD": found[0], "FAKETIME": shift, "ASAN_OPTIONS": "verify_asan_link_order=0"}


def judged(done):
    """{check: [(what, why, do)]} of what is bad; exit status and counts must agree."""
    answer = json.loads(done.out)
    bad = [f for f in answer["findings"] if f["state"] == "bad"]
    assert answer["bad"] == len(bad) and done.rc == (1 if bad else 0), done.text()
    assert all(f["what"] and f["why"] and f["do"] for f in bad), bad
    found = {}
    for f in bad:
        found.setdefault(f["check"], []).append(f["what"])
    return found


class Inside:
    """A way to run doctor in some sandbox: call(env changes) gives what is bad. None removes a variable."""

    def __init__(self, call, env):
        self.call, self.env = call, env

    def __call__(self, **changes):
        env = {k: v for k, v in {**self.env, **changes}.items() if v is not None}
        return judged(self.call(env))

    def expect(self, check, words, **changes):
        """Exactly this is wrong, and said in these words."""
        found = self(**changes)
        assert list(found) == [check] and re.search(words, found[check][0]), (changes, found)


def shell(lab):
    """A token sandbox at the far end of a cable, led by the printed variables."""
    netns.need(WHY)
    agent = cable.Agent(lab)
    up, gw, base = api_setup(lab, listen=agent.gateway)
    env = variables(gw.cli("sandbox", "create", "ci", "--format", "docker", rc=0).out)

    def call(env, direct=NOWHERE):
        return agent.run([program(), "doctor", "--from-sandbox", "--json", "--direct", direct], env=env)
    return agent, gw, Inside(call, env)


@test()
def from_a_shell_all_is_well(lab):
    agent, gw, inside = shell(lab)
    assert inside() == {}
    text = agent.run([program(), "doctor", "--from-sandbox", "--direct", NOWHERE], env=inside.env, rc=0).out.decode()
    assert "this is the sandbox ci" in text and f"{NOWHERE} cannot be reached directly" in text, text
    assert text.count("verifies the gateway") == 3, text  # bundle, CA, truststore


@test()
def from_a_shell_a_broken_ca_is_named(lab):
    agent, gw, inside = shell(lab)
    system = "/etc/ssl/certs/ca-certificates.crt"
    inside.expect("trust", rf"^REQUESTS_CA_BUNDLE: {system} does not verify the gateway: ", REQUESTS_CA_BUNDLE=system)
    inside.expect("trust", r"^CURL_CA_BUNDLE: /none cannot be read: No such file", CURL_CA_BUNDLE="/none")
    inside.expect("trust", r"^NODE_EXTRA_CA_CERTS: /etc/hostname does not verify", NODE_EXTRA_CA_CERTS="/etc/hostname")
    java = inside.env["JAVA_TOOL_OPTIONS"].replace(str(gw.state / "truststore.p12"), "/etc/hostname")
    inside.expect("trust", r"^JAVA_TOOL_OPTIONS: /etc/hostname is not a truststore", JAVA_TOOL_OPTIONS=java)


@test()
def from_a_shell_a_broken_variable_is_named(lab):
    agent, gw, inside = shell(lab)
    inside.expect("variables", r"^not set: http_proxy GIT_SSL_CAINFO$", http_proxy=None, GIT_SSL_CAINFO=None)
    inside.expect("variables", r"^not the same as HTTPS_PROXY: http_proxy$", http_proxy="http://10.1.1.1:3128")
    inside.expect("variables", r"^NO_PROXY names \*$", NO_PROXY="*")
    inside.expect("variables", r"^no_proxy names \.internal\.example$", no_proxy="localhost, .internal.example")
    inside.expect("variables", r"^not the same as HTTPS_PROXY: ALL_PROXY$", ALL_PROXY="socks5://10.1.1.1:1")
    none = {name: None for name in inside.env if "proxy" in name.lower()}
    found = inside(**none)
    assert list(found) == ["variables", "dns"] and found["variables"][0].startswith("no proxy is named"), found
    inside.expect("variables", r"^HTTPS_PROXY is not the URL of a proxy$", HTTPS_PROXY="gateway:3128")
    found = inside(HTTPS_PROXY="http://a\x1b[2Jb:1")
    assert "\x1b" not in json.dumps(found)


@test()
def from_a_shell_broken_names_and_ways_are_named(lab):
    agent, gw, inside = shell(lab)
    port = gw.proxy.rsplit(":")[-1]
    by_name = {k: v.replace(gw.proxy, f"gateway:{port}") for k, v in inside.env.items()}
    inside.expect("dns", r"^the proxy cannot be found: gateway: ", **by_name)
    elsewhere = {k: v.replace(gw.proxy, f"{agent.gateway}:1") for k, v in inside.env.items()}
    inside.expect("proxy", r"^the proxy cannot be reached: .*port 1: Connection refused", **elsewhere)
    wrong = {k: re.sub("cst_[^@]*", "cst_wrong", v) for k, v in inside.env.items()}
    inside.expect("token", r"^the proxy does not take this token: it answers 407", **wrong)
    gw.cli("env", "ci", "--revoke-others", rc=0)
    inside.expect("token", r"^the proxy does not take this token")


@test()
def from_a_shell_a_wrong_clock_is_named(lab):
    agent, gw, inside = shell(lab)
    inside.expect("clock", r"^7[12]\d\d seconds ahead of the gateway's$", **faketime("+2h"))
    inside.expect("clock", r"^3[0-9]{7} seconds behind the gateway's$", **faketime("-1y"))


@test()
def from_a_shell_a_way_around_is_named(lab):
    agent, gw, inside = shell(lab)
    with socket.create_server((agent.gateway, 0)) as there:
        place = f"{agent.gateway}:{there.getsockname()[1]}"
        found = judged(inside.call(inside.env, place))
    assert found == {"direct": [f"{place} can be reached without the gateway"]}, found


def run_sandbox(lab, *options):
    """A sandbox of `countersign run`. For a value, "-" takes the variable away."""
    up, gw, base = api_setup(lab)
    prefix = pathlib.Path(program()).resolve().parent.parent
    (lab.dir / "work").mkdir()
    system = lab.dir / "work/roots.crt"
    shutil.copy("/etc/ssl/certs/ca-certificates.crt", system)

    def call(changes):
        unset = [word for k, v in changes.items() if v == "-" for word in ("-u", k)]
        words = ["env", *unset, *(f"{k}={v}" for k, v in changes.items() if v != "-")]
        return lab.run([program(), "run", "--state-dir", gw.state, "--workspace", lab.dir / "work", "--read", prefix,
                        *options, "--", *words, program(), "doctor", "--from-sandbox", "--json", "--direct", NOWHERE])
    return Inside(call, {})


@test()
def from_a_shell_over_socks(lab):
    netns.need(WHY)
    agent = cable.Agent(lab)
    socks = f'{{ name: socks, socks5: "{agent.gateway}:0", identity: token }}'
    up, gw, base = api_setup(lab, listen=agent.gateway, listeners=[socks])
    env = variables(gw.cli("sandbox", "create", "ci", "--format", "docker", "--via", "socks5", rc=0).out)
    inside = Inside(lambda env: agent.run([program(), "doctor", "--from-sandbox", "--json", "--direct", NOWHERE], env=env), env)
    assert inside() == {}
    here = {k: v for k, v in env.items() if v.startswith("socks5h://")}
    inside.expect("trust", r"^GIT_SSL_CAINFO: /etc/hostname does not verify", GIT_SSL_CAINFO="/etc/hostname")
    inside.expect("variables", r"^not the same as HTTPS_PROXY: http_proxy$", http_proxy="socks5h://10.1.1.1:1080")
    inside.expect("variables", r"^HTTPS_PROXY asks for names to be resolved here",
                  HTTPS_PROXY=here["HTTPS_PROXY"].replace("socks5h", "socks5"))
    inside.expect("dns", r"^the proxy cannot be found: gateway: ", **{k: v.replace(gw.socks, "gateway:1080") for k, v in here.items()})
    inside.expect("token", r"^the proxy does not take this token", **{k: re.sub("cst_[^@]*", "cst_x", v) for k, v in here.items()})
    inside.expect("clock", r"seconds ahead of the gateway's", **faketime("+2h"))
    gw.stop()
    inside.expect("proxy", r"^the proxy cannot be reached")


def captured(lab, nameserver="10.99.0.1"):
    """A network that is captured by conf/nftables, and that nothing was told to."""
    netns.need(WHY)
    box = netns.Box(lab, nameserver)
    netns.Rules(lab, "gateway")
    listener = ('{ name: vms, transparent: "10.99.0.1:15001", dns: "10.99.0.1:15053", '
                'identity: { source: { "10.99.0.2": vm1 } } }')
    up, gw, base = api_setup(lab, listeners=[listener])
    env = variables(gw.cli("sandbox", "create", "ci", "--format", "docker", rc=0).out)
    env = {k: v for k, v in env.items() if "proxy" not in k.lower()}  # trust is all it needs
    return box, Inside(lambda env: box.run([program(), "doctor", "--from-sandbox", "--json", "--direct", NOWHERE], env=env), env)


@test()
def from_a_captured_network(lab):
    box, inside = captured(lab)
    assert inside() == {}
    inside.expect("trust", r"^SSL_CERT_FILE: /etc/hostname does not verify", SSL_CERT_FILE="/etc/hostname")
    inside.expect("variables", r"^not set: REQUESTS_CA_BUNDLE$", REQUESTS_CA_BUNDLE=None)
    inside.expect("clock", r"seconds ahead of the gateway's", **faketime("+2h"))
    resolv = lab.dir / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.1\n")  # where nobody answers
    found = inside()
    assert found["dns"] == ["countersign.internal has no address"], found


@test()
def from_a_run_sandbox(lab):
    inside = run_sandbox(lab)
    assert inside() == {}
    inside.expect("trust", r"^SSL_CERT_FILE: /workspace/roots.crt does not verify", SSL_CERT_FILE="/workspace/roots.crt")
    inside.expect("variables", r"^not set: HTTPS_PROXY$", HTTPS_PROXY="-")
    inside.expect("variables", r"^NO_PROXY names \*$", NO_PROXY="*")
    inside.expect("proxy", r"^the proxy cannot be reached", **{n: "http://127.0.0.1:1" for n in PROXIES})
    inside.expect("clock", r"seconds ahead of the gateway's", **faketime("+2h"))


@test()
def from_a_run_sandbox_that_captures_nothing(lab):
    inside = run_sandbox(lab, "--no-capture")
    assert inside() == {}
    inside.expect("dns", r"^the proxy cannot be found", **{n: "http://gateway:3128" for n in PROXIES})


@test()
def from_a_transparent_run_sandbox(lab):
    inside = run_sandbox(lab, "--transparent")
    assert inside() == {}
    inside.expect("trust", r"^SSL_CERT_FILE: /workspace/roots.crt does not verify", SSL_CERT_FILE="/workspace/roots.crt")
    inside.expect("variables", r"^not set: GIT_SSL_CAINFO$", GIT_SSL_CAINFO="-")
    inside.expect("proxy", r"cannot be reached", **{n: "http://127.0.0.1:1" for n in PROXIES})
    inside.expect("clock", r"seconds ahead of the gateway's", **faketime("+2h"))


@test()
def on_the_host(lab):
    up, gw, base = api_setup(lab)

    def doctor(env=None):
        return judged(lab.run([program(), "doctor", "--state-dir", gw.state, "--json"], env=env))
    assert doctor() == {}
    text = gw.cli("doctor", rc=0).out.decode()
    assert f"http://{gw.proxy} answers" in text and "BAD" not in text, text
    assert "frozen" not in text and "shadow" not in text and "1 credential is named" in text, text
    assert "X509_STRICT" not in text, text
    assert "can be captured" in text or "cannot be captured" in text and "note run" in text, text
    (gw.policy.parent / "loose.pem").write_bytes((HERE.parent / "policy/loose-ca.pem").read_bytes())
    strict = gw.policy.read_text()
    gw.policy.write_text(strict.replace("upstreams:\n", "upstreams:\n  - { host: loose.test, ca: loose.pem }\n", 1))
    gw.cli("reload", rc=0)
    text = gw.cli("doctor", rc=0).out.decode()  # which is nothing bad
    assert re.search(r'loose\.pem: the CA "/CN=Example CA" has no key usage that lets it sign certificates; certificates below it '
                     r"are checked without X509_STRICT", text), text
    gw.policy.write_text(strict)
    gw.cli("reload", rc=0)
    text = gw.cli("doctor", rc=0).out.decode()
    assert "X509_STRICT" not in text, text
    assert "every request is refused" not in text, text
    gw.policy.write_text("version: 1\nname: empty\n")
    gw.cli("reload", rc=0)
    assert b"no policy with rules is in force, so every request is refused" in gw.cli("doctor", rc=0).out
    gw.policy.write_text(strict)
    gw.cli("reload", rc=0)
    gw.cli("freeze", rc=0)
    text = gw.cli("doctor", rc=0).out.decode()
    assert "writes are frozen by " in text, text
    gw.cli("thaw", rc=0)
    gw.cli("secret", "rm", "api", rc=0)
    lab.expects(NOT_RELEASED)
    found = lab.wait_for("the keeper's word", doctor)
    assert found == {"secrets": ["the policy names the credential api, and it has no value: nothing of that name is in the store; "
                                 "`countersign secret set` puts it there"]}, found
    answer = lab.run(["curl", "-si", base + "/x"], env=gw.client_env()).out
    assert b" 502" in answer and b"credential-unavailable" in answer, answer
    row = gw.recorded(kind="result")[0]
    assert row["code"] == "credential-unavailable" and row["outcome"] == "not-sent", row
    gw.cli("secret", "set", "api", stdin=b"another-canary-value", rc=0)
    lab.wait_for("the keeper's word", lambda: not doctor())
    bundle = gw.state / "bundle.crt"
    whole = bundle.read_bytes()
    bundle.write_bytes(whole.replace((gw.state / "ca.crt").read_bytes().strip(), b""))
    assert "does not hold the certificate of ca.crt" in doctor()["ca"][0]
    bundle.write_bytes((gw.state / "ca.crt").read_bytes())
    assert "holds no system roots" in doctor()["ca"][0]
    bundle.write_bytes(whole)
    (gw.state / "truststore.p12").rename(gw.state / "elsewhere.p12")
    assert "truststore.p12: No such file" in doctor()["ca"][0]
    (gw.state / "elsewhere.p12").rename(gw.state / "truststore.p12")
    found = doctor(faketime("-1y"))
    assert "stands before the day the CA was made" in found["clock"][0] and len(found["clock"]) == 2, found
    assert "no longer valid" in doctor(faketime("+30y"))["ca"][0]
    gw.state.chmod(0o777)
    assert "can be written by others" in doctor()["state"][0]
    gw.state.chmod(0o755)
    gw.stop()
    assert doctor() == {}, "a gateway that does not run is not a fault"


@test()
def the_status_says_what_is_in_force_what_waits_and_what_the_files_say_now(lab):
    lab.leaves("pending")
    up, token = lab.upstream(), lab.canary(secrets.token_urlsafe(32))
    gw = Gateway(lab, simple_policy(up), {"api": token.encode()}, hold="inline_wait: 1s, expires: 2h")

    def files():
        return {pathlib.Path(f["name"]).name: f["state"] for f in gw.cli_json("status")["files"]}

    def doctor():
        return judged(lab.run([program(), "doctor", "--state-dir", gw.state, "--json"])).get("policy")
    status = gw.cli_json("status")
    assert files() == {"countersign.yaml": "same", "policy.yaml": "same", "ca.pem": "same"}, status["files"]
    assert [(r["name"], r["url"]) for r in status["listeners"]] == [("agents", f"http://{gw.proxy}")], status
    assert status["page"] == gw.page.partition("/sign-in")[0] and status["waiting"] == 0, status
    assert 0 <= status["time_ms"] - status["started_ms"] < 60_000 * PATIENCE, status
    text = gw.cli("status", rc=0).out.decode()
    assert re.search(r"^waiting +nothing$", text, re.M), text
    assert re.match(r"version   (\S+)\nmode      enforce\nup  ", text) and text.split()[1] == status["version"], text
    gw.cli("freeze", "--reason", "a drill", rc=0)
    assert re.match(r"version .*\nmode .*\nwrites    frozen by \S+ since .*: a drill \(countersign thaw\)\nup ", gw.cli("status", rc=0).out.decode())
    gw.cli("thaw", rc=0)
    # A file that was named by a path of somebody's directory is shown by its whole one.
    (lab.dir / "sub").mkdir()
    lab.start([program(), "up", "--private", "--state-dir", lab.dir / "other", "--policy", "../policy.yaml"], cwd=lab.dir / "sub", ready="countersign is up")
    said = lab.run([program(), "status", "--state-dir", lab.dir / "other"], rc=0).out.decode()
    assert f"\n          {gw.policy}\n" in said, said
    assert f"version {status['policy'][:12]}, {status['rules']} rules, in force for" in text, text
    lab.run(["curl", "-sS", "--data-binary", "a=1", f"https://{up.name}:{up.port}/things"], env=gw.client_env())
    assert gw.cli_json("status")["waiting"] == 1 and b"waiting   1, the oldest for" in gw.cli("status").out
    assert doctor() is None
    for name in (gw.policy, gw.config):
        name.write_text(name.read_text() + "# changed\n")
    assert files() == {"countersign.yaml": "changed", "policy.yaml": "changed", "ca.pem": "same"}
    assert [w for w in doctor() if "policy.yaml" in w] == [f"{gw.policy} was changed and is not in force"], doctor()
    assert b"CHANGED since it was read" in gw.cli("status").out
    gw.cli("reload", rc=0)
    assert set(files().values()) == {"same"} and doctor() is None
    gw.config.write_text(gw.config.read_text().replace("expires: 2h", "expires: 3h"))
    gw.cli("reload", rc=0)
    assert gw.cli_json("status")["needs_restart"] == "hold" and b"in: hold" in gw.cli("status").out
    gw.policy.unlink()
    assert files()["policy.yaml"] == "unreadable" and "cannot be read any more" in doctor()[0], doctor()


main()
