/* countersign approvals list|show|approve|deny|claim|unclaim|watch */
#include <stdio.h>
#include <unistd.h>

#include "cli/table.h"
#include "cli/verb.h"
#include "cli/verbs/grants.h"
#include "cli/verbs/watch/watch.h"
#include "common/id.h"
#include "common/text/visible.h"
#include "common/text/person.h"
#include "common/text/utf8.h"

#define HEADS "ID\tSTATE\tEFFECT\tASKED\tAGENT\tSANDBOX\tWHAT"
enum { SHORT_ID = 10, TAKEN_UP_LOOKS = 20, TAKEN_UP_US = 50 * 1000, PATH_ROOM = 512 };

struct approvals {
    struct gateway_call g;
    struct table table;
    const struct cli_call *c;
    const char *id;
};

/* --- finding one ---------------------------------------------------------- */

static bool id_ok(const char *s)
{
    size_t n = strlen(s);
    return n >= 4 && n <= ID_TEXT && strspn(s, "0123456789abcdefghjkmnpqrstvwxyz") == n;
}

int verb_ticket(struct gateway_call *g, const char *given, char id[ID_TEXT + 1], const struct json **ticket)
{
    char path[PATH_ROOM];
    const struct json *list;
    int rc;

    if (!id_ok(given))
        return verb_fail(CLI_USAGE, "%s is not a ticket's id, nor the first four or more characters of one", given);
    (void)snprintf(path, sizeof(path), "/api/v1/tickets?prefix=%s&limit=2", given);
    rc = verb_ask(g, "GET", path, SPAN_NONE, 200);
    if (rc != CLI_OK)
        return rc;
    list = json_get(g->tree, SPAN("tickets"));
    if (!list || list->count == 0)
        return verb_fail(CLI_RUNTIME, "no ticket begins with %s", given);
    if (list->count > 1)
        return verb_fail(CLI_USAGE, "more than one ticket begins with %s: say more of it", given);
    struct span text = json_text(list->child, SPAN("id"));
    if (text.n != ID_TEXT)
        return verb_fail(CLI_RUNTIME, "the gateway's answer is not understood");
    memcpy(id, text.p, ID_TEXT);
    id[ID_TEXT] = '\0';
    *ticket = list->child;
    return CLI_OK;
}

/* --- list and watch ------------------------------------------------------- */

/* With who is looking at it, and whether others are asked by now. */
static void put_state(struct table *table, const struct json *t)
{
    struct span by = member_text(json_get(t, SPAN("claim")), "by");

    table_add_text(table, member_text(t, "state"));
    if (by.n) {
        table_add(table, ", ");
        table_add_text(table, by);
    }
    if (member_u64(t, "escalated_ms") && span_eq(member_text(t, "state"), SPAN("pending")))
        table_add(table, ", escalated");
    table_next(table);
}

static void put_row(struct table *table, const struct json *t)
{
    const struct json *client = json_get(t, SPAN("client"));
    char when[32];

    table_text(table, span_first(member_text(t, "id"), SHORT_ID));
    put_state(table, t);
    table_text(table, member_text(t, "effect"));
    table_cell(table, "%s", time_text(member_u64(t, "created_ms"), when));
    table_text(table, client ? verb_true(client, "later")   ? SPAN("later")
                               : verb_true(client, "waits") ? SPAN("waits")
                                                            : SPAN("left")
                             : SPAN("-"));
    table_text(table, member_text(t, "sandbox"));
    if (member_text(t, "summary").n) {
        table_add_text(table, member_text(t, "summary"));
    } else {
        table_add_text(table, member_text(t, "method"));
        table_add(table, " ");
        table_add_text(table, member_text(t, "host"));
        table_add_text(table, member_text(t, "path"));
    }
    table_next(table);
    table_row(table);
}

/* What is in the state that was asked for; the table is begun, and not ended. */
static int put_list(struct approvals *a)
{
    const char *state = cli_value(a->c, "state");
    char path[PATH_ROOM];
    const struct json *tickets;
    int rc;

    if (cli_flag(a->c, "all") || (state && strcmp(state, "all") == 0))
        state = "";
    (void)snprintf(path, sizeof(path), "/api/v1/tickets?state=%s&limit=500", state ? state : "pending");
    rc = verb_ask(&a->g, "GET", path, SPAN_NONE, 200);
    if (rc != CLI_OK)
        return rc;
    if (a->g.json) {
        verb_print_answer(&a->g);
        return CLI_OK;
    }
    tickets = json_get(a->g.tree, SPAN("tickets"));
    for (const struct json *t = tickets ? tickets->child : NULL; t; t = t->next)
        put_row(&a->table, t);
    return CLI_OK;
}

