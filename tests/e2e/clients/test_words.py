#!/usr/bin/env python3
"""What unmodified clients print of a denial and of a hold: the gateway's sentence has to be in their own output, in the words of the
API that they speak (proxy/judge/replies/dialect.c), with the ticket and what to do. The programs that are not here are told by the
same rows, to the byte, in tests/unit/judge/test_judge_dialect_shapes.c; git, npm and pip: test_clients.py."""
import json
import secrets
import shutil

import room  # noqa: F401
from apis import LOOKS, raw
from gateway import Gateway, program, upstream_yaml
from harness import HERE, Skip, main, test
from servers import npm_modules

AT = "@AT@"  # in what a client is told: the host and port that it asks
NO = "Nothing is changed here on weekdays; ask in #storage <&>."
NODE = {
    "S3": """const { S3Client, PutObjectCommand } = require("@aws-sdk/client-s3");
const s3 = new S3Client({ endpoint: process.argv[1], forcePathStyle: true });
s3.send(new PutObjectCommand({ Bucket: "bucket", Key: "key", Body: "x" })).catch(e => console.log(e.name, e.message));""",
    "OpenAI": """const { OpenAI } = require("openai"), o = new OpenAI({ apiKey: "any", baseURL: process.argv[1] });
o.chat.completions.create({ model: "m", messages: [] }).catch(e => console.log(e.constructor.name, e.message));""",
    "Anthropic": """const { Anthropic } = require("@anthropic-ai/sdk"), a = new Anthropic({ apiKey: "any", baseURL: process.argv[1] });
const asked = { model: "m", max_tokens: 9, messages: [{ role: "user", content: "x" }] };
a.messages.create(asked).catch(e => console.log(e.constructor.name, e.error.error.message));""",
    "Octokit": """const { Octokit } = require("@octokit/rest"), o = new Octokit({ auth: "any", baseUrl: process.argv[1] });
o.issues.create({ owner: "acme", repo: "app", title: "x" }).catch(e => console.log(e.name, e.message));""",
    "Slack": """const { WebClient } = require("@slack/web-api"), slack = new WebClient("xoxb-any", { slackApiUrl: process.argv[1] });
slack.chat.postMessage({ channel: "C1", text: "x" }).catch(e => console.log(e.code, e.message));""",
    "Stripe": """const [host, port] = process.argv[1].slice(8).split(":"), Stripe = require("stripe");
new Stripe("sk_test_any", { host, port, protocol: "https" }).refunds.create({ charge: "ch_1" }).catch(e => console.log(e.type, e.message));"""}

DELETE = """import sys, boto3
try:
    boto3.client("dynamodb", endpoint_url=sys.argv[1], region_name="eu-1", aws_access_key_id="any", aws_secret_access_key="any").delete_table(TableName="table")
except Exception as e:
    print(e)"""


