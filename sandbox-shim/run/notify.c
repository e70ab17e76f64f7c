#include "sandbox-shim/run/notify.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/control/api.h"
#include "common/id.h"
#include "common/json/json.h"
#include "common/text/person.h"
#include "common/text/visible.h"
#include "common/time/clock.h"

enum {
    SAID_MAX = 16 * 1024,
    TREE_BYTES = 16 * 1024 * 1024,
    SHORT_ID = 10,
    AGAIN_S = 1,
    RECORDS = 200,
    RECORDED_US = 60 * 1000,
    FAILED_SAID = 5
};

/* In memory that both processes see: what the watching one announced, the other asks about at the end. */
struct notify {
    pid_t watcher;
    struct notify_of of;
    uint64_t began_ms, head;
    size_t failed;
    char page[512];
    size_t n;
    bool more, ending;
    struct {
        char id[ID_TEXT + 1];
        bool decided, earlier; /* earlier: another run's, which began before */
        uint64_t repeats;      /* of the request, when it was announced */
    } ticket[NOTIFY_TICKETS_MAX];
};

/* "14:05", or with its day when that is not today's. */
static const char *moment(uint64_t ms, char out[32])
{
    time_t t = (time_t)(ms / 1000), now = time(NULL);
    struct tm tm, today;
    bool ok = localtime_r(&t, &tm) && localtime_r(&now, &today);
    bool same = ok && tm.tm_yday == today.tm_yday && tm.tm_year == today.tm_year;

    if (!ok || strftime(out, 32, same ? "%H:%M" : "%Y-%m-%d %H:%M", &tm) == 0)
        return "-";
    return out;
}

static uint64_t number(const struct json *j, struct span key)
{
    uint64_t v;
    return json_u64(j, key, &v) == 0 ? v : 0;
}

/* One write: lines of several processes do not mix. A terminal may be in raw mode, and a line end alone not enough.
 */
static void say(struct dynbuf *words)
{
    if (isatty(STDERR_FILENO))
        (void)dynbuf_add_byte(words, '\r');
    (void)dynbuf_add_byte(words, '\n');
    if (dynbuf_ok(words) && write(STDERR_FILENO, words->p, words->n) < 0)
        return; /* nobody looks any more */
    dynbuf_reset(words);
}

static void say_waiting(const struct notify *n, const struct json *t, bool earlier)
{
    struct span id = json_text(t, SPAN("id")), summary = json_text(t, SPAN("summary"));
    struct dynbuf words;
    char when[32];

    dynbuf_init(&words, SAID_MAX);
    (void)dynbuf_add(&words, SPAN("countersign: waits for approval"));
    if (earlier)
        (void)dynbuf_addf(&words, ", from another run (%s)", moment(number(t, SPAN("created_ms")), when));
    (void)dynbuf_add(&words, SPAN(": "));
    if (summary.n > 0) {
        visible_text(&words, summary, false);
    } else {
        visible_text(&words, json_text(t, SPAN("method")), false);
        (void)dynbuf_add_byte(&words, ' ');
        visible_text(&words, json_text(t, SPAN("host")), false);
        visible_text(&words, json_text(t, SPAN("path")), false);
    }
    say(&words);
    (void)dynbuf_addf(&words, "countersign:   countersign approvals approve %.*s",
                      SPAN_FMT(span_first(id, SHORT_ID)));
    if (n->of.state_dir)
        (void)dynbuf_addf(&words, " --state-dir %s", n->of.state_dir);
    say(&words);
    if (n->page[0]) {
        (void)dynbuf_addf(&words, "countersign:   %s/tickets/%.*s", n->page, SPAN_FMT(id));
        say(&words);
    }
    dynbuf_free(&words);
}

/* "approved by maria", "denied by maria: not on a Friday", "expired" */
static void say_decided(const struct json *t)
{
    struct span state = json_text(t, SPAN("state")), by = json_text(t, SPAN("decided_by"));
    struct span reason = json_text(t, SPAN("decided_reason"));
    bool denied = span_eq(state, SPAN("denied"));
    char name[PERSON_NAME_MAX];
    struct dynbuf words;

    dynbuf_init(&words, SAID_MAX);
    (void)dynbuf_addf(&words, "countersign: %.*s ", SPAN_FMT(span_first(json_text(t, SPAN("id")), SHORT_ID)));
    visible_text(&words, by.n && !denied ? SPAN("approved") : state, false);
    if (by.n) {
        (void)dynbuf_add(&words, SPAN(" by "));
        visible_text(&words, person_name(by, name), false);
    }
    if (reason.n) {
        (void)dynbuf_add(&words, SPAN(": "));
        visible_text(&words, reason, false);
    }
    say(&words);
    dynbuf_free(&words);
}

