/* A ticket as text: approvals show, and the view of approvals watch. */
#include <stdio.h>

#include "cli/verbs/watch/watch.h"
#include "common/text/person.h"
#include "common/text/utf8.h"

enum { PATH_ROOM = 512, BODY_SHOWN = 1024 * 1024 };

bool verb_true(const struct json *j, const char *key)
{
    const struct json *v = json_get(j, span_str(key));
    return v && v->type == JSON_BOOL && v->truth;
}

static void row(const char *label, struct span value)
{
    if (value.n == 0)
        return;
    printf("%-12s", label);
    print_text(value);
    putchar('\n');
}

static void show_target(const struct json *t)
{
    printf("\n");
    print_text(member_text(t, "method"));
    putchar(' ');
    print_text(member_text(t, "scheme"));
    fputs("://", stdout);
    print_text(member_text(t, "host"));
    printf(":%llu", (unsigned long long)member_u64(t, "port"));
    print_text(member_text(t, "path"));
    if (json_get(t, SPAN("query"))) {
        putchar('?');
        print_text(member_text(t, "query"));
    }
    putchar('\n');
}

static void show_pairs(const struct json *t)
{
    const struct json *fields = json_get(t, SPAN("fields")), *facts = json_get(t, SPAN("facts"));

    for (const struct json *f = facts ? facts->child : NULL; f; f = f->next) {
        fputs("  ", stdout);
        print_text(json_text(f, SPAN("label")));
        fputs(": ", stdout);
        print_text(json_text(f, SPAN("value")));
        putchar('\n');
    }
    show_target(t);
    for (const struct json *f = fields ? fields->child : NULL; f; f = f->next) {
        print_text(f->child ? f->child->text : SPAN_NONE);
        fputs(": ", stdout);
        print_text(f->child && f->child->next ? f->child->next->text : SPAN_NONE);
        putchar('\n');
    }
    putchar('\n');
}

/* Whether a client waits for it: what a yes does. */
static void show_client(const struct json *t)
{
    const struct json *client = json_get(t, SPAN("client"));
    bool waits = client && verb_true(client, "waits"), approved = span_eq(member_text(t, "state"), SPAN("approved"));
    uint64_t since = member_u64(client, "since_ms");
    char when[32];

    if (!client)
        return;
    if (verb_true(client, "later"))
        printf("%-12sneed not wait: %sthe gateway sends this itself\n", "Agent", approved ? "" : "after a yes ");
    else if (waits)
        printf("%-12swaits: a yes sends this now\n", "Agent");
    else
        printf("%-12s%s%s: %sthis is sent when it asks again\n", "Agent", since ? "left at " : "none waits",
               since ? time_text(since, when) : "", approved ? "" : "after a yes ");
}

/* What else is asked of it, and what it said. */
static void gate_rows(const struct json *gates)
{
    for (const struct json *g = gates ? gates->child : NULL; g; g = g->next) {
        printf("%-12s", "Gate");
        print_text(member_text(g, "name"));
        fputs(": ", stdout);
        print_text(member_text(g, "state"));
        if (member_text(g, "words").n) {
            fputs(": ", stdout);
            print_text(member_text(g, "words"));
        }
        putchar('\n');
    }
}

/* Who is asked as well, and since when or from when on. */
static void escalation_rows(const struct json *steps)
{
    char when[32];

    for (const struct json *s = steps ? steps->child : NULL; s; s = s->next) {
        uint64_t since = member_u64(s, "since_ms");
        printf("%-12s", "Or by");
        print_text(member_text(s, "to"));
        printf(since ? ", asked as well since %s\n" : ", asked as well from %s on\n",
               time_text(since ? since : member_u64(s, "due_ms"), when));
    }
}

/* Whether what it changes is known: its page has it. */
static void diff_row(const struct json *diff)
{
    struct span why = member_text(diff, "why");

    if (!diff)
        return;
    printf("%-12s", "Diff");
    print_text(member_text(diff, "wanted"));
    fputs(": ", stdout);
    print_text(member_text(diff, "state"));
    fputs(!span_eq(member_text(diff, "state"), SPAN("made")) ? ""
          : verb_true(diff, "complete")                      ? ", all of it: see its page"
                                                             : ", but not all of it: see its page",
          stdout);
    if (why.n) {
        fputs("; ", stdout);
        print_text(why);
    }
    putchar('\n');
}

