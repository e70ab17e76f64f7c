#!/usr/bin/env python3
"""The diff of a held push: found out in a sandbox of its own, by a lane that the policy lets read the repository."""
import json
import pathlib
import sys

from room import forms, words
from gateway import Page
from harness import main, test
from pushes import all_kinds, by_path, commit, first_of_kinds, over, push, run, setup

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "warden"))
from boxes import nothing_is_left  # noqa: E402

@test()
def a_push_is_shown_like_a_pull_request(lab):
    git, gw, env, work = setup(lab)
    page = Page(gw)
    first_of_kinds(lab, work, env)
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    said, diff = over(lab, gw, ticket)
    assert said == {"wanted": "required", "state": "made", "complete": True}, (said, diff)
    gw.approve(ticket)
    assert client.wait() == 0, client.log.read_text()

    new = all_kinds(lab, work, env)
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    said, diff = over(lab, gw, ticket)
    assert said["complete"] is True, (said, diff)
    [ref] = diff["refs"]
    assert (ref["state"], ref["base"], ref["dropped"]) == ("compared", "old", 0), ref
    assert [(c["id"], c["subject"], c["author"]) for c in ref["commits"]] == [(new, "all kinds of changes", "Agent")], ref["commits"]
    f = by_path(ref)
    assert "-line 1500\n+another line\n" in f["big.txt"]["patch"] and (f["big.txt"]["added"], f["big.txt"]["removed"]) == (1, 1)
    assert (f["tool"]["old_mode"], f["tool"]["new_mode"], f["tool"]["kind"]) == ("100644", "100755", "same"), f["tool"]
    assert (f["moved.txt"]["how"], f["moved.txt"]["from"]) == ("R", "moves.txt")
    assert (f["picture.bin"]["kind"], f["picture.bin"]["new_size"]) == ("binary", 2048)
    assert f["link"]["new_mode"] == "120000" and "+/etc/passwd" in f["link"]["patch"]
    assert (f["vendored"]["kind"], f["vendored"]["new_module"]) == ("module", "a" * 40)
    assert f["README.md"]["how"] == "D" and "evil\n\u202ename" in f
    text = page.ask("GET", f"/tickets/{ticket}")[1].decode()
    seen = words(text)
    for sentence in ("What the push changes a yes waits for it", "all kinds of changes", "moves.txt → moved.txt", "runs in CI", "lock file",
                     "becomes executable", "symbolic link", "submodule", "binary", "10 files"):
        assert sentence in seen, (sentence, seen)
    assert "\u202e" not in text and "approve" in forms(text), "its name is made visible"
    gw.approve(ticket)
    assert client.wait() == 0, client.log.read_text()
    assert git.landed()[-1][1] == new
    nothing_is_left(gw)
    fetched = [r for r in gw.audit() if r.get("kind") == "intent" or "git.fetch" in json.dumps(r)]
    assert any("diff-" in json.dumps(r) for r in fetched), "its reads are in the audit as its own"


