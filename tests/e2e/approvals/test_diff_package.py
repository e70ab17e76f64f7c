#!/usr/bin/env python3
"""The diff of a held `npm publish`: real npm, a real registry, and the last version that this one has."""
from room import forms, words
from gateway import Page
from harness import main, test
from pushes import by_path, over
from boxes import nothing_is_left  # after pushes, which says where it is
from publishes import NAME, first, publish, put, second, setup


def seen(page, ticket):
    text = page.ask("GET", f"/tickets/{ticket}")[1].decode()
    return text, words(text)


@test()
def a_package_is_shown_beside_the_last_one(lab):
    registry, gw, env, work = setup(lab)
    person = Page(gw)
    first(work)
    client, ticket = publish(lab, gw, work, env)
    said, diff = over(lab, gw, ticket)
    new = diff["package"]
    assert said["complete"] and new["state"] == "first" and "old" not in new, (said, diff)
    assert set(by_path(new)) == {"package.json", "index.js", "lib/old.js", "gone.txt", "kept.png"}, new
    assert "There is no earlier version to compare it with" in seen(person, ticket)[1]
    gw.approve(ticket)
    assert client.wait() == 0, client.seen

    second(work)
    client, ticket = publish(lab, gw, work, env)
    said, diff = over(lab, gw, ticket)
    package = diff["package"]
    assert said == {"wanted": "required", "state": "made", "complete": True}, (said, diff)
    assert [package[key] for key in ("state", "base", "old", "new", "tag", "hash", "sent", "already")] == \
        ["compared", "tag", "1.0.0", "1.1.0", "latest", "sha512", "good", False], package
    assert {(f["in"], f["name"], f["how"], f["new"]) for f in package["facts"]} == {
        ("scripts", "postinstall", "A", "node steal.js \u202e"), ("dependencies", "left-pad-demo", "A", "^1.0.0"),
        ("bin", "ls", "A", "index.js")}, package["facts"]
    files = by_path(package)
    assert package["files"][0]["path"] == "package.json"
    assert {p: f["how"] for p, f in files.items()} == {"package.json": "M", "index.js": "M", "lib/new.js": "R", "steal.js": "A",
                                                       "logo.png": "A", "gone.txt": "D"}
    assert "-module.exports = 1\n+module.exports = 2" in files["index.js"]["patch"], files["index.js"]
    assert files["lib/new.js"]["from"] == "lib/old.js" and files["logo.png"]["kind"] == "binary" and files["steal.js"]["dense"]
    text, page = seen(person, ticket)
    for sentence in ("What the package changes a yes waits for it", "compared with 1.0.0, on which the tag latest stands now",
                     "1 install script, 1 dependency change, 1 command it installs, 1 binary file, 1 minified file", "runs when it is installed",
                     "lib/old.js → lib/new.js", "minified, or very long lines"):
        assert sentence in page, (sentence, page)
    assert "\u202e" not in text and "<b>\\u202e" not in text and "approve" in forms(text)
    gw.deny(ticket, "no")
    client.wait()

    # what hides that it runs: a text that looks like none, and a picture that is as it was and is named now
    put(work, {"version": "1.1.2", "scripts": {"postinstall": "sh kept.png"}}, {"index.js": "/*" + "\x01\x02\x03" * 40 + "*/ steal()\n"})
    client, ticket = publish(lab, gw, work, env)
    said, diff = over(lab, gw, ticket)
    files = by_path(diff["package"])
    assert said["complete"] is False and "a binary file that can run is not shown" in said["why"], said
    assert [(files[f]["kind"], files[f].get("runs")) for f in ("index.js", "kept.png", "logo.png")] == \
        [("binary", True), ("same", True), ("binary", None)], files
    assert "not text, and can run now" in seen(person, ticket)[1]
    gw.deny(ticket, "no")
    client.wait()

    # a registry whose file is not the one of its list
    [kept] = registry.dir.glob(f"storage/{NAME}/*-1.0.0.tgz")
    packed = bytearray(kept.read_bytes())
    packed[9] ^= 1  # on which system it was made: all else is as it was, and it unpacks as before
    kept.write_bytes(packed)
    put(work, {"version": "1.1.1"}, {})
    client, ticket = publish(lab, gw, work, env)
    said, _ = over(lab, gw, ticket)
    assert said["state"] == "failed" and "does not have the hash that the registry's own list says" in said["why"], said
    refused = gw.cli("approvals", "approve", ticket)
    assert refused.rc != 0 and b"could not be found out" in refused.both, refused.both
    text, page = seen(person, ticket)
    assert "approve" not in forms(text) and "nothing was compared with it" in page, page
    gw.deny(ticket, "no")
    client.wait()
    nothing_is_left(gw)


if __name__ == "__main__":
    main()
