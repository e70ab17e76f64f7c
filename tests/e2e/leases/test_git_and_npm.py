#!/usr/bin/env python3
"""Git and npm, unmodified, with a lease where each reads its credential: Git in a setting for the places of it, npm in a line of
its configuration. Neither is told anything, and nothing of a sandbox ever holds what the servers want."""
import os

from clients import Inside
from gateway import Gateway, upstream_yaml
from harness import main, test

WHO = sum((["--setenv", f"GIT_{who}_{what}"] for who in ("AUTHOR", "COMMITTER")
           for what in ("NAME=Agent", "EMAIL=agent@sandbox.invalid")), [])
WITH = ["--with", "forge"]


def git_behind(lab, inject, secret, form, whole=False):
    """A Git server whose credential only goes to who brings a lease of it. whole: to any path of it, and to some of them."""
    git = lab.git_server()
    place = f'host: {git.host}, port: {git.port}, path: "/demo/**"'
    more = f"{{ host: {git.host}, port: {git.port} }}, " if whole else ""
    gw = Gateway(lab, f"""version: 1
name: git
packs: [git@1]
upstreams:
{upstream_yaml(git.host, git.port, git.ca)}
credentials:
  forge:
    source: {{ store: forge }}
    inject: {{ basic: {inject} }}
    lease: {form}
    require_lease: true
    only: [{more}{{ {place} }}]
rules:
  - {{ id: fetch, match: {{ {place}, op: [git.fetch, git.fetch.refs] }}, decide: allow, use: forge }}
  - {{ id: push, match: {{ {place}, op: git.push }}, decide: hold, use: forge }}
""", {"forge": secret(git).encode()})
    return git, Inside(lab, gw)


@test()
def git_clones_and_pushes_with_a_lease(lab):
    git, inside = git_behind(lab, "true", lambda git: f"{git.user}:{git.password}", "github", whole=True)  # one of two places in the other
    done = inside("git", "clone", "-q", git.url, "app", options=WITH)
    assert b"Git's http.https://git.demo.test:" in done.err, done.text()
    inside.had_no_secret("git", "git-remote-http")
    (inside.work / "app/file.bin").write_bytes(os.urandom(100_000))
    push = inside.start("sh", "-ec", "cd app; git add file.bin; git commit -qm 'by an agent'; git push -q origin HEAD:main; git fetch -q",
                        options=[*WITH, *WHO])
    ticket = inside.gw.pending()
    assert git.landed() == []
    inside.gw.approve(ticket["id"])
    assert push.wait() == 0, push.seen
    inside.had_no_secret("git", "git-remote-http")
    assert len(git.landed()) == 1 and {r["user"] for r in git.log()} == {git.user}, git.log()


@test()
def git_without_its_lease_reaches_nothing(lab):
    git, inside = git_behind(lab, "{ user: demo }", lambda git: git.password, "generic")
    inside("git", "clone", "-q", git.url, "app", options=WITH)
    asked = len(git.log())
    done = inside("git", "-C", "app", "fetch", rc=128)
    assert b"could not read Username" in done.err and len(git.log()) == asked, done.text()
    done = inside("git", "-C", "app", "-c", "http.extraHeader=Authorization: Basic bWU6bXk=", "fetch", rc=128)
    assert b"brings a lease of it" in done.err and len(git.log()) == asked, done.text()
    # A lease is sent where its credential may go, and to no other place of the same host.
    url = git.url.replace("/demo/", "/other/")
    done = inside("sh", "-c", f"git config --get-urlmatch http.extraheader {git.url} && ! git config --get-urlmatch http.extraheader {url}",
                  options=WITH)
    assert done.out.startswith(b"Authorization: Basic "), done.text()


@test()
def git_asks_first_and_its_helper_has_a_lease(lab):
    git, inside = git_behind(lab, "{ user: demo }", lambda git: git.password, "generic")
    helper = '!f() { echo username=me; echo "password=$API_KEY"; }; f'
    done = inside("sh", "-ec", f"unset GIT_CONFIG_COUNT; git -c credential.helper='{helper}' clone -q {git.url} app; "
                  f"git clone -q $(echo {git.url} | sed s,//,//me:$API_KEY@,) again; cmp app/.git/packed-refs again/.git/packed-refs", options=WITH)
    inside.had_no_secret("git", "git-remote-http")
    assert {r["user"] for r in git.log()} == {"demo"}, done.text()


@test()
def npm_publishes_and_installs_with_a_lease(lab):
    registry = lab.verdaccio()
    place = f"host: {registry.host}, port: {registry.port}"
    gw = Gateway(lab, f"""version: 1
name: npm
packs: [npm@1]
upstreams:
{upstream_yaml(registry.host, registry.port, registry.ca)}
credentials:
  npm:
    source: {{ store: npm }}
    inject: {{ header: Authorization, format: "Bearer {{}}" }}
    lease: npm
    require_lease: true
    only: [{{ {place} }}]
rules:
  - {{ id: read, match: {{ {place}, effect: read }}, decide: allow, use: npm }}
  - {{ id: publish, match: {{ {place}, effect: write }}, decide: hold, use: npm }}
""", {"npm": registry.token().encode()})
    inside = Inside(lab, gw)
    options = ["--with", "npm", *inside.early("node"), *sum((["--setenv", f"npm_config_{name}"] for name in (
        f"registry={registry.url}", "audit=false", "fund=false", "update_notifier=false")), [])]
    (inside.work / "thing").mkdir()
    (inside.work / "thing/package.json").write_text('{"name": "agents-thing", "version": "1.0.0", "description": "by an agent"}')
    publish = inside.start("sh", "-c", "cd thing && npm publish", options=options)  # a shell drops names that npm would take
    inside.gw.approve(inside.gw.pending()["id"])
    assert publish.wait() == 0 and b"+ agents-thing@1.0.0" in publish.seen, publish.seen
    inside.had_no_secret("node", early=True)
    (inside.work / "user").mkdir()
    inside("npm", "install", "--prefix", "user", "agents-thing@1.0.0", options=options)
    assert (inside.work / "user/node_modules/agents-thing/package.json").exists()
    inside.had_no_secret("node", early=True)
    done = inside("npm", "view", "agents-thing", options=options[2:], rc=1)
    assert b"A lease is required" in done.both, done.text()


if __name__ == "__main__":
    main()