@test()
def new_forced_and_deleted_refs(lab):
    git, gw, env, work = setup(lab)
    (work / "a.txt").write_text("a\n")
    commit(lab, work, env, "on main")
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    gw.control("GET", f"/api/v1/tickets/{ticket}")
    over(lab, gw, ticket)
    gw.approve(ticket)
    assert client.wait() == 0, client.log.read_text()
    # a new branch, two commits behind the default one's tip
    run(lab, work, env, "checkout", "-q", "-b", "topic", "HEAD~1")
    for n in range(3):
        (work / f"topic{n}.txt").write_text("topic\n")
        commit(lab, work, env, f"topic {n}")
    client, ticket = push(lab, gw, work, env, "origin", "topic")
    said, diff = over(lab, gw, ticket)
    [ref] = diff["refs"]
    assert said["complete"] and ref["base"] == "branch-off" and set(by_path(ref)) == {f"topic{n}.txt" for n in range(3)}, diff
    assert [c["subject"] for c in ref["commits"]] == ["topic 2", "topic 1", "topic 0"]
    gw.approve(ticket)
    assert client.wait() == 0, client.log.read_text()
    # force: one of three is dropped, another comes in its place
    run(lab, work, env, "reset", "-q", "--hard", "HEAD~1")
    (work / "instead.txt").write_text("instead\n")
    commit(lab, work, env, "instead")
    client, ticket = push(lab, gw, work, env, "--force", "origin", "topic")
    said, diff = over(lab, gw, ticket)
    [ref] = diff["refs"]
    assert said["complete"] and (ref["dropped"], ref["base"]) == (1, "old"), diff
    assert {(p, f["how"]) for p, f in by_path(ref).items()} in ({("instead.txt", "A"), ("topic2.txt", "D")},), ref
    gw.approve(ticket)
    assert client.wait() == 0, client.log.read_text()
    # what a thin pack is made of may be of a branch that is neither this one nor the default
    run(lab, work, env, "checkout", "-q", "-b", "other")
    (work / "long.txt").write_text("".join(f"line {i}\n" for i in range(2000)))
    commit(lab, work, env, "long")
    client, ticket = push(lab, gw, work, env, "origin", "other")
    over(lab, gw, ticket)
    gw.approve(ticket)
    assert client.wait() == 0, client.log.read_text()
    run(lab, work, env, "checkout", "-q", "-b", "third")
    (work / "long.txt").write_text("".join(f"line {i}\n" for i in range(2001)))
    commit(lab, work, env, "longer")
    client, ticket = push(lab, gw, work, env, "origin", "third")
    said, diff = over(lab, gw, ticket)
    assert said["complete"] and "long.txt" in by_path(diff["refs"][0]), (said, diff)
    gw.deny(ticket, "no")
    client.wait()
    client, ticket = push(lab, gw, work, env, "origin", ":topic")
    said, diff = over(lab, gw, ticket)
    assert said["complete"] and diff["refs"] == [{"state": "deleted"}], diff
    assert "It is deleted" in words(Page(gw).ask("GET", f"/tickets/{ticket}")[1].decode())
    gw.deny(ticket, "no")
    client.wait()
    nothing_is_left(gw)


@test()
def what_leaves_and_is_in_no_tip_is_not_hidden(lab):
    """A file that comes and goes in between, an object that no ref reaches, the body of a commit; text that git calls binary."""
    git, gw, env, work = setup(lab, wish="optional")
    (work / "secret.txt").write_text("the secret\n")
    between = commit(lab, work, env, "bring it")
    (work / "secret.txt").unlink()
    commit(lab, work, env, "take it away\n\nwords of the body")
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:refs/heads/between")
    said, diff = over(lab, gw, ticket)
    assert said["state"] == "made" and said["complete"] and diff["hidden"] == 0, (said, diff)
    f = by_path(diff["refs"][0])["secret.txt"]
    assert f["commit"] == between and "+the secret" in f["patch"], f
    seen = words(Page(gw).ask("GET", f"/tickets/{ticket}")[1].decode())
    assert "only in a commit in between" in seen and "words of the body" in seen, seen
    gw.deny(ticket, "no")
    client.wait()
    # as many commits as are listed, and more: what is past them leaves too
    for n in range(52):
        run(lab, work, env, "commit", "-q", "--allow-empty", "-m", f"{n}")
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:refs/heads/between")
    said, diff = over(lab, gw, ticket)
    assert said["complete"] is False and diff["hidden"] > 0 and "nothing here shows" in said["why"], (said, diff["hidden"])
    gw.deny(ticket, "no")
    client.wait()
    run(lab, work, env, "reset", "-q", "--hard", "origin/main")
    (work / "wide.ps1").write_bytes("Remove-Item\n".encode("utf-16"))
    (work / "nul.sh").write_bytes(b"echo one\n\0\n")
    (work / "tool.sh").write_bytes(b"#!/bin/sh\n" + bytes(range(256)) * 8)
    commit(lab, work, env, "text")
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:refs/heads/text")
    said, diff = over(lab, gw, ticket)
    f = by_path(diff["refs"][0])
    assert f["wide.ps1"]["kind"] == f["nul.sh"]["kind"] == "text" and "+echo one" in f["nul.sh"]["patch"], f
    assert f["tool.sh"]["kind"] == "binary" and said["complete"] is False and "can run" in said["why"], (said, f["tool.sh"])
    gw.deny(ticket, "no")
    client.wait()
    nothing_is_left(gw)