static int list(struct approvals *a)
{
    const char *state = cli_value(a->c, "state");
    int rc;

    table_begin(&a->table, HEADS);
    rc = put_list(a);
    if (rc == CLI_OK && !a->g.json)
        table_end(&a->table, state || cli_flag(a->c, "all") ? "There is no such ticket." : "Nothing waits.");
    return rc;
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
                put_row(&a->table, a->g.tree);
            table_flush(&a->table);
            fflush(stdout);
        }
    }
    arena_free(&arena);
    return ferror(stdout) ? 1 : 0;
}

static int watch(struct approvals *a)
{
    struct err e;
    int rc;

    table_begin(&a->table, HEADS);
    rc = put_list(a);
    if (rc != CLI_OK)
        return rc;
    table_flush(&a->table);
    fflush(stdout);
    rc = api_stream(a->g.sock, "/api/v1/events", NULL, watch_event, a, &e);
    if (rc < 0)
        return verb_fail(CLI_STORE, "%s", e.text);
    return rc == 0 ? verb_fail(CLI_STORE, "the gateway ended the stream") : CLI_OK;
}

/* --- show ----------------------------------------------------------------- */

static int show(struct approvals *a)
{
    char id[ID_TEXT + 1], path[PATH_ROOM];
    const struct json *t;
    int rc = verb_ticket(&a->g, a->id, id, &t);

    if (rc != CLI_OK)
        return rc;
    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s?reading=1", id);
    rc = verb_ask(&a->g, "GET", path, SPAN_NONE, 200);
    if (rc != CLI_OK)
        return rc;
    if (a->g.json) {
        verb_print_answer(&a->g);
        return CLI_OK;
    }
    uint64_t size = member_u64(a->g.tree, "body_size");
    if (cli_flag(a->c, "body"))
        return size ? ticket_print_body(&a->g, id, size, true, NULL) : CLI_OK;
    ticket_print(a->g.tree);
    return size ? ticket_print_body(&a->g, id, size, false, NULL) : CLI_OK;
}

/* --- decide --------------------------------------------------------------- */

/* What became of it, by its state: never that it was sent where that is not known. */
static const char *became(struct span state)
{
    return span_eq(state, SPAN("done"))        ? ", and sent"
           : span_eq(state, SPAN("executing")) ? ", and on its way"
           : span_eq(state, SPAN("failed"))    ? ", but it could not be sent"
           : span_eq(state, SPAN("unknown"))   ? ", but whether it was done is not known"
                                               : "";
}

/* An approval may be taken back as long as it was not used; nothing else is decided twice. */
static bool is_decided(const struct json *t, const char *how)
{
    struct span state = member_text(t, "state");

    return !span_eq(state, SPAN("pending")) && (strcmp(how, "approve") == 0 || !span_eq(state, SPAN("approved")));
}

/* What can be done about it, by its state. */
static void add_next(struct dynbuf *words, const struct json *t)
{
    struct span state = member_text(t, "state");
    char until[32];

    (void)time_text(member_u64(t, "expires_ms"), until);
    if (span_eq(state, SPAN("denied")))
        (void)dynbuf_addf(words, ". That stands until %s: after it, or changed, the request is asked anew", until);
    else if (span_eq(state, SPAN("approved")))
        (void)dynbuf_addf(words,
                          ". It is sent when the same request comes again, until %s; `countersign approvals deny "
                          "%.*s` takes it back",
                          until, SPAN_FMT(span_first(member_text(t, "id"), SHORT_ID)));
    else if (span_eq(state, SPAN("expired")) || span_eq(state, SPAN("cancelled")))
        (void)dynbuf_add(words, SPAN(": the request has to be sent again"));
    else
        (void)dynbuf_add(words, span_str(became(state)));
}

