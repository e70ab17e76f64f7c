/* countersign approvals list|show|approve|deny|watch */
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/verb.h"
#include "cli/verbs.h"
#include "common/id.h"
#include "common/utf8.h"

enum { SHORT_ID = 10, PATH_ROOM = 512, BODY_SHOWN = 1024 * 1024 };

struct approvals {
    struct gateway_call g;
    const char *id, *reason, *state, *digest;
    bool raw; /* the body's bytes and nothing else */
};

/* --- finding one ---------------------------------------------------------- */

static bool id_ok(const char *s)
{
    size_t n = strlen(s);
    return n >= 4 && n <= ID_TEXT && strspn(s, "0123456789abcdefghjkmnpqrstvwxyz") == n;
}

/* The ticket that the given id, or the start of one, names; its whole id goes to `id`. */
static int find(struct approvals *a, char id[ID_TEXT + 1], const struct json **ticket)
{
    char path[PATH_ROOM];
    const struct json *list;
    int rc;

    if (!id_ok(a->id))
        return verb_fail(CLI_USAGE, "%s is not a ticket's id, nor the first four or more characters of one", a->id);
    (void)snprintf(path, sizeof(path), "/api/v1/tickets?prefix=%s&limit=2", a->id);
    rc = verb_ask(&a->g, "GET", path, SPAN_NONE, 200);
    if (rc != CLI_OK)
        return rc;
    list = json_get(a->g.tree, SPAN("tickets"));
    if (!list || list->count == 0)
        return verb_fail(CLI_RUNTIME, "no ticket begins with %s", a->id);
    if (list->count > 1)
        return verb_fail(CLI_USAGE, "more than one ticket begins with %s: say more of it", a->id);
    struct span text = json_text(list->child, SPAN("id"));
    if (text.n != ID_TEXT)
        return verb_fail(CLI_RUNTIME, "the gateway's answer is not understood");
    memcpy(id, text.p, ID_TEXT);
    id[ID_TEXT] = '\0';
    *ticket = list->child;
    return CLI_OK;
}

/* --- list and watch ------------------------------------------------------- */

static void print_line(const struct json *t)
{
    char when[32];

    print_text(span_first(member_text(t, "id"), SHORT_ID));
    fputs("  ", stdout);
    print_text(member_text(t, "state"));
    fputs("  ", stdout);
    print_text(member_text(t, "effect"));
    printf("  %s  ", time_text(member_u64(t, "created_ms"), when));
    print_text(member_text(t, "sandbox"));
    fputs("  ", stdout);
    if (member_text(t, "summary").n) {
        print_text(member_text(t, "summary"));
    } else {
        print_text(member_text(t, "method"));
        putchar(' ');
        print_text(member_text(t, "host"));
        print_text(member_text(t, "path"));
    }
    putchar('\n');
}

static int list(struct approvals *a)
{
    char path[PATH_ROOM];
    const struct json *tickets;
    int rc;

    if (strspn(a->state, "abcdefghijklmnopqrstuvwxyz") != strlen(a->state))
        return cli_usage("approvals");
    (void)snprintf(path, sizeof(path), "/api/v1/tickets?state=%s&limit=500",
                   strcmp(a->state, "all") == 0 ? "" : a->state);
    rc = verb_ask(&a->g, "GET", path, SPAN_NONE, 200);
    if (rc != CLI_OK)
        return rc;
    if (a->g.json) {
        verb_print_answer(&a->g);
        return CLI_OK;
    }
    tickets = json_get(a->g.tree, SPAN("tickets"));
    for (const struct json *t = tickets ? tickets->child : NULL; t; t = t->next)
        print_line(t);
    if ((!tickets || tickets->count == 0) && isatty(1))
        puts("Nothing waits.");
    return CLI_OK;
}

static int watch_event(void *ctx, const struct api_event *ev)
{
    struct approvals *a = ctx;
    struct arena arena;
    char path[PATH_ROOM];
    struct span subject;
    struct id id;

    if (!span_eq(ev->name, SPAN("ticket")))
        return 0;
    arena_init(&arena, API_EVENT_MAX * 4);
    subject = json_text(json_parse(ev->data, &arena), SPAN("subject"));
    if (id_parse(subject, &id) == 0) {
        (void)snprintf(path, sizeof(path), "/api/v1/tickets/%.*s", SPAN_FMT(subject));
        if (verb_ask(&a->g, "GET", path, SPAN_NONE, 200) == CLI_OK) {
            if (a->g.json)
                verb_print_answer(&a->g);
            else if (a->g.tree)
                print_line(a->g.tree);
            fflush(stdout);
        }
    }
    arena_free(&arena);
    return ferror(stdout) ? 1 : 0;
}

static int watch(struct approvals *a)
{
    struct err e;
    int rc = list(a);

    if (rc != CLI_OK)
        return rc;
    fflush(stdout);
    rc = api_stream(a->g.sock, "/api/v1/events", NULL, watch_event, a, &e);
    if (rc < 0)
        return verb_fail(CLI_STORE, "%s", e.text);
    return rc == 0 ? verb_fail(CLI_STORE, "the gateway ended the stream") : CLI_OK;
}

/* --- show ----------------------------------------------------------------- */

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