@test()
def the_first_push_to_a_repository_is_compared_with_nothing(lab):
    git, gw, env, work = setup(lab)
    repos = git.dir / "repos/demo"
    lab.run(["cp", "-a", repos / "app.git", repos / "empty.git"], rc=0)
    lab.run(["rm", repos / "empty.git/refs/heads/main"], rc=0)
    url = git.url.replace("app.git", "empty.git")
    run(lab, work, env, "tag", "-a", "-m", "first", "v1")
    client, ticket = push(lab, gw, work, env, url, "HEAD:main", "v1")
    said, diff = over(lab, gw, ticket)
    assert said["complete"] and [(r["base"], list(by_path(r))) for r in diff["refs"]] == [("nothing", ["README.md"])] * 2, diff
    assert [c["subject"] for c in diff["refs"][0]["commits"]] == ["First commit"]
    gw.approve(ticket)
    assert client.wait() == 0, client.log.read_text()
    nothing_is_left(gw)


@test()
def many_pushes_are_looked_at_in_turn(lab):
    """Also those of one sandbox that asks for more than may wait: those that are decided make room."""
    _, gw, env, work = setup(lab, wish="optional", hold="inline_wait: 0s, expires: 2h")
    for n in range(20):
        (work / "a.txt").write_text(f"{n}\n")
        commit(lab, work, env)
        lab.run(["git", "-C", work, "push", "-q", "origin", f"HEAD:refs/heads/b{n}"], env=env)
    tickets = [t["id"] for t in gw.tickets()]
    assert len(tickets) == 20
    made = lambda: [t for t in tickets if gw.show(t)["diff"]["state"] == "made"]
    lab.wait_for("as many as are kept of one sandbox", lambda: len(made()) >= 15)
    left = [t for t in tickets if t not in made()]
    for ticket in left:  # looking at one has it made, in place of what was looked at longest ago
        gw.control("GET", f"/api/v1/tickets/{ticket}/diff")
        said, _ = over(lab, gw, ticket)
        assert said["complete"], said
    for ticket in tickets:
        gw.deny(ticket, "no")
    nothing_is_left(gw)


@test()
def a_yes_waits_for_a_diff_that_is_required(lab):
    """By whatever way it comes: nothing is granted to the lane implicitly, and the page says so in words."""
    git, gw, env, work = setup(lab, may_read=False)
    (work / "a.txt").write_text("a\n")
    commit(lab, work, env)
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    said, answer = over(lab, gw, ticket)
    assert said["state"] == "failed" and "the policy has to allow the fetch" in said["why"], said
    refused = gw.cli("approvals", "approve", ticket)
    assert refused.rc != 0 and b"could not be found out" in refused.both, refused.both
    shown = gw.cli("approvals", "show", ticket, rc=0).out
    assert b"Diff        required: failed; the gateway did not let the repository be read" in shown, shown
    page = Page(gw)
    text = page.ask("GET", f"/tickets/{ticket}")[1].decode()
    assert "approve" not in forms(text) and "the policy has to allow the fetch" in words(text), words(text)
    assert gw.show(ticket)["state"] == "pending" and git.landed() == []
    gw.deny(ticket, "no")
    client.wait()
    nothing_is_left(gw)


@test()
def an_ordinary_users_gateway_makes_it_too(lab):
    _, gw, env, work = setup(lab, ordinary=True)
    first_of_kinds(lab, work, env)
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    said, diff = over(lab, gw, ticket)
    assert said["complete"] and set(by_path(diff["refs"][0])) == {"big.txt", "moves.txt", "tool"}, (said, diff)
    refused = gw.cli("approvals", "approve", ticket, "--uses", "3", "--for", "10m")
    assert refused.rc != 0, "what a grant would cover nobody has seen"
    gw.approve(ticket)
    assert client.wait() == 0, client.log.read_text()
    nothing_is_left(gw)