/* Who decided, when and how, and what that means now. */
static int say_decided(const struct json *t)
{
    struct span state = member_text(t, "state"), by = member_text(t, "decided_by");
    struct span reason = member_text(t, "decided_reason");
    bool told =
        span_eq(state, SPAN("denied")) || span_eq(state, SPAN("expired")) || span_eq(state, SPAN("cancelled"));
    char name[PERSON_NAME_MAX], me[32], when[32];
    struct dynbuf words;

    dynbuf_init(&words, 16 * 1024);
    (void)snprintf(me, sizeof(me), "uid %lu", (unsigned long)geteuid());
    (void)dynbuf_addf(&words, "%.*s was ", SPAN_FMT(span_first(member_text(t, "id"), SHORT_ID)));
    visible_text(&words, told ? state : SPAN("approved"), false);
    if (by.n && !span_eq(state, SPAN("expired"))) {
        (void)dynbuf_add(&words, SPAN(" by "));
        visible_text(&words, span_eq(by, span_str(me)) ? SPAN("you") : person_name(by, name), false);
    }
    (void)dynbuf_addf(&words, " at %s", time_text(member_u64(t, "decided_ms"), when));
    if (reason.n) {
        (void)dynbuf_add(&words, SPAN(": "));
        visible_text(&words, reason, false);
        if (span_eq(by, SPAN("client")))
            (void)dynbuf_add(&words, SPAN(" (untrusted: written by whoever asks)"));
    }
    add_next(&words, t);
    (void)verb_fail(CLI_RUNTIME, "%.*s", SPAN_FMT(dynbuf_span(&words)));
    dynbuf_free(&words);
    return CLI_RUNTIME;
}

/* A client that waits has it sent within moments; where none does, the same request must come again. */
static int say_sent(struct approvals *a, const char *id)
{
    char path[PATH_ROOM], until[32];
    bool open = true, under_way = false;
    int rc = CLI_OK;

    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s", id);
    for (int i = 0; (open || under_way) && rc == CLI_OK && i < TAKEN_UP_LOOKS; i++) {
        if (i)
            (void)usleep(TAKEN_UP_US);
        rc = verb_ask(&a->g, "GET", path, SPAN_NONE, 200);
        open = rc == CLI_OK && span_eq(member_text(a->g.tree, "state"), SPAN("approved"));
        under_way = rc == CLI_OK && span_eq(member_text(a->g.tree, "state"), SPAN("executing"));
    }
    printf("%.*s approved", SHORT_ID, id);
    const struct json *client = open ? json_get(a->g.tree, SPAN("client")) : NULL;
    if (client && verb_true(client, "later"))
        printf("; the gateway sends it itself as soon as that can be done, until %s",
               time_text(member_u64(a->g.tree, "expires_ms"), until));
    else if (open)
        printf("; no client waits for it: it is sent when the same request comes again, until %s",
               time_text(member_u64(a->g.tree, "expires_ms"), until));
    else if (rc == CLI_OK)
        fputs(became(member_text(a->g.tree, "state")), stdout);
    putchar('\n');
    return CLI_OK;
}

static int decide(struct approvals *a, const char *how)
{
    const char *digest = cli_value(a->c, "digest"), *reason = cli_value(a->c, "reason");
    const char *name = strcmp(how, "approve") == 0 ? cli_value(a->c, "name") : NULL;
    const char *place = strcmp(how, "approve") == 0 ? cli_value(a->c, "deputy-for") : NULL;
    char id[ID_TEXT + 1], path[PATH_ROOM];
    const struct json *t;
    struct dynbuf body;
    struct jsonw w;
    struct err e;
    uint64_t uses = 0, for_ms = 0;
    int rc = strcmp(how, "approve") == 0 ? grants_asked(a->c, &uses, &for_ms) : CLI_OK;

    if (rc != CLI_OK)
        return rc;
    if (api_running(a->g.sock, &e) == 0)
        return verb_fail(CLI_STORE,
                         "no gateway runs: nothing answers at %s. That of `countersign run --policy` ends with its "
                         "command: run the command again and %s it while it runs, or start one that stays, "
                         "`countersign up --policy FILE`",
                         a->g.sock, how);
    rc = verb_ticket(&a->g, a->id, id, &t);
    if (rc != CLI_OK)
        return rc;
    if (is_decided(t, how))
        return say_decided(t);
    dynbuf_init(&body, 8 * 1024);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, "digest", digest ? span_str(digest) : member_text(t, "digest"));
    if (reason)
        jsonw_kv(&w, "reason", span_str(reason));
    if (uses) {
        jsonw_kv_u64(&w, "uses", uses);
        jsonw_kv_u64(&w, "for_ms", for_ms);
    }
    if (name)
        jsonw_kv(&w, "name", span_str(name));
    if (place)
        jsonw_kv(&w, "deputy_for", span_str(place));
    jsonw_end_object(&w);
    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s/%s", id, how);
    rc = uses ? grants_say(&a->g, id, t, uses, for_ms) : CLI_OK;
    if (rc == CLI_OK)
        rc = dynbuf_ok(&body) ? verb_ask(&a->g, "POST", path, dynbuf_span(&body), 200)
                              : verb_fail(CLI_USAGE, "the reason is too long");
    dynbuf_free(&body);
    if (rc != CLI_OK)
        return rc;
    if (a->g.json) {
        verb_print_answer(&a->g);
        return CLI_OK;
    }
    if (strcmp(how, "approve") == 0)
        return say_sent(a, id);
    printf("%.*s ", SHORT_ID, id);
    print_text(member_text(a->g.tree, "state"));
    putchar('\n');
    return CLI_OK;
}

