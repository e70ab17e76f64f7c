"""Started sandboxes with a way out, for the tests of this folder."""
from boxes import Nobodys, execute
from gateway import Gateway, simple_policy


def lanes(lab, ordinary=False, more="", **config):
    """A gateway whose policy allows reads of one lane alone, at the upstream's TLS and plain port; it and the upstream."""
    up = lab.upstream()
    policy = simple_policy(up).replace("rules:", "scopes:\n  web: { labels: { lane: [web] } }\nrules:", 1) \
        .replace("decide: allow", "decide: allow\n    scope: web", 1)
    policy = policy.replace("upstreams:\n", f'upstreams:\n  - {{ host: {up.name}, port: {up.plain_port}, address: 127.0.0.1, '
                            'allow_private: ["127.0.0.1/32"] }\n', 1)
    policy += f"""  - id: plain
    match: {{ host: {up.name}, port: {up.plain_port}, scheme: http, effect: read }}
    scope: web
    decide: allow
{more}"""
    return Gateway(Nobodys(lab) if ordinary else lab, policy, {"api": lab.canary("c" * 40).encode()}, **config), up


def asked(gw, up, name, path, rc=0, options=()):
    """The status of a read of the upstream that this sandbox sends; it says it over what it was given."""
    return execute(gw, name, "curl", "-sS", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}", *options,
                   f"https://{up.name}:{up.port}{path}", rc=rc).out.decode()