class Told:
    """A host where everything but LOOKS is denied, one where it is held and would leave with a credential in place of what the client has in
    its own, and commands that ask both."""

    def __init__(self, lab):
        lab.leaves("pending")
        self.lab, self.work, self.up = lab, lab.dir / "work", lab.upstream("deny.test", "hold.test")
        self.work.mkdir()
        (self.work / "file").write_text("data")
        self.up.script({path: raw(answer) for path, answer in LOOKS.items()})
        rules, hosts = "", ("deny.test", "hold.test")
        for host, decide in zip(hosts, (f"decide: deny, say: '{NO}'", "decide: hold, use: api")):
            place = f"host: {host}, port: {self.up.port}"
            rules += "".join(f'  - {{ id: look-{host}-{n}, match: {{ {place}, path: "{path}", method: GET }}, decide: allow }}\n'
                             for n, path in enumerate(LOOKS))
            except_ = f"except: [{', '.join(f'{{ path: {chr(34)}{path}{chr(34)} }}' for path in LOOKS)}]"
            rules += f"  - {{ id: {host}, match: {{ {place} }}, {except_}, {decide} }}\n"
        self.gw = Gateway(lab, f"version: 1\nname: words\nupstreams:\n{''.join(upstream_yaml(h, self.up.port, self.up.ca) for h in hosts)}"
                          f"credentials:\n  api: {{ source: {{ store: api }}, inject: {{ header: Authorization, format: 'Bearer {{}}' }}, "
                          f"only: [{{ host: hold.test, port: {self.up.port} }}] }}\nrules:\n{rules}",
                          {"api": lab.canary(secrets.token_urlsafe(40)).encode()}, hold="inline_wait: 0s, expires: 2h")

    def __call__(self, *words, setenv=(), options=(), only=None):
        """Both refusals are in what the command prints (its standard error: only="err"), and nothing got through."""
        if not shutil.which(words[0], path="/usr/bin"):
            raise Skip(f"{words[0]} of Debian (conf/need test)")
        env = ["AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any", "AWS_DEFAULT_REGION=eu-1", "AWS_REGION=eu-1", "AWS_PAGER=", *setenv]
        for host in ("deny.test", "hold.test"):
            at = f"{host}:{self.up.port}"
            command = [str(w).replace(AT, at) for w in words]
            done = self.lab.run([program(), "run", "--quiet", "--state-dir", self.gw.state, "--workspace", self.work, *options,
                                 *sum((["--setenv", e.replace(AT, at)] for e in env), []), "--", *command])
            said = " ".join((done.err if only == "err" else done.both).decode().split())
            if host == "deny.test":
                assert NO in said, done.text()
                continue
            tickets = self.gw.tickets()
            assert any(f"Ticket {t['id']}, open until" in said for t in tickets), (done.text(), tickets)
            assert "Repeat the same request, unchanged: it joins this ticket" in said, done.text()
        sent = {r["target"].partition("?")[0] for r in self.up.requests()} - set(LOOKS)
        assert not sent, sent


@test()
def the_aws_cli_shows_it_of_each_protocol(lab):
    """A download begins with a HEAD, whose answer has no body: of that one it prints the status alone."""
    told = Told(lab)
    for words in ("s3 cp file s3://bucket/key", "s3 ls s3://bucket", "dynamodb list-tables", "lambda list-functions",
                  "sts get-caller-identity", "ec2 describe-instances", "route53 list-hosted-zones"):
        told("aws", "--endpoint-url", f"https://{AT}", *words.split())


@test()
def what_was_carried_out_is_not_done_again_by_boto3(lab):
    """The answer has the credential in it, compressed, so it cannot be handed on. After a 502 the SDK would send the request again."""
    if lab.run(["/usr/bin/python3", "-c", "import boto3"]).rc:
        raise Skip("python3-boto3 of Debian (conf/need test)")
    up = lab.upstream()
    place = f"host: {up.name}, port: {up.port}"
    up.script({"/": "/echo?form=raw&enc=gzip"})
    gw = Gateway(lab, f"""version: 1
name: done
upstreams:
{upstream_yaml(up.name, up.port, up.ca)}credentials:
  api: {{ source: {{ store: api }}, inject: {{ header: Authorization, format: "Bearer {{}}" }}, only: [{{ {place} }}] }}
rules:
  - {{ id: all, match: {{ {place} }}, decide: allow, use: api }}
""", {"api": lab.canary(secrets.token_urlsafe(40)).encode()})
    env = {**gw.client_env(), "AWS_CA_BUNDLE": str(gw.state / "bundle.crt")}
    done = lab.run(["/usr/bin/python3", "-c", DELETE, f"https://{up.name}:{up.port}"], env=env, rc=0)
    assert b"OperationAborted" in done.out and b"it was carried out" in done.out, done.text()
    assert len(up.requests()) == 1, up.requests()


