#!/usr/bin/env python3
"""Do the attack tests see it when a check is gone? One after the other is switched off in a copy of the tree, that copy
is built and installed, and the ids of that check must turn red, and no others of the tests that are run for it.

usage: mutations.py [NAME...]            all of them: `make mutations`; ./check runs two
       mutations.py --texts              only whether each text still stands in its file, once: ./check does

It takes a scratch directory below TMPDIR (MUTATIONS_DIR: one that is kept, and used again).
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
LINE = re.compile(r"(not ok|ok) ([A-Z]+\d+) (\S+)$")
TEST = re.compile(r"(not ok|ok) ([a-z]\w+)$")  # of a check that has no id, the test is named


class Mutation:
    """name, what is checked; edits: (file, what stands there once, what stands there then); tests: (file, parts of names);
    red: the ids, or where there is none the tests, that must turn red; may: ids that may, as they rest on the same check."""

    def __init__(self, name, check, edits, tests, red, may=""):
        self.name, self.check, self.edits, self.tests, self.red, self.may = name, check, edits, tests, set(red.split()), set(may.split())


MUTATIONS = [
    Mutation("length-and-coding", "Content-Length beside Transfer-Encoding is refused",
             [("common/http/head.c", "        if (length)\n            return http_refuse(", "        if (length && false)\n            return http_refuse(")],
             [("test_attacks.py", "framing_over_connect", "framing_over_absolute")], "A1", "A2"),
    Mutation("host-is-connect", "the Host is the one that CONNECT, SNI or SOCKS named",
             [("proxy/front/request.c", "(wrong || r->port != c->port)) {", "(wrong || r->port != c->port) && false) {")],
             [("test_attacks_where.py", "are_one_over_unix", "are_one_over_later"), ("test_attacks.py", "hosts_over_socks")], "C1 C2 C3 C7 C30 C35", "A23 A24 C18"),
    Mutation("tunnel-host", "plain HTTP in a tunnel is held to the host that CONNECT named",
             [("proxy/front/connect.c", "    c->named = true;\n", "    c->named = false;\n")],
             [("test_attacks_where.py", "goes_over_tunnel")], "C2 C3 C30", "A24 C7 C35"),
    Mutation("sni-is-connect", "the SNI is the host of the CONNECT",
             [("common/net/tls.c", "    if (right)\n", "    if (right || true)\n")],
             [("test_attacks_hello.py", "well_over_connect", "well_over_unix")], "C4"),
    Mutation("dot-segments", "a path with dot segments is refused",
             [("common/http/uri.c", "|| has_dot_segment(done))", "|| (false && has_dot_segment(done)))")],
             [("test_attacks.py", "request_lines_over_connect", "request_lines_over_captured")], "B4"),
    Mutation("private-addresses", "private addresses are not dialled",
             [("common/net/addr.c", "    if (class == ADDR_PUBLIC || class == ADDR_BAD)\n        return class == ADDR_PUBLIC;", "    if (true)\n        return true;")],
             [("test_dns.py", "over_absolute")], "C12 C14 C31 C39"),
    Mutation("late-connect", "CONNECT is taken as the first request of a connection alone",
             [("proxy/front/connect.c", "    if (c->used)\n", "    if (c->used && false)\n")],
             [("test_attacks_where.py", "a_connection_is_a_tunnel_or_has_requests_over_connect", "no_connect_comes_where_a_request_is_due_over_absolute")], "C37"),
    Mutation("hop-by-hop", "what the Connection field names stays here",
             [("proxy/front/request.c", "|| http_is_hop_by_hop(h, name) ||", "|| (false && http_is_hop_by_hop(h, name)) ||")],
             [("test_attacks_pass.py", "stays_there_over_connect", "stays_there_over_unix")], "A37"),
    Mutation("unasked-101", "an upstream that switches protocols unasked is refused",
             [("proxy/carrier/answer.c", "h->status == 101 && x->websocket == NULL", "false"),
              ("proxy/carrier/answer.c", "h->status == 101 && carry_websocket_verify(x, h) != WALK_NEXT", "false"),
              ("proxy/carrier/answer.c", "return h->status == 101 ? carry_websocket_switch(x) : WALK_NEXT;", "return WALK_NEXT;")],
             [("test_attacks_back.py", "not_clean_is_refused_or_cut_over_connect", "not_clean_is_refused_or_cut_over_socks")], "A45", "D19"),
    Mutation("pipelining", "the next request waits until the one before has its answer",
             [("proxy/front/request.c", "    if (!client_asks(c))\n        return read_head", "    if (!client_asks(c) || c->x.mode == BODY_MODE_DONE)\n        return read_head")],
             [("test_attacks_pass.py", "decided_by_itself_over_connect", "decided_by_itself_over_later")], "A31", "A32 A33"),
    Mutation("places", "one sandbox has a share of the places the carrier knows",
             [("proxy/judge/accounts/upstreams.c", "if (a->upstreams >= UPSTREAMS_EACH) {", "if (a->upstreams >= UPSTREAMS_EACH && false) {"),
              ("proxy/judge/accounts/upstreams.c", "    for (; t->n == WIRE_UPSTREAMS_MAX && u != NULL; u = u->newer)", "    for (; false; u = u->newer)")],
             [("test_attacks_share.py", "names_without_end")], "F32 F36"),
    Mutation("lobby-share", "a full lobby takes from the source that has most of it",
             [("proxy/lobby/lobby.c", "(here > best || (here == best && is_silent(g) && !is_silent(goes)))", "goes == NULL")],
             [("test_attacks_share.py", "fill_the_lobby_over_connect")], "F35"),
    Mutation("sources-by-name", "a credential's file is that of the policy in force",
             [("proxy/keeper/sources/sources.c", "    struct files old = s->now;\n", "    if (s->next.n == 0)\n        return;\n    struct files old = s->now;\n"),
              ("proxy/keeper/sources/sources.c", "span_eq(span_of(l->v[i]->path, l->v[i]->npath), path)", "l->v[i]->npath > 0")],
             [("test_attacks_identity.py", "a_credentials_name_is_not_its_source")], "D44 E45"),
    Mutation("terms-without-approvers", "a ticket is of the approvers it was held for",
             [("policy/decide/identity.c", "    msg_put_span(out, d->approve_by);\n    put_approvers(p, d->approve_by, out);\n", "    (void)put_approvers;\n")],
             [("test_attacks_identity.py", "a_ticket_is_of_the_terms_it_was_held_on")], "E41 E45"),
    Mutation("upstream-by-name", "where an upstream is, and whom to trust there, the policy in force says",
             [("proxy/judge/accounts/upstreams.c", "u->policy == i->serial && u->port", "i != NULL && u->port"),
              ("proxy/judge/accounts/upstreams.c", "    while (t->oldest != NULL)\n", "    while (t->oldest != NULL && t->n == 0)\n")],
             [("test_attacks_identity.py", "what_is_open_when_a_reload_comes")], "E45"),
    Mutation("approver-of-the-form", "who may approve is asked of the policy in force when the form comes",
             [("web-approval/page/page_decide.c", "    if (!api_may_approve(x, t, instead_of)) {", "    if (false && !api_may_approve(x, t, instead_of)) {")],
             [("test_attacks_identity.py", "what_is_open_when_a_reload_comes")], "E45"),
    Mutation("audit-columns", "audit verify compares the columns with the hashed text",
             [("cli/verbs/audit.c", "        if (!span_eq(member_text(r, texts[i]), json_text(record, span_str(texts[i]))))\n", "        if (false)\n")],
             [("test_audit_signed.py", "a_column_that_is_not")], "E43"),
    Mutation("spellings", "what restricts fits the decoded path too",
             [("policy/classify/readings.c", "    add(out, n, kept, READ_DECODED);\n", "    (void)kept;\n")],
             [("test_attacks_spelling.py", "over_connect")], "B60 B61"),
    Mutation("spellings-folded", "what restricts fits the folded path too",
             [("policy/classify/readings.c", "        add(out, n, folded, READ_FOLDED);\n", "        return 0;\n")],
             [("test_attacks_spelling.py", "over_connect")], "B10 B11"),
    Mutation("plan", "what is held back of an answer does not depend on a secret's bytes",
             [("proxy/carrier/scrub/scrub.c", "plan_release(t->set->reach, span_of(p, n))",
               "plan_release(memchr(p, secret_bytes(t->set->bytes).p[0], n) ? t->set->reach : 1, span_of(p, n))")],
             [("test_attacks_scrub.py", "over_connect")], "D41"),
    Mutation("lease-place", "a lease stands where its credential will, and nowhere else",
             [("proxy/judge/leases/check.c", "ntags && lease_search_head(x, &slot, text, &hit)) {", "ntags && false && lease_search_head(x, &slot, text, &hit)) {")],
             [("test_attacks_lease.py", "stands_in_one_place_over_connect", "stands_in_one_place_over_absolute")], "D12"),
    Mutation("lease-whose", "a lease is its own sandbox's alone",
             [("proxy/judge/leases/check.c", "    if (!span_eq(l->sandbox, x->sandbox->name) || !span_eq(l->session, x->sandbox->session))\n", "    if (false)\n")],
             [("test_attacks_lease.py", "of_another_sandbox_it_has_leaked_over_connect", "of_another_sandbox_it_has_leaked_over_socks")], "D32"),
    Mutation("lease-signs", "what a lease's pair signed is compared",
             [("proxy/keeper/lease/verify.c", "    return CRYPTO_memcmp(made, said, SIGN_TEXT) == 0;\n", "    return true;\n")],
             [("test_attacks_pair.py", "signed_something_else_over_connect", "signed_something_else_over_captured")], "D48"),
    Mutation("lease-lives", "a lease that has ended lets nothing through",
             [("proxy/judge/leases/check.c", "    if (!lease_lives(x->judge->leases, l, wall(x)) || !is_meant(x->now.image, l, &at))\n", "    if (!is_meant(x->now.image, l, &at))\n")],
             [("test_attacks_lease.py", "its_end_it_is_nothing_over_connect", "its_end_it_is_nothing_over_unix")], "D48"),
    Mutation("body-kept", "what is read from a body keeps it",
             [("proxy/judge/steps/step_release.c", "    exchange_delivery(x, DELIVERY_FORWARDED);\n",
               "    exchange_delivery(x, DELIVERY_FORWARDED);\n    body_unref(&x->now.body);\n    body_unref(&x->body);\n")],
             [("test_clients.py", "a_5_mb_push")], "a_5_mb_push_needs_one_approval"),
    Mutation("scrub", "bodies are searched for the credential",
             [("proxy/carrier/answer.c", "    if (!looked_at(x) || x->swap == SWAP_DUE) {", "    if (true || x->swap == SWAP_DUE) {")],
             [("test_attacks_secret.py", "an_echo_shows_no_credential_over_connect", "an_echo_shows_no_credential_over_absolute")], "D1 D3 D6"),
    Mutation("exceptions-as-written", "what an allow leaves out it leaves out in any spelling",
             [("policy/decide/rule_votes.c", "r->verdict == VERDICT_ALLOW ? ANY_SPELLING : AS_WRITTEN", "AS_WRITTEN")],
             [("test_attacks_decided.py", "needs_over_connect", "needs_over_absolute")], "B50"),
    Mutation("limits", "what a rule allows so often it allows no more often",
             [("policy/decide/rule_votes.c", "        if (r->limits.n)\n            limited_add(&t->limited_allow, i);", "        if (r->limits.n && false)\n            limited_add(&t->limited_allow, i);")],
             [("test_attacks_decided.py", "of_its_own_over_connect", "of_its_own_over_unix")], "B55"),
    Mutation("when", "out of its hours a rule is not there",
             [("policy/decide/rule_votes.c", "(r->windows.n && !when_in_force(k->p, r, k->now_ms))", "(false && !when_in_force(k->p, r, k->now_ms))")],
             [("test_attacks_decided.py", "of_its_own_over_connect", "of_its_own_over_captured")], "B55"),
    Mutation("residency", "a sandbox of a region reaches hosts of that region alone",
             [("policy/decide/decide.c", "= is_open(out) ? region_keeps_out(", "= is_open(out) && false ? region_keeps_out(")],
             [("test_attacks_decided.py", "of_its_own_over_connect", "of_its_own_over_socks")], "B55"),
    Mutation("keys-of-other-case", "a body whose keys differ in case alone is not decided by one of them",
             [("policy/body/json.c", "        *doubt = AMBIGUITY_KEY_CASE;", "        *doubt = AMBIGUITY_NONE;")],
             [("test_attacks_decided.py", "is_whole_over_connect", "is_whole_over_socks")], "B49"),
    Mutation("no-credential-no-request", "what needs a credential does not leave without it",
             [("proxy/carrier/await_credential.c", "    if (x->timer == NULL) {\n        x->timer = timer_new(c->loop, release_late, x);",
               "    if (x->f.credential.n)\n        return WALK_NEXT;\n    if (x->timer == NULL) {\n        x->timer = timer_new(c->loop, release_late, x);")],
             [("test_attacks_decided.py", "needs_over_connect", "needs_over_later")], "B50"),
    Mutation("credential-named", "a refusal does not name credentials",
             [("proxy/judge/replies/refuse.c", "x->now.credential.n && x->judge->config.disclose_rules)", "x->now.credential.n)")],
             [("test_attacks_decided.py", "maps_no_policy_over_connect", "maps_no_policy_over_reload")], "B54"),
    Mutation("ranges", "a part beside secrets is searched beyond its edges",
             [("proxy/carrier/part.c", "range_wider(&p->asked, scrub_reach(x->scrub.set))", "range_wider(&p->asked, 0)")],
             [("test_attacks_upstream.py", "whole_shows_over_connect", "whole_shows_over_unix")], "D46"),
    Mutation("once", "what was held or counted is sent at most once",
             [("proxy/judge/exchange/exchange.c", "return x->now.d.effect == EFFECT_READ && x->claim < CLAIM_ASKED && x->intent < INTENT_ASKED;",
               "return x->now.d.effect == EFFECT_READ;")],
             [("test_attacks_upstream.py", "at_most_once_over_connect", "at_most_once_over_unix")], "E42"),
]


class Copy:
    """The tree, built and installed elsewhere."""

    def __init__(self, place):
        self.place, self.src, self.inst = place, place / "src", place / "inst"
        self.build = self.src / "build"
        if not self.src.exists():
            shutil.copytree(TOP, self.src, ignore=lambda _, names: [n for n in names if n.startswith("build-") and n != "build-aux" or n in ("build", ".git", ".quickstart", "__pycache__")])
        if not (self.src / "configure").exists():
            self.run("autoreconf", "autoreconf", "-fi", cwd=self.src)
        self.build.mkdir(exist_ok=True)
        if not (self.build / "Makefile").exists():
            self.run("configure", "../configure", "-q", f"--prefix={self.inst}", cwd=self.build)
        self.install()

    def run(self, what, *command, cwd):
        done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, f"{what}:\n{done.stdout[-3000:]}"

    def install(self):
        self.run("make", "make", f"-j{os.cpu_count()}", "install", cwd=self.build)

    def change(self, edits):
        """Makes them; gives what undoes it."""
        before = {self.src / name: (self.src / name).read_text() for name, _, _ in edits}
        for name, old, new in edits:
            path = self.src / name
            text = path.read_text()
            assert text.count(old) == 1, f"{name}: {old!r} stands there {text.count(old)} times: the list of mutations is out of date"
            path.write_text(text.replace(old, new))
        return lambda: [path.write_text(text) for path, text in before.items()]

    def ids(self, tests):
        """{(id, way): green?} of these tests against what is installed."""
        found, env = {}, {**os.environ, "PATH": f"{self.inst}/bin:{os.environ['PATH']}", "COUNTERSIGN_PREFIX": str(self.inst)}
        for name, *parts in tests:
            done = subprocess.run([sys.executable, str(next((TOP / "tests/e2e").rglob(name))), *parts], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3600)
            for line in done.stdout.splitlines():
                match = LINE.match(line)
                named = TEST.match(line)
                if named:
                    found[named[2], "-"] = named[1] == "ok"
                if match:
                    found[match[2], match[3]] = found.get((match[2], match[3]), True) and match[1] == "ok"
                kept = re.match(r"# kept: (\S+)$", line)
                if kept:
                    shutil.rmtree(kept[1], ignore_errors=True)
        return found


def judge(m, before, after):
    """What is wrong, in words."""
    before = {(i, way): green for (i, way), green in before.items() if way != "-" or i in m.red}
    red = {pair for pair, green in before.items() if green and not after.get(pair, False)}
    ids, ways = {i for i, _ in red}, {w for _, w in before}
    wrong = [f"{i} stays green over {w}" for i, w in sorted(before) if i in m.red and (i, w) not in red]
    wrong += [f"{i} is not among its tests" for i in sorted(m.red - {i for i, _ in before})]
    wrong += [f"{i} turned red, too" for i in sorted(ids - m.red - m.may)]
    wrong += [f"{i} {w} was red before" for (i, w), green in sorted(before.items()) if not green]
    return ids, ways, wrong


def texts():
    """Whether each mutation's text stands in its file, once."""
    moved = [(m.name, name, old) for m in MUTATIONS for name, old, _ in m.edits if (TOP / name).read_text().count(old) != 1]
    for name, path, old in moved:
        print(f"not ok {name}: {path} does not have {old!r} once")
    return 1 if moved else 0


def main():
    if sys.argv[1:] == ["--texts"]:
        sys.exit(texts())
    chosen = [m for m in MUTATIONS if not sys.argv[1:] or m.name in sys.argv[1:]]
    kept = os.environ.get("MUTATIONS_DIR")
    place = pathlib.Path(kept or tempfile.mkdtemp(prefix="cs-mutations-"))
    place.mkdir(parents=True, exist_ok=True)
    bad = not chosen
    try:
        copy = Copy(place)
        before = {m.name: copy.ids(m.tests) for m in chosen}
        for m in chosen:
            begun = time.monotonic()
            undo = copy.change(m.edits)
            try:
                copy.install()
                ids, ways, wrong = judge(m, before[m.name], copy.ids(m.tests))
            finally:
                undo()
            bad = bad or bool(wrong)
            print(f"{'not ok' if wrong else 'ok'} {m.name}: {m.check}; red: {' '.join(sorted(ids))} over {' '.join(sorted(ways))} ({time.monotonic() - begun:.0f} s)", flush=True)
            for line in wrong:
                print(f"# {line}", flush=True)
        if kept:
            copy.install()
    finally:
        if not kept:
            shutil.rmtree(place)
    sys.exit(bad)


if __name__ == "__main__":
    main()
