#include "common/control/audit_words.h"

#include <stdio.h>

#include "common/text/person.h"

enum { SHORT_ID = 10, TARGET_MAX = 100, WORD_MAX = 200 };

static struct span get(const struct json *r, struct span key)
{
    return json_text(r, key);
}

static bool is(const struct json *r, struct span key, struct span value)
{
    return span_eq(json_text(r, key), value);
}

static void add(struct dynbuf *out, struct span s)
{
    (void)dynbuf_add(out, s.n > WORD_MAX ? span_first(s, WORD_MAX) : s);
    if (s.n > WORD_MAX)
        (void)dynbuf_add(out, SPAN("..."));
}

static void say(struct dynbuf *out, struct span words, struct span value)
{
    add(out, words);
    add(out, value);
}

static void say_number(struct dynbuf *out, const struct json *r, struct span key)
{
    const struct json *v = json_get(r, key);
    if (v != NULL && v->type == JSON_NUMBER)
        add(out, v->text);
}

static struct span uid_digits(const struct json *what)
{
    const struct json *v = json_get(what, SPAN("uid"));
    return v && v->type == JSON_NUMBER ? span_first(v->text, 10) : SPAN_NONE;
}

static void say_by(struct dynbuf *out, struct span by)
{
    char name[PERSON_NAME_MAX];
    say(out, SPAN(" by "), person_name(by, name));
}

bool audit_is_news(const struct json *r)
{
    return !is(r, SPAN("kind"), SPAN("sandbox")) && !is(r, SPAN("kind"), SPAN("intent")) &&
           !is(r, SPAN("kind"), SPAN("sent")) && !is(r, SPAN("kind"), SPAN("run"));
}

/* "push", or its effect: "read", "write", "delete". */
static void noun(const struct json *r, struct dynbuf *out)
{
    struct span op = get(r, SPAN("op")), effect = get(r, SPAN("effect"));
    if (span_ends(op, SPAN(".push")))
        add(out, SPAN("push"));
    else
        add(out, effect.n && !span_eq(effect, SPAN("unknown")) ? effect : SPAN("request"));
}

static void say_rule(const struct json *r, struct dynbuf *out)
{
    const struct json *rule = json_get(r, SPAN("rule"));
    say(out, SPAN(" "), get(rule, SPAN("id")));
    say(out, SPAN(" ("), get(rule, SPAN("file")));
    add(out, SPAN(":"));
    say_number(out, rule, SPAN("line"));
    add(out, SPAN(")"));
}

