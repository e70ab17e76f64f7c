#include "sandbox-shim/run/notify.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/control/api.h"
#include "common/id.h"
#include "common/json/json.h"
#include "common/time/clock.h"
#include "sandbox-shim/run/notify_lines.h"

enum {
    TREE_BYTES = 16 * 1024 * 1024,
    AGAIN_S = 1,
    RECORDS = 200,
    RECORDED_US = 60 * 1000, /* the ledger has written by then what nobody waits for */
    OTHERS_SAID = 3,
    REFUSED_SAID = 20
};

/* In memory that both processes see: what the watching one announced, the other asks about at the end. Marked when it
 * was said, not before: the watching one is ended at any moment. */
struct notify {
    pid_t watcher;
    struct notify_of of;
    uint64_t began_ms, seen; /* seen: the last record that was looked at */
    char page[512];
    char denied[2 * DIGEST_BYTES]; /* the request whose denial is looked for */
    size_t n, others, refused;
    bool more, more_refused, ending;
    struct {
        char id[ID_TEXT + 1];
        bool decided, other; /* other: it was not this run that asked first */
        uint64_t repeats;    /* of the request, when it was announced */
    } ticket[NOTIFY_TICKETS_MAX];
    struct digest said[REFUSED_SAID];
};

static uint64_t number(const struct json *j, struct span key)
{
    uint64_t v;
    return json_u64(j, key, &v) == 0 ? v : 0;
}

static bool of_session(const struct notify *n, const struct json *t)
{
    return span_eq(json_text(t, SPAN("session")), span_str(n->of.session));
}

static size_t find(const struct notify *n, struct span id)
{
    size_t i = 0;

    while (i < n->n && !span_eq(span_of(n->ticket[i].id, ID_TEXT), id))
        i++;
    return i;
}

/* Counted last: the other process never sees half of one. */
static void track(struct notify *n, const struct json *t, bool other, bool decided)
{
    memcpy(n->ticket[n->n].id, json_text(t, SPAN("id")).p, ID_TEXT);
    n->ticket[n->n].other = other;
    n->ticket[n->n].decided = decided;
    n->ticket[n->n].repeats = number(t, SPAN("repeats"));
    n->n++;
}

/* Once. */
static void more(bool *said, const char *what, const char *how)
{
    if (!*said)
        line_more(what, how);
    *said = true;
}

static void take_waiting(struct notify *n, const struct json *t)
{
    /* Two runs of one workspace share a session; a sandbox's name may be one that an earlier run had. */
    bool other = !span_eq(json_text(t, SPAN("sandbox")), span_str(n->of.sandbox)) ||
                 number(t, SPAN("created_ms")) < n->began_ms;

    if (n->n == NOTIFY_TICKETS_MAX || (other && n->others == OTHERS_SAID)) {
        more(&n->more, n->n == NOTIFY_TICKETS_MAX ? "waits" : "waits from other runs", "approvals list");
        return;
    }
    if (other)
        line_other_waits(t);
    else
        line_waiting(t, n->of.state_dir, n->page);
    n->others += other;
    track(n, t, other, false);
}

/* A ticket as the gateway tells it now. */
static void take(struct notify *n, const struct json *t)
{
    struct span id = json_text(t, SPAN("id"));
    bool waits = span_eq(json_text(t, SPAN("state")), SPAN("pending"));

    if (id.n != ID_TEXT || !of_session(n, t))
        return;
    size_t i = find(n, id);
    if (i == n->n && waits) {
        take_waiting(n, t);
    } else if (i < n->n && !waits && !n->ticket[i].decided) {
        line_decided(t);
        n->ticket[i].decided = true;
    }
    if (n->ending && i < n->n && (waits || span_eq(json_text(t, SPAN("state")), SPAN("approved"))) &&
        (!n->ticket[i].other || number(t, SPAN("repeats")) != n->ticket[i].repeats))
        line_open(t, n->of.own);
}