/* What was said where it was decided; of an agent's own client that comes out of the sandbox. */
static void decided_row(const struct json *t)
{
    row("In words", member_text(t, "decided_reason"));
    if (member_text(t, "decided_reason").n && span_eq(member_text(t, "decided_by"), SPAN("client")))
        row("", SPAN("(untrusted: written by whoever asks)"));
}

static void show_head(const struct json *t)
{
    const struct json *rule = json_get(t, SPAN("rule"));
    char when[32], name[PERSON_NAME_MAX];

    row("Ticket", member_text(t, "id"));
    row("State", member_text(t, "state"));
    row("Effect", member_text(t, "effect"));
    row("Operation", member_text(t, "op"));
    row("Summary", member_text(t, "summary"));
    row("Sandbox", member_text(t, "sandbox"));
    row("Session", member_text(t, "session"));
    row("Credential", member_text(t, "credential"));
    if (member_text(rule, "id").n) {
        printf("%-12s", "Held by");
        print_text(member_text(rule, "id"));
        fputs(" at ", stdout);
        print_text(member_text(rule, "file"));
        printf(":%llu\n", (unsigned long long)member_u64(rule, "line"));
    }
    if (span_eq(member_text(t, "code"), SPAN("over-limit")))
        row("Because", SPAN("what another rule allows is past its limit"));
    else if (span_eq(member_text(t, "code"), SPAN("learning")))
        row("Because", SPAN("no rule fits it, and the policy is learning"));
    show_client(t);
    row("Approvers", member_text(t, "approve_by"));
    escalation_rows(json_get(t, SPAN("escalate")));
    row("Agent says", member_text(t, "agent_reason"));
    gate_rows(json_get(t, SPAN("gates")));
    diff_row(json_get(t, SPAN("diff")));
    printf("%-12s%s\n", "Asked", time_text(member_u64(t, "created_ms"), when));
    printf("%-12s%s\n", "Expires", time_text(member_u64(t, "expires_ms"), when));
    row("Decided by", person_name(member_text(t, "decided_by"), name));
    decided_row(t);
    row("Status", member_text(t, "status"));
    row("Digest", member_text(t, "digest"));
    row("Body SHA256", member_text(t, "body_sha256"));
}

/* What the page says first: what is apt to deceive. */
static void show_flags(const struct json *reading)
{
    const struct json *flags = json_get(reading, SPAN("flags"));

    if (verb_true(reading, "blocks"))
        row("Blocked", SPAN("what cannot be shown cannot be approved"));
    for (const struct json *f = flags ? flags->child : NULL; f; f = f->next) {
        printf("%-12s", verb_true(f, "blocks") ? "Blocks" : "Look twice");
        if (member_text(f, "about").n) {
            print_text(member_text(f, "about"));
            fputs(": ", stdout);
        }
        print_text(member_text(f, "words"));
        if (member_text(f, "value").n) {
            fputs(" \"", stdout);
            print_text(member_text(f, "value"));
            putchar('"');
        }
        putchar('\n');
    }
    row("Its name", member_text(reading, "name"));
}

/* Bytes that are no text, as hexadecimal. */
static void show_hex(struct span s)
{
    for (size_t i = 0; i < s.n; i += 16) {
        printf("%08zx ", i);
        for (size_t j = i; j < i + 16 && j < s.n; j++)
            printf(" %02x", s.p[j]);
        putchar('\n');
    }
}

void ticket_print(const struct json *t)
{
    show_head(t);
    show_flags(json_get(t, SPAN("reading")));
    show_pairs(t);
}

int ticket_print_body(struct gateway_call *g, const char *id, uint64_t size, bool raw, bool *read)
{
    char path[PATH_ROOM];

    if (size > BODY_SHOWN && !raw) {
        printf("(body of %llu bytes: too long for a terminal, read it on the page)\n", (unsigned long long)size);
        return CLI_OK;
    }
    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s/body", id);
    int rc = verb_ask(g, "GET", path, SPAN_NONE, 200);
    if (rc != CLI_OK)
        return rc;
    struct span body = dynbuf_span(&g->answer);
    if (raw)
        return fwrite(body.p, 1, body.n, stdout) == body.n && fflush(stdout) == 0 ? CLI_OK : CLI_RUNTIME;
    bool text = utf8_run(body) == body.n;
    if (text)
        print_lines(body);
    else
        show_hex(body);
    putchar('\n');
    if (read)
        *read = text && body.n == size;
    return CLI_OK;
}