@test()
def slack_is_told_as_slack_tells_it_and_it_is_a_refusal_all_the_same(lab):
    """Its SDK looks at `ok` and repeats what is no 200. A file is uploaded by the status alone."""
    up = lab.upstream("slack.com")
    gw = Gateway(lab, f"""version: 1
name: slack
upstreams:
{upstream_yaml(up.name, up.port, up.ca)}rules:
  - {{ id: slack, match: {{ host: {up.name}, port: {up.port} }}, decide: deny, say: '{NO}' }}
""")
    for path, status in (("/api/chat.postMessage", b"200"), ("/upload/v1/file", b"403")):
        done = lab.run(["curl", "-sS", "--suppress-connect-headers", "-i", "-A", "@slack:web-api/7.9.3 node/20", "-d", "text=x",
                        f"https://{up.name}:{up.port}{path}"], env=gw.client_env(), rc=0)
        head, _, body = done.out.partition(b"\r\n\r\n")
        said = json.loads(body)
        assert head.split()[1] == status and b"Countersign-Decision: deny" in head, done.text()
        assert said["ok"] is False and NO in said["error"] and said["countersign"]["code"] == "denied", said
    assert {r["path"] for r in gw.recorded(2, kind="denied", verdict="deny", code="rule")} == {"/api/chat.postMessage", "/upload/v1/file"}
    assert not up.requests()


@test()
def s3cmd_shows_it(lab):
    told = Told(lab)
    told("s3cmd", "-c", "/dev/null", f"--host={AT}", f"--host-bucket={AT}", "--region=eu-1", "--no-progress", "put", "file", "s3://bucket/key")


def node(lab, which, path=""):
    modules = npm_modules(HERE / "npm") / "node_modules"
    Told(lab)("node", "-e", NODE[which], f"https://{AT}{path}", options=["--read", modules, "--setenv", f"NODE_PATH={modules}"])


@test()
def the_aws_sdk_for_javascript_shows_it(lab):
    node(lab, "S3")


@test()
def the_sdk_of_openai_shows_it(lab):
    node(lab, "OpenAI", "/v1")


@test()
def the_sdk_of_anthropic_shows_it(lab):
    node(lab, "Anthropic")


@test()
def octokit_shows_it(lab):
    node(lab, "Octokit", "/api/v3")


@test()
def the_sdk_of_slack_shows_it(lab):
    node(lab, "Slack", "/api/")


@test()
def the_sdk_of_stripe_shows_it(lab):
    node(lab, "Stripe")


@test()
def git_lfs_shows_it(lab):
    told = Told(lab)
    lab.run(["git", "init", "-q", "-b", "main", told.work], rc=0)
    (told.work / "a.bin").write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 6\n")
    (told.work / ".gitattributes").write_text("*.bin filter=lfs -text\n")
    mine = ["git", "-C", told.work, "-c", "filter.lfs.clean=cat", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false", "-c", "user.name=a", "-c", "user.email=a@a.example"]
    lab.run([*mine, "add", "."], rc=0)
    lab.run([*mine, "commit", "-qm", "x"], rc=0)
    told("git-lfs", "fetch", setenv=["GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=lfs.url", f"GIT_CONFIG_VALUE_0=https://{AT}/acme/app.git/info/lfs"])


@test()
def gh_shows_it_of_rest_and_of_graphql(lab):
    """On its standard error; on the other one it prints what came, whatever that is."""
    told, env = Told(lab), [f"GH_HOST={AT}", "GH_ENTERPRISE_TOKEN=any", "GH_NO_UPDATE_NOTIFIER=1"]
    told("gh", "api", "repos/acme/app/issues", "-f", "title=by an agent", setenv=env, only="err")
    told("gh", "api", "graphql", "-f", "query={viewer{login}}", setenv=env, only="err")
    told("gh", "issue", "view", "7", "-R", f"{AT}/acme/app", setenv=env)


@test()
def kubectl_shows_it(lab):
    if not shutil.which("kubectl", path="/usr/bin"):
        raise Skip("kubectl (kubernetes-client of Debian)")
    Told(lab)("kubectl", "--server", f"https://{AT}", "--token", "any", "--cache-dir", "/tmp/cache", "delete", "configmap", "x")


@test()
def skopeo_shows_it(lab):
    Told(lab)("skopeo", "inspect", f"docker://{AT}/library/app")


@test()
def a_program_that_nobody_knows_reads_the_same_in_problem_json(lab):
    Told(lab)("curl", "-sS", "-d", "a=1", f"https://{AT}/x")


if __name__ == "__main__":
    main()