/* GET, and what `fn` makes of its answer. */
static void look(struct notify *n, const char *path, void (*fn)(struct notify *n, const struct json *answer))
{
    struct dynbuf answer;
    struct arena a;
    struct err e;
    unsigned status;

    arena_init(&a, TREE_BYTES);
    if (api_call(n->of.sock, "GET", path, SPAN_NONE, &status, &answer, &e) == 0 && status == 200)
        fn(n, json_parse(dynbuf_span(&answer), &a));
    dynbuf_free(&answer);
    arena_free(&a);
}

static void look_ticket(struct notify *n, struct span id)
{
    char path[64];
    struct id ok;

    if (id_parse(id, &ok) != 0)
        return;
    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%.*s", SPAN_FMT(id));
    look(n, path, take);
}

static void look_announced(struct notify *n)
{
    for (size_t i = 0; i < n->n; i++)
        if (!n->ticket[i].decided || n->ending)
            look_ticket(n, span_of(n->ticket[i].id, ID_TEXT));
}

static void take_all(struct notify *n, const struct json *answer)
{
    const struct json *list = json_get(answer, SPAN("tickets"));

    for (const struct json *t = list ? list->child : NULL; t; t = t->next)
        if (of_session(n, t)) /* all of it: a row of the list does not say how often it came */
            look_ticket(n, json_text(t, SPAN("id")));
}

/* --- what was refused, or allowed and not sent ------------------------------- */

static struct digest reason_of(const struct json *r)
{
    struct digest_ctx *d = digest_begin();
    struct digest key;

    digest_add_field(d, json_text(r, SPAN("kind")));
    digest_add_field(d, json_text(r, SPAN("code")));
    digest_add_field(d, json_text(json_get(r, SPAN("rule")), SPAN("id")));
    digest_add_field(d, json_text(r, SPAN("host")));
    digest_end(d, &key);
    return key;
}

/* Each reason at each host once. */
static void take_refused(struct notify *n, const struct json *r)
{
    struct digest key = reason_of(r);

    for (size_t i = 0; i < n->refused; i++)
        if (memcmp(&n->said[i], &key, sizeof(key)) == 0)
            return;
    if (n->refused == REFUSED_SAID) {
        more(&n->more_refused, "was refused or not sent", "audit tail");
        return;
    }
    line_refused(r);
    n->said[n->refused] = key;
    n->refused++;
}

/* Of the tickets that were denied, the one with the request that was just refused again. */
static void take_denied(struct notify *n, const struct json *answer)
{
    const struct json *list = json_get(answer, SPAN("tickets"));

    for (const struct json *t = list ? list->child : NULL; t; t = t->next) {
        if (!of_session(n, t) || !span_eq(json_text(t, SPAN("digest")), span_of(n->denied, sizeof(n->denied))))
            continue;
        if (find(n, json_text(t, SPAN("id"))) == n->n && n->n < NOTIFY_TICKETS_MAX &&
            json_text(t, SPAN("id")).n == ID_TEXT) {
            line_still_denied(t);
            track(n, t, false, true);
        }
        return;
    }
}

/* What a ticket's own news tell is not said again; that an earlier denial stands, nothing else tells. */
static void take_denial(struct notify *n, const struct json *r)
{
    static const struct span told[] = {SPAN("held"),     SPAN("answer-kept"),    SPAN("executing"),
                                       SPAN("executed"), SPAN("ticket-expired"), SPAN("ticket-cancelled")};
    struct span code = json_text(r, SPAN("code")), digest = json_text(r, SPAN("request"));

    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        if (span_eq(code, told[i]))
            return;
    if (!span_eq(code, SPAN("ticket-denied"))) {
        take_refused(n, r);
    } else if (digest.n == sizeof(n->denied)) {
        memcpy(n->denied, digest.p, digest.n);
        look(n, "/api/v1/tickets?state=denied&limit=100", take_denied);
    }
}