/* Codes that have better words. */
static const struct {
    struct span code, words;
} known[] = {
    {SPAN("no-rule"), SPAN("no rule allows it")},
    {SPAN("learning"), SPAN("the policy is learning")},
    {SPAN("residency"), SPAN("the host is not in a region that the sandbox may reach")},
    {SPAN("host-not-named"), SPAN("no rule names this host with this port and scheme")},
    {SPAN("unclassified"), SPAN("it could not be understood")},
    {SPAN("ticket-denied"), SPAN("its ticket was denied")},
    {SPAN("ticket-expired"), SPAN("its ticket expired")},
    {SPAN("ticket-cancelled"), SPAN("its ticket was cancelled")},
    {SPAN("policy-changed"), SPAN("the policy would not hold it like this any more")},
    {SPAN("executing"), SPAN("it is under way for another connection")},
    {SPAN("executed"), SPAN("it was carried out before")},
    {SPAN("too-many-pending"), SPAN("too many of this sandbox's requests wait")},
    {SPAN("unknown-sandbox"), SPAN("its sandbox is not known any more")},
    {SPAN("frozen"), SPAN("writes were frozen")},
    {SPAN("over-limit"), SPAN("it is past its limit")},
    {SPAN("lease-required"), SPAN("it brings no lease of its credential")},
    {SPAN("lease-unknown"), SPAN("it brings a lease that is not known")},
    {SPAN("lease-ended"), SPAN("its lease has ended")},
    {SPAN("lease-not-for-this"), SPAN("its lease is for other requests")},
    {SPAN("lease-unproven"), SPAN("it is not signed with its lease's key")},
    {SPAN("lease-misplaced"), SPAN("a lease stands where none may")},
    {SPAN("lease-leaked"), SPAN("its lease is another sandbox's, or for another place")},
    {SPAN("lease-used-up"), SPAN("its lease is used up for now")},
    {SPAN("network-denied"), SPAN("whoever created its sandbox does not let it reach this host")},
    {SPAN("egress-limit"), SPAN("the egress of its sandbox, or of its tenant, is used up")},
    {SPAN("store-unavailable"), SPAN("the record could not be written")},
    {SPAN("credential-unavailable"), SPAN("its credential is not there: see `countersign doctor`")},
    {SPAN("credential-not-for-host"), SPAN("its credential may not go there")},
    {SPAN("credential-not-for-here"), SPAN("its credential's only: list does not name this place")},
    {SPAN("credential-cleartext"), SPAN("its credential would travel in clear text")},
    {SPAN("ca-not-trusted"), SPAN("the client does not trust the gateway's CA")},
    {SPAN("tls-closed"), SPAN("the client left during the TLS handshake")},
    {SPAN("tls-failed"), SPAN("the TLS handshake failed")},
    {SPAN("tls-version"), SPAN("the client's TLS is older than 1.2")},
    {SPAN("tls-alpn"), SPAN("the client speaks no HTTP/1.1, but HTTP/2 alone, as gRPC does")},
    {SPAN("http2-preface"), SPAN("the client speaks HTTP/2 without being asked; HTTP/1.1 alone passes")},
    {SPAN("ssh"), SPAN("the client speaks SSH; only TLS and HTTP pass")},
    {SPAN("postgresql"), SPAN("the client speaks PostgreSQL; only TLS and HTTP pass")},
    {SPAN("sni-mismatch"), SPAN("TLS asked for another host than the connection")},
    {SPAN("no-server-name"), SPAN("TLS named no host")},
    {SPAN("plaintext-in-tunnel"), SPAN("what came through CONNECT is not TLS")},
    {SPAN("misdirected"), SPAN("its Host is not where the connection goes to")},
    {SPAN("client-silent"), SPAN("the client waits for the server to speak; only TLS and HTTP pass")},
    {SPAN("not-captured"), SPAN("it came straight to a listener of captured connections")},
    {SPAN("bad-hello"), SPAN("what began like TLS is no ClientHello")},
    {SPAN("bad-server-name"), SPAN("TLS named a host that no gateway takes")},
    {SPAN("tls-too-slow"), SPAN("the TLS handshake did not end in time")},
    {SPAN("bad-socks"), SPAN("what came is no SOCKS5")},
    {SPAN("socks-command"), SPAN("SOCKS asked for something else than to connect")},
    {SPAN("socks-address"), SPAN("SOCKS named no host that can be taken")},
    {SPAN("bad-proxy-header"), SPAN("its PROXY header cannot be taken")},
    {SPAN("connect-failed"), SPAN("the upstream could not be reached")},
    {SPAN("upstream-timeout"), SPAN("the upstream did not answer in time")},
    {SPAN("upstream-closed"), SPAN("the upstream ended the connection")},
    {SPAN("more-refused"), SPAN("too many to list, so many more")},
};

/* Any other is its own word. */
static struct span code_words(struct span code)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (span_eq(code, known[i].code))
            return known[i].words;
    return code;
}

static bool by_rule(const struct json *r)
{
    return is(r, SPAN("verdict"), SPAN("deny")) &&
           (is(r, SPAN("code"), SPAN("rule")) || is(r, SPAN("code"), SPAN("floor")));
}

void audit_why(const struct json *r, struct dynbuf *out)
{
    struct span code = get(r, SPAN("code"));
    if (by_rule(r)) {
        say(out, SPAN("by "), code);
        say_rule(r, out);
    } else {
        add(out, code_words(code));
    }
}

/* What was not sent: by policy, by a ticket, or because something failed. */
static void refused(const struct json *r, struct dynbuf *out)
{
    struct span code = get(r, SPAN("code"));
    bool deny = is(r, SPAN("verdict"), SPAN("deny"));
    if (span_eq(code, SPAN("held"))) {
        noun(r, out);
        add(out, SPAN(" waits; its client may repeat it"));
    } else if (span_eq(code, SPAN("answer-kept"))) {
        add(out, SPAN("the kept answer was given to the retry"));
    } else {
        add(out, by_rule(r) ? SPAN("denied ") : deny ? SPAN("denied: ") : SPAN("refused: "));
        audit_why(r, out);
        if (get(r, SPAN("cause")).n)
            say(out, SPAN(": "), get(r, SPAN("cause")));
    }
}