static int approve(struct approvals *a)
{
    return decide(a, "approve");
}

static int deny(struct approvals *a)
{
    return decide(a, "deny");
}

/* --- claim ---------------------------------------------------------------- */

static int look(struct approvals *a, const char *how)
{
    char id[ID_TEXT + 1], path[PATH_ROOM];
    const struct json *t;
    int rc = verb_ticket(&a->g, a->id, id, &t);

    if (rc != CLI_OK)
        return rc;
    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s/%s", id, how);
    rc = verb_ask(&a->g, "POST", path,
                  strcmp(how, "claim") == 0 && cli_flag(a->c, "take") ? SPAN("{\"take\":true}") : SPAN("{}"), 200);
    if (rc != CLI_OK)
        return rc;
    if (a->g.json) {
        verb_print_answer(&a->g);
        return CLI_OK;
    }
    struct span from = member_text(a->g.tree, "from");
    bool on = verb_true(a->g.tree, "claimed");
    printf("%.*s is looked at by %s", SHORT_ID, id, on ? "you" : "nobody");
    if (on && from.n) {
        fputs(", taken over from ", stdout);
        print_text(from);
    }
    puts(on ? ": the others see it for 10 minutes" : "");
    return CLI_OK;
}

static int claim(struct approvals *a)
{
    return look(a, "claim");
}

static int unclaim(struct approvals *a)
{
    return look(a, "unclaim");
}

/* --- metrics -------------------------------------------------------------- */

/* For Prometheus' textfile collector: there is no port to be asked at. */
static int metrics(struct approvals *a)
{
    int rc = verb_ask(&a->g, "GET", "/api/v1/metrics", SPAN_NONE, 200);

    if (rc == CLI_OK)
        (void)fwrite(a->g.answer.p, 1, a->g.answer.n, stdout);
    return rc;
}

static int with_gateway(const struct cli_call *c, int (*fn)(struct approvals *a))
{
    struct approvals a = {.c = c, .id = c->nwords ? c->word[0] : NULL};
    int rc = verb_begin(&a.g, c);

    if (rc == CLI_OK)
        rc = fn(&a);
    dynbuf_free(&a.table.rows);
    verb_end(&a.g);
    return rc;
}

int approvals_metrics(const struct cli_call *c)
{
    return with_gateway(c, metrics);
}

int approvals_list(const struct cli_call *c)
{
    return with_gateway(c, list);
}

/* At a terminal what waits is a view with keys, unless another state is asked for. */
int approvals_watch(const struct cli_call *c)
{
    if (!c->json && !cli_value(c, "state") && !cli_flag(c, "all") && terminal_here())
        return watch_view(c);
    return with_gateway(c, watch);
}

int approvals_show(const struct cli_call *c)
{
    return with_gateway(c, show);
}

int approvals_approve(const struct cli_call *c)
{
    return with_gateway(c, approve);
}

int approvals_deny(const struct cli_call *c)
{
    return with_gateway(c, deny);
}

int approvals_claim(const struct cli_call *c)
{
    return with_gateway(c, claim);
}

int approvals_unclaim(const struct cli_call *c)
{
    return with_gateway(c, unclaim);
}