static void take_record(struct notify *n, const struct json *row)
{
    struct arena a;

    arena_init(&a, API_EVENT_MAX * 4);
    const struct json *r = json_parse(json_text(row, SPAN("json")), &a);
    if (number(row, SPAN("time_ms")) >= n->began_ms &&
        span_eq(json_text(r, SPAN("sandbox")), span_str(n->of.sandbox))) {
        if (span_eq(json_text(r, SPAN("kind")), SPAN("denied")))
            take_denial(n, r);
        else if (span_eq(json_text(r, SPAN("outcome")), SPAN("not-sent")))
            take_refused(n, r);
    }
    n->seen = number(row, SPAN("seq"));
    arena_free(&a);
}

static void take_records(struct notify *n, const struct json *answer)
{
    const struct json *list = json_get(answer, SPAN("audit"));

    for (const struct json *r = list ? list->child : NULL; r; r = r->next)
        take_record(n, r);
}

static void take_head(struct notify *n, const struct json *answer)
{
    uint64_t head = number(answer, SPAN("head"));

    if (head > RECORDS && n->seen < head - RECORDS)
        n->seen = head - RECORDS;
}

/* Of the newest records, what came since the last time. */
static void look_refused(struct notify *n)
{
    char path[96];

    look(n, "/api/v1/audit?limit=1", take_head);
    (void)snprintf(path, sizeof(path), "/api/v1/audit?after=%llu&limit=%d", (unsigned long long)n->seen, RECORDS);
    look(n, path, take_records);
}

static void take_page(struct notify *n, const struct json *answer)
{
    struct span page = json_text(answer, SPAN("page"));

    if (page.n < sizeof(n->page))
        memcpy(n->page, page.p, page.n);
}

/* The stream begins with a greeting: what was there before it is asked for then. */
static int event(void *ctx, const struct api_event *ev)
{
    struct notify *n = ctx;
    struct arena a;

    if (span_eq(ev->name, SPAN("hello"))) {
        look_announced(n);
        look(n, "/api/v1/tickets?state=pending&limit=500", take_all);
        look_refused(n);
    } else if (span_eq(ev->name, SPAN("refused"))) {
        look_refused(n);
    } else if (span_eq(ev->name, SPAN("ticket"))) {
        arena_init(&a, API_EVENT_MAX * 4);
        look_ticket(n, json_text(json_parse(ev->data, &a), SPAN("subject")));
        arena_free(&a);
    }
    return 0;
}

static void __attribute__((noreturn)) watch(struct notify *n, pid_t parent)
{
    static const int keys[] = {SIGINT, SIGQUIT, SIGHUP, SIGTSTP}; /* typed for the command, not for us */
    struct err e;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        (void)signal(keys[i], SIG_IGN);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent || close_range(3, ~0U, 0) != 0)
        _exit(1);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    look(n, "/api/v1/status", take_page);
    while (api_stream(n->of.sock, "/api/v1/events", NULL, event, n, &e) <= 0)
        (void)sleep(AGAIN_S);
    _exit(1);
}

struct notify *notify_begin(const struct notify_of *of)
{
    struct notify *n = mmap(NULL, sizeof(*n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid, self = getpid();

    if (n == MAP_FAILED)
        return NULL;
    n->of = *of;
    n->began_ms = clock_ms(CLOCK_REALTIME);
    pid = fork();
    if (pid == 0)
        watch(n, self);
    n->watcher = pid;
    if (pid > 0)
        return n;
    (void)munmap(n, sizeof(*n));
    return NULL;
}

void notify_end(struct notify **n)
{
    if (*n == NULL)
        return;
    (void)kill((*n)->watcher, SIGKILL);
    (void)waitpid((*n)->watcher, NULL, 0);
    (*n)->ending = true;
    look_announced(*n);
    (void)usleep(RECORDED_US);
    look_refused(*n);
    (void)munmap(*n, sizeof(**n));
    *n = NULL;
}