static void result(const struct json *r, struct dynbuf *out)
{
    const struct json *taken = json_get(r, SPAN("delivered"));
    struct span code = get(r, SPAN("code")), why = get(r, SPAN("why"));
    bool read = is(r, SPAN("effect"), SPAN("read")), answered = is(r, SPAN("outcome"), SPAN("answered"));
    noun(r, out);
    if (answered) {
        add(out, read ? SPAN(" allowed, answered ") : SPAN(" sent, answered "));
        say_number(out, r, SPAN("status"));
    } else if (is(r, SPAN("outcome"), SPAN("not-sent"))) {
        add(out, SPAN(" not sent"));
    } else {
        add(out, read ? SPAN(" got no whole answer") : SPAN(" sent, outcome unknown"));
    }
    if (why.n)
        say(out, SPAN(": "), why);
    else if (code.n && !span_eq(code, SPAN("rule")))
        say(out, SPAN(": "), code_words(code));
    else if (answered && !read && taken != NULL && taken->type == JSON_BOOL && !taken->truth)
        add(out, SPAN("; nobody was there for the answer"));
}

/* A deputy says it in somebody's place. */
static void say_instead(const struct json *r, struct dynbuf *out)
{
    if (get(r, SPAN("for")).n)
        say(out, SPAN(" for "), get(r, SPAN("for")));
}

static void decided(const struct json *r, struct dynbuf *out)
{
    struct span channel = get(r, SPAN("channel")), reason = get(r, SPAN("reason"));
    say(out, SPAN("ticket "), span_first(get(r, SPAN("ticket")), SHORT_ID));
    if (is(r, SPAN("kind"), SPAN("ticket-expired"))) {
        add(out, SPAN(" expired"));
    } else {
        say(out, SPAN(" "), get(r, SPAN("state")));
        say_by(out, get(r, SPAN("by")));
        say_instead(r, out);
    }
    if (channel.n) {
        say(out, SPAN(" ("), channel);
        add(out, SPAN(")"));
    }
    if (reason.n)
        say(out, SPAN(": "), reason);
}

/* How a policy came, or did not come, to be in force. */
static void say_how(const struct json *what, struct dynbuf *out)
{
    say(out, SPAN(" ("), get(what, SPAN("how")));
    if (get(what, SPAN("by")).n)
        say_by(out, get(what, SPAN("by")));
    if (get(what, SPAN("from")).n)
        say(out, SPAN(", before it "), span_first(get(what, SPAN("from")), SHORT_ID));
    if (get(what, SPAN("pinned_by")).n)
        add(out, SPAN(", pinned"));
    add(out, SPAN(")"));
}

static void note(const struct json *r, struct dynbuf *out)
{
    const struct json *what = json_get(r, SPAN("what"));
    struct span about = get(r, SPAN("about"));
    char uid[16];
    if (span_eq(about, SPAN("policy")) && get(what, SPAN("policy")).n) {
        say(out, SPAN("policy "), span_first(get(what, SPAN("policy")), SHORT_ID));
        add(out, SPAN(" is in force"));
        if (get(what, SPAN("how")).n)
            say_how(what, out);
    } else if (span_eq(about, SPAN("policy-refused"))) {
        add(out, SPAN("a policy was refused, and nothing changed"));
        say_how(what, out);
        say(out, SPAN(": "), get(what, SPAN("why")));
    } else if (span_eq(about, SPAN("secret")) && get(what, SPAN("secret")).n) {
        say(out, SPAN("secret "), get(what, SPAN("secret")));
        say(out, SPAN(": "), get(what, SPAN("act")));
        (void)snprintf(uid, sizeof(uid), "uid %.*s", SPAN_FMT(uid_digits(what)));
        say_by(out, span_str(uid));
    } else {
        say(out, SPAN("note of the "), get(r, SPAN("from")));
        say(out, SPAN(" about "), about);
        for (const struct json *m = what && what->type == JSON_OBJECT ? what->child : NULL; m; m = m->next)
            if (m->type == JSON_STRING || m->type == JSON_NUMBER) {
                say(out, SPAN(", "), m->key);
                say(out, SPAN(" "), m->text);
            }
    }
}

static void sandbox(const struct json *r, struct dynbuf *out)
{
    const struct json *gone = json_get(r, SPAN("gone"));
    if (gone != NULL && gone->truth) {
        add(out, SPAN("sandbox removed"));
        return;
    }
    say(out, SPAN("sandbox made known ("), get(r, SPAN("how")));
    add(out, SPAN(", generation "));
    say_number(out, r, SPAN("generation"));
    add(out, SPAN(")"));
}