static void show_head(const struct json *t)
{
    const struct json *rule = json_get(t, SPAN("rule"));
    char when[32];

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
    row("Approvers", member_text(t, "approve_by"));
    row("Agent says", member_text(t, "agent_reason"));
    printf("%-12s%s\n", "Asked", time_text(member_u64(t, "created_ms"), when));
    printf("%-12s%s\n", "Expires", time_text(member_u64(t, "expires_ms"), when));
    row("Decided by", member_text(t, "decided_by"));
    row("In words", member_text(t, "decided_reason"));
    row("Status", member_text(t, "status"));
    row("Digest", member_text(t, "digest"));
    row("Body SHA256", member_text(t, "body_sha256"));
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

static int show_body(struct approvals *a, const char *id, uint64_t size)
{
    char path[PATH_ROOM];

    if (size > BODY_SHOWN && !a->raw) {
        printf("(body of %llu bytes: too long for a terminal, read it on the page)\n", (unsigned long long)size);
        return CLI_OK;
    }
    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s/body", id);
    int rc = verb_ask(&a->g, "GET", path, SPAN_NONE, 200);
    if (rc != CLI_OK)
        return rc;
    struct span body = dynbuf_span(&a->g.answer);
    if (a->raw)
        return fwrite(body.p, 1, body.n, stdout) == body.n && fflush(stdout) == 0 ? CLI_OK : CLI_RUNTIME;
    if (utf8_run(body) == body.n)
        print_lines(body);
    else
        show_hex(body);
    putchar('\n');
    return CLI_OK;
}

static int show(struct approvals *a)
{
    char id[ID_TEXT + 1], path[PATH_ROOM];
    const struct json *t;
    int rc = find(a, id, &t);

    if (rc != CLI_OK)
        return rc;
    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s", id);
    rc = verb_ask(&a->g, "GET", path, SPAN_NONE, 200);
    if (rc != CLI_OK)
        return rc;
    if (a->g.json) {
        verb_print_answer(&a->g);
        return CLI_OK;
    }
    uint64_t size = member_u64(a->g.tree, "body_size");
    if (a->raw)
        return size ? show_body(a, id, size) : CLI_OK;
    show_head(a->g.tree);
    show_pairs(a->g.tree);
    return size ? show_body(a, id, size) : CLI_OK;
}

/* --- decide --------------------------------------------------------------- */

static int decide(struct approvals *a, const char *how)
{
    char id[ID_TEXT + 1], path[PATH_ROOM];
    const struct json *t;
    struct dynbuf body;
    struct jsonw w;
    int rc = find(a, id, &t);

    if (rc != CLI_OK)
        return rc;
    dynbuf_init(&body, 8 * 1024);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, "digest", a->digest ? span_str(a->digest) : member_text(t, "digest"));
    if (a->reason)
        jsonw_kv(&w, "reason", span_str(a->reason));
    jsonw_end_object(&w);
    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s/%s", id, how);
    rc = dynbuf_ok(&body) ? verb_ask(&a->g, "POST", path, dynbuf_span(&body), 200)
                          : verb_fail(CLI_USAGE, "the reason is too long");
    dynbuf_free(&body);
    if (rc != CLI_OK)
        return rc;
    if (a->g.json) {
        verb_print_answer(&a->g);
        return CLI_OK;
    }
    printf("%.*s ", SHORT_ID, id);
    print_text(member_text(a->g.tree, "state"));
    putchar('\n');
    return CLI_OK;
}

static int dispatch(struct approvals *a, const char *what)
{
    if (strcmp(what, "list") == 0 && !a->id)
        return list(a);
    if (strcmp(what, "watch") == 0 && !a->id)
        return watch(a);
    if (!a->id)
        return cli_usage("approvals");
    if (strcmp(what, "show") == 0)
        return show(a);
    if (strcmp(what, "approve") == 0 || strcmp(what, "deny") == 0)
        return decide(a, what);
    return cli_usage("approvals");
}

int approvals_main(int argc, char **argv)
{
    static const struct option options[] = {VERB_OPTIONS,
                                            {"reason", required_argument, NULL, OPT_OWN},
                                            {"state", required_argument, NULL, OPT_OWN + 1},
                                            {"all", no_argument, NULL, OPT_OWN + 2},
                                            {"digest", required_argument, NULL, OPT_OWN + 3},
                                            {"body", no_argument, NULL, OPT_OWN + 4},
                                            {NULL, 0, NULL, 0}};
    struct approvals a = {.state = "pending"};
    const char *state_dir = NULL;
    bool json = false;
    int o, rc;

    while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
        switch (o) {
        case OPT_STATE_DIR: state_dir = optarg; break;
        case OPT_JSON: json = true; break;
        case OPT_OWN: a.reason = optarg; break;
        case OPT_OWN + 1: a.state = optarg; break;
        case OPT_OWN + 2: a.state = "all"; break;
        case OPT_OWN + 3: a.digest = optarg; break;
        case OPT_OWN + 4: a.raw = true; break;
        default: return cli_usage("approvals");
        }
    if (argc - optind < 1 || argc - optind > 2)
        return cli_usage("approvals");
    a.id = argv[optind + 1];
    rc = verb_begin(&a.g, state_dir, json);
    if (rc == CLI_OK)
        rc = dispatch(&a, argv[optind]);
    verb_end(&a.g);
    return rc;
}