/* The command has ended, and its request was not sent: what is left to do, and until when. */
static void say_open(const struct notify *n, const struct json *t)
{
    bool approved = span_eq(json_text(t, SPAN("state")), SPAN("approved"));
    struct dynbuf words;
    char until[32];

    dynbuf_init(&words, SAID_MAX);
    (void)dynbuf_addf(&words, "countersign: %.*s ", SPAN_FMT(span_first(json_text(t, SPAN("id")), SHORT_ID)));
    (void)dynbuf_addf(&words,
                      approved    ? "is approved and not sent yet: repeat the request, or run this again, before %s"
                      : n->of.own ? "is open until %s: run this again, and approve it while it runs"
                                  : "is open until %s: once it is approved, repeat the request or run this again",
                      moment(number(t, SPAN("expires_ms")), until));
    say(&words);
    dynbuf_free(&words);
}

static void take_waiting(struct notify *n, const struct json *t, struct span id)
{
    if (n->n == NOTIFY_TICKETS_MAX) {
        if (!n->more)
            (void)dprintf(STDERR_FILENO, "countersign: more waits; see countersign approvals list\r\n");
        n->more = true;
        return;
    }
    memcpy(n->ticket[n->n].id, id.p, ID_TEXT); /* counted last: the other process never sees half of one */
    n->ticket[n->n].earlier = number(t, SPAN("created_ms")) < n->began_ms;
    n->ticket[n->n].repeats = number(t, SPAN("repeats"));
    say_waiting(n, t, n->ticket[n->n++].earlier);
}

/* A ticket as the gateway tells it now. */
static void take(struct notify *n, const struct json *t)
{
    struct span id = json_text(t, SPAN("id"));
    bool waits = span_eq(json_text(t, SPAN("state")), SPAN("pending"));
    size_t i = 0;

    if (id.n != ID_TEXT || !span_eq(json_text(t, SPAN("session")), span_str(n->of.session)))
        return;
    while (i < n->n && !span_eq(span_of(n->ticket[i].id, ID_TEXT), id))
        i++;
    if (i == n->n && waits) {
        take_waiting(n, t, id);
    } else if (i < n->n && !waits && !n->ticket[i].decided) {
        n->ticket[i].decided = true;
        say_decided(t);
    }
    if (n->ending && i < n->n && (waits || span_eq(json_text(t, SPAN("state")), SPAN("approved"))) &&
        (!n->ticket[i].earlier || number(t, SPAN("repeats")) != n->ticket[i].repeats))
        say_open(n, t);
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
        if (span_eq(json_text(t, SPAN("session")), span_str(n->of.session)))
            look_ticket(n,
                        json_text(t, SPAN("id"))); /* all of it: a row of the list does not say how often it came */
}

/* What was allowed and could not be sent, with the finer reason that its client is not told. */
static void take_record(struct notify *n, const struct json *r)
{
    struct arena a;
    struct dynbuf words;

    arena_init(&a, API_EVENT_MAX * 4);
    dynbuf_init(&words, SAID_MAX);
    const struct json *j = json_parse(json_text(r, SPAN("json")), &a);
    if (number(r, SPAN("time_ms")) >= n->began_ms && span_eq(json_text(j, SPAN("outcome")), SPAN("not-sent")) &&
        span_eq(json_text(j, SPAN("sandbox")), span_str(n->of.sandbox)) && n->failed++ < FAILED_SAID) {
        (void)dynbuf_add(&words, SPAN("countersign: not sent: "));
        visible_text(&words, json_text(j, SPAN("method")), false);
        (void)dynbuf_add_byte(&words, ' ');
        visible_text(&words, json_text(j, SPAN("host")), false);
        (void)dynbuf_addf(&words, ":%llu", (unsigned long long)number(j, SPAN("port")));
        visible_text(&words, json_text(j, SPAN("path")), false);
        (void)dynbuf_add(&words, SPAN(": "));
        visible_text(&words, json_text(j, SPAN("code")), false);
        say(&words);
    }
    dynbuf_free(&words);
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
    n->head = number(answer, SPAN("head"));
}

/* Of the newest records, after the ledger has written those that nobody waits for. */
static void look_failed(struct notify *n)
{
    char path[96];

    (void)usleep(RECORDED_US);
    look(n, "/api/v1/audit?limit=1", take_head);
    (void)snprintf(path, sizeof(path), "/api/v1/audit?after=%llu&limit=%d",
                   (unsigned long long)(n->head > RECORDS ? n->head - RECORDS : 0), RECORDS);
    look(n, path, take_records);
    if (n->failed > FAILED_SAID)
        (void)dprintf(STDERR_FILENO, "countersign: more was not sent; see countersign audit tail\r\n");
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
    look_failed(*n);
    (void)munmap(*n, sizeof(**n));
    *n = NULL;
}