/* "command 3.7 begun: true", "command 3.7: exited 0" */
static void run(const struct json *r, struct dynbuf *out)
{
    static const char *const codes[] = {"status", "signal"};
    const struct json *words = json_get(json_get(r, SPAN("argv")), SPAN("words"));
    say(out, SPAN("command "), get(r, SPAN("command")));
    add(out, words ? SPAN(" begun:") : SPAN(": "));
    add(out, get(r, SPAN("how")));
    for (size_t i = 0; i < 2; i++)
        if (json_get(r, span_str(codes[i])) != NULL) {
            add(out, SPAN(" "));
            say_number(out, r, span_str(codes[i]));
        }
    for (const struct json *w = words ? words->child : NULL; w != NULL && out->n < WORD_MAX; w = w->next)
        say(out, SPAN(" "), w->text);
    if (get(r, SPAN("why")).n)
        say(out, SPAN(": "), get(r, SPAN("why")));
}

static void freeze(const struct json *r, struct dynbuf *out)
{
    struct span reason = get(r, SPAN("reason"));
    add(out, is(r, SPAN("kind"), SPAN("freeze")) ? SPAN("writes were frozen") : SPAN("writes were thawed"));
    say_by(out, get(r, SPAN("by")));
    if (reason.n)
        say(out, SPAN(": "), reason);
}

/* "lease 8z3k1j2k3l of github revoked by ann: an operator revoked it" */
static void lease(const struct json *r, struct dynbuf *out)
{
    say(out, SPAN("lease "), span_first(get(r, SPAN("lease")), SHORT_ID));
    say(out, SPAN(" of "), get(r, SPAN("credential")));
    say(out, SPAN(" "), span_from(get(r, SPAN("kind")), 6)); /* without "lease-" */
    if (get(r, SPAN("by")).n)
        say_by(out, get(r, SPAN("by")));
    if (get(r, SPAN("used_by")).n)
        say(out, SPAN(", used by "), get(r, SPAN("used_by")));
    if (get(r, SPAN("how")).n)
        say(out, SPAN(": "), get(r, SPAN("how")));
}

/* The end of a WebSocket: how much went over it, and why it ended if not by its own two ends. */
static void websocket(const struct json *r, struct dynbuf *out)
{
    noun(r, out);
    add(out, SPAN(": the WebSocket ended, "));
    say_number(out, r, SPAN("messages_out"));
    add(out, SPAN(" messages sent, "));
    say_number(out, r, SPAN("messages_in"));
    add(out, SPAN(" received"));
    if (get(r, SPAN("code")).n)
        say(out, SPAN("; "), get(r, SPAN("code")));
}

/* Of a request that shadow mode let pass: what would have been done with it. */
static void would(const struct json *r, struct dynbuf *out)
{
    const struct json *enforced = json_get(r, SPAN("enforced"));
    if (enforced == NULL || enforced->type != JSON_BOOL || enforced->truth || is(r, SPAN("verdict"), SPAN("allow")))
        return;
    add(out, SPAN("; enforced, it would be "));
    add(out, is(r, SPAN("verdict"), SPAN("hold")) ? SPAN("held") : SPAN("denied"));
    if (get(json_get(r, SPAN("rule")), SPAN("id")).n)
        say_rule(r, out);
}

/* With what a program wrote: the words are shown as any other text of a record. */
static void gate(const struct json *r, struct dynbuf *out)
{
    say(out, SPAN("ticket "), span_first(get(r, SPAN("ticket")), SHORT_ID));
    say(out, SPAN(": gate "), get(r, SPAN("gate")));
    say(out, SPAN(" "), get(r, SPAN("said")));
    if (get(r, SPAN("words")).n)
        say(out, SPAN(": "), get(r, SPAN("words")));
}

/* "bob decides for alice from now on, as alice says" */
static void deputy(const struct json *r, struct dynbuf *out)
{
    bool named = is(r, SPAN("act"), SPAN("named"));
    add(out, get(r, SPAN("deputy")));
    add(out, named ? SPAN(" decides for ") : SPAN(" does not decide for "));
    add(out, get(r, SPAN("for")));
    say(out, named ? SPAN(" from now on, named by ") : SPAN(" any more, ended by "), get(r, SPAN("by")));
}