@test()
def a_yes_does_not_wait_for_one_that_is_optional(lab):
    git, gw, env, work = setup(lab, wish="optional", may_read=False)
    (work / "a.txt").write_text("a\n")
    new = commit(lab, work, env)
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    said, _ = over(lab, gw, ticket)
    assert said["state"] == "failed", said
    gw.approve(ticket)
    assert client.wait() == 0, client.log.read_text()
    assert git.landed()[-1][1] == new


@test()
def without_a_lane_nothing_is_made_and_what_is_required_is_refused(lab):
    git, gw, env, work = setup(lab, config="")
    (work / "a.txt").write_text("a\n")
    commit(lab, work, env)
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    refused = gw.cli("approvals", "approve", ticket)
    assert refused.rc != 0 and b"names no lane" in refused.both, refused.both
    assert gw.cli_json("sandbox", "started")["started"] == []
    gw.deny(ticket, "no")
    client.wait()


@test()
def a_hostile_repository_is_bounded(lab):
    """A huge file, very many files, attributes that would hide, filter or run something."""
    git, gw, env, work = setup(lab, wish="optional")
    (work / ".gitattributes").write_text("* -diff filter=evil diff=evil merge=evil\n*.txt binary\n")
    (work / "a.txt").write_text("first\n")
    (work / "huge.txt").write_text("".join(f"{i} huge\n" for i in range(400000)))
    (work / "odd\udcff.txt").write_bytes(b"caf\xe9\n")
    many = work / "many"
    many.mkdir()
    for i in range(100):
        (many / str(i)).mkdir()
        for k in range(1000):
            (many / str(i) / str(k)).write_bytes(b"")
    commit(lab, work, env, "\x1b[2J\u202e<script>alert(1)</script>")
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    said, diff = over(lab, gw, ticket)
    assert said["state"] == "made" and said["complete"] is False and "more files change" in said["why"], said
    [ref] = diff["refs"]
    assert ref["files_total"] >= 100004 and len(ref["files"]) == 300, (ref["files_total"], len(ref["files"]))
    f = by_path(ref)
    assert f["a.txt"]["kind"] == "text" and "+first" in f["a.txt"]["patch"], "its attributes hide nothing"
    assert (f["huge.txt"]["kind"], f["huge.txt"]["added"]) == ("large", 400000), f["huge.txt"]
    text = Page(gw).ask("GET", f"/tickets/{ticket}")[1].decode()
    assert "<script>alert" not in text and "\x1b" not in text and "\u202e" not in text
    assert "Not all of it is here" in words(text)
    gw.deny(ticket, "no")
    client.wait()
    nothing_is_left(gw)


@test()
def it_is_made_again_when_the_desk_or_the_warden_ends(lab):
    git, gw, env, work = setup(lab)
    (work / "a.txt").write_text("a\n")
    commit(lab, work, env)
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    over(lab, gw, ticket)
    gw.kill("desk")
    said, _ = lab.wait_for("another one", lambda: attempt(lambda: over(lab, gw, ticket)))
    assert said["complete"], said
    gw.kill("warden")
    (work / "b.txt").write_text("b\n")
    commit(lab, work, env)
    gw.deny(ticket, "no")
    client.wait()
    client, ticket = push(lab, gw, work, env, "origin", "HEAD:main")
    lab.wait_for("that it is begun", lambda: gw.show(ticket)["diff"]["state"] not in ("none", "waits"))
    gw.kill("warden")  # while it is made, unless this machine is very fast
    said, diff = over(lab, gw, ticket)
    assert said["complete"] and set(by_path(diff["refs"][0])) == {"a.txt", "b.txt"}, (said, diff)
    gw.deny(ticket, "no")
    client.wait()
    nothing_is_left(gw)


def attempt(function):
    try:
        return function()
    except (AssertionError, OSError, json.JSONDecodeError):
        return None


if __name__ == "__main__":
    main()