/* Of those who decide, and what they said of a ticket before it was decided. False: it is none of these. */
static bool people(struct span kind, const struct json *r, struct dynbuf *out)
{
    if (span_eq(kind, SPAN("ticket-agreed"))) {
        say(out, SPAN("ticket "), span_first(get(r, SPAN("ticket")), SHORT_ID));
        say(out, SPAN(": one of several agreed, "), get(r, SPAN("by")));
        say_instead(r, out);
    } else if (span_eq(kind, SPAN("ticket-escalated"))) {
        say(out, SPAN("ticket "), span_first(get(r, SPAN("ticket")), SHORT_ID));
        say(out, SPAN(" escalated: nobody had decided, and "), get(r, SPAN("to")));
        add(out, SPAN(" may approve it as well"));
    } else if (span_eq(kind, SPAN("deputy"))) {
        deputy(r, out);
    } else if (span_eq(kind, SPAN("ticket-claimed")) || span_eq(kind, SPAN("ticket-unclaimed"))) {
        say(out, SPAN("ticket "), span_first(get(r, SPAN("ticket")), SHORT_ID));
        say(out,
            span_eq(kind, SPAN("ticket-claimed")) ? SPAN(": looked at by ") : SPAN(": not looked at any more by "),
            get(r, SPAN("by")));
        if (get(r, SPAN("from")).n)
            say(out, SPAN(", taken over from "), get(r, SPAN("from")));
    } else if (span_eq(kind, SPAN("operator"))) {
        say(out, SPAN("operator "), get(r, SPAN("name")));
        say(out,
            is(r, SPAN("act"), SPAN("added"))      ? SPAN(" was added by ")
            : is(r, SPAN("act"), SPAN("removed"))  ? SPAN(" was removed by ")
            : is(r, SPAN("act"), SPAN("password")) ? SPAN(" has another password, set by ")
                                                   : SPAN(" is in other groups, by "),
            get(r, SPAN("operator")));
    } else {
        return false;
    }
    return true;
}

void audit_words(const struct json *r, struct dynbuf *out)
{
    struct span kind = get(r, SPAN("kind"));
    if (span_eq(kind, SPAN("result"))) {
        result(r, out);
        would(r, out);
    } else if (span_eq(kind, SPAN("freeze")) || span_eq(kind, SPAN("thaw"))) {
        freeze(r, out);
    } else if (span_eq(kind, SPAN("denied"))) {
        refused(r, out);
    } else if (span_starts(kind, SPAN("lease-"))) {
        lease(r, out);
    } else if (span_eq(kind, SPAN("answered"))) {
        say(out, SPAN("answered here, as a stub of "), get(r, SPAN("credential")));
    } else if (span_eq(kind, SPAN("websocket"))) {
        websocket(r, out);
        would(r, out);
    } else if (span_eq(kind, SPAN("ticket-opened"))) {
        noun(r, out);
        say(out, SPAN(" held: ticket "), span_first(get(r, SPAN("ticket")), SHORT_ID));
    } else if (span_eq(kind, SPAN("ticket-decided")) || span_eq(kind, SPAN("ticket-expired"))) {
        decided(r, out);
    } else if (span_eq(kind, SPAN("gate-answered"))) {
        gate(r, out);
    } else if (people(kind, r, out)) {
        return;
    } else if (span_eq(kind, SPAN("intent"))) {
        noun(r, out);
        add(out, SPAN(" is about to be sent"));
    } else if (span_eq(kind, SPAN("sent"))) {
        add(out, SPAN("its first byte has left"));
    } else if (span_eq(kind, SPAN("answer-collected"))) {
        add(out, SPAN("the kept answer was collected"));
    } else if (span_eq(kind, SPAN("start"))) {
        add(out, is(r, SPAN("for"), SPAN("secrets"))
                     ? SPAN("the store was opened for `countersign secret`, no gateway ran")
                     : SPAN("the gateway started"));
    } else if (span_eq(kind, SPAN("sandbox"))) {
        sandbox(r, out);
    } else if (span_starts(kind, SPAN("run"))) {
        run(r, out);
    } else if (span_eq(kind, SPAN("note"))) {
        note(r, out);
    } else {
        add(out, kind.n ? kind : SPAN("a record that is not understood: see --json"));
    }
}

void audit_target(const struct json *r, struct dynbuf *out)
{
    struct span host = get(r, SPAN("host")), path = get(r, SPAN("path")), summary = get(r, SPAN("summary"));
    uint64_t port = 0, usual = is(r, SPAN("scheme"), SPAN("https")) ? 443 : 80;
    size_t from = out->n;
    if (summary.n) {
        (void)dynbuf_add(out, summary);
    } else if (host.n) {
        if (get(r, SPAN("method")).n)
            say(out, get(r, SPAN("method")), SPAN(" "));
        add(out, host);
        if (json_u64(r, SPAN("port"), &port) == 0 && port != usual)
            (void)dynbuf_addf(out, ":%u", (unsigned)port);
        (void)dynbuf_add(out, path);
    } else if (json_u64(r, SPAN("port"), &port) == 0) { /* refused before it said where to */
        (void)dynbuf_addf(out, "port %u", (unsigned)port);
    }
    if (dynbuf_ok(out) && out->n - from > TARGET_MAX) {
        out->n = from + TARGET_MAX - 3;
        (void)dynbuf_add(out, SPAN("..."));
    }
}
