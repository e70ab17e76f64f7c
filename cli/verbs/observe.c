/* countersign log, trace, replay-exchange: what the gateway writes down of itself, and what became of one exchange */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/verb.h"
#include "common/control/audit_words.h"
#include "policy/load/read/scalar.h"

enum { REQUEST_MAX = 4096, RECORDS = 500, RECORD_TREE = 4 * 1024 * 1024 };

static void print_log(const struct json *j)
{
    char until[32];

    fputs("level     ", stdout);
    print_text(member_text(j, "level"));
    if (member_text(j, "trace").n) {
        fputs("\nfollows   ", stdout);
        print_text(member_text(j, "trace"));
    }
    if (member_text(j, "recording").n)
        fputs("\nrecords   what the judge hears and says of them, in the state directory", stdout);
    printf("\nwritten   to standard error of the gateway (pid %llu): ", (unsigned long long)member_u64(j, "pid"));
    struct span to = member_text(j, "to");
    print_text(span_starts(to, SPAN("/"))         ? to
               : span_starts(to, SPAN("socket:")) ? SPAN("a socket; of a service, its journal")
                                                  : SPAN("a pipe"));
    if (member_u64(j, "until_ms"))
        printf("\nuntil     %s", time_text(member_u64(j, "until_ms"), until));
    putchar('\n');
}

/* CLI_OK: the body is made; it is empty when nothing is to be changed. */
static int log_request(const struct cli_call *c, struct dynbuf *body)
{
    const char *level = cli_value(c, "level"), *trace = cli_value(c, "trace"), *how_long = cli_value(c, "for");
    uint64_t ms = 0;
    const char *wrong = how_long ? scalar_time(span_str(how_long), &ms) : NULL;
    struct jsonw w;

    if (wrong)
        return verb_fail(CLI_USAGE, "--for %s", wrong);
    if (how_long && !level && !trace)
        return verb_fail(CLI_USAGE, "--for needs --level or --trace");
    if (cli_flag(c, "record") && !trace)
        return verb_fail(CLI_USAGE, "--record needs --trace");
    if (!level && !trace)
        return CLI_OK;
    jsonw_begin(&w, body);
    jsonw_object(&w);
    if (level)
        jsonw_kv(&w, "level", span_str(level));
    if (trace)
        jsonw_kv(&w, "trace", span_str(trace));
    if (cli_flag(c, "record"))
        jsonw_kv_bool(&w, "record", true);
    if (how_long)
        jsonw_kv_u64(&w, "for_ms", ms);
    jsonw_end_object(&w);
    return dynbuf_ok(body) ? CLI_OK : verb_fail(CLI_USAGE, "that is too long");
}

int log_main(const struct cli_call *c)
{
    struct gateway_call g;
    struct dynbuf body;
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, REQUEST_MAX);
    if (rc == CLI_OK)
        rc = log_request(c, &body);
    if (rc == CLI_OK)
        rc = verb_ask(&g, body.n ? "POST" : "GET", "/api/v1/log", dynbuf_span(&body), 200);
    if (rc == CLI_OK && c->json)
        verb_print_answer(&g);
    else if (rc == CLI_OK)
        print_log(g.tree);
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

static void print_missing(const struct json *roles)
{
    for (const struct json *r = roles ? roles->child : NULL; r; r = r->next) {
        fputs("The ", stdout);
        print_text(r->text);
        fputs(span_eq(r->text, SPAN("front")) ? " of that sandbox has ended since; what it did is forgotten.\n"
                                              : " did not answer.\n",
              stdout);
    }
}

static void print_padded(struct span s, size_t width)
{
    print_text(s);
    printf("%*s", s.n < width ? (int)(width - s.n) : 1, "");
}

/* "12 us", "3.4 ms", "50.31 s" */
static const char *duration(uint64_t us, char out[32])
{
    if (us < 1000)
        (void)snprintf(out, 32, "%llu \302\265s", (unsigned long long)us);
    else
        (void)snprintf(out, 32, us < 1000000 ? "%.1f ms" : "%.2f s", (double)us / (us < 1000000 ? 1e3 : 1e6));
    return out;
}

/* How long it took, and after which step nothing happened for longest. */
static void print_summary(const struct json *steps)
{
    const struct json *slow = NULL, *last = NULL;
    uint64_t most = 0, us = 0;
    char took[32], longest[32];

    for (const struct json *s = steps->child; s; last = s, s = s->next) {
        uint64_t gap = member_u64(s, "us") - us;
        us += gap;
        if (last && gap > most) {
            most = gap;
            slow = last;
        }
    }
    printf("took      %s, %zu steps", duration(us, took), steps->count);
    if (slow) {
        printf("; the longest pause, %s, after: ", duration(most, longest));
        print_text(member_text(slow, "role"));
        putchar(' ');
        print_text(member_text(slow, "step"));
        putchar(' ');
        print_text(member_text(slow, "result"));
    }
    putchar('\n');
}

/* What was asked and what came of it: the newest record of the exchange, when it is among the last ones. */
static void print_recorded(const struct cli_call *c, struct span exchange)
{
    struct gateway_call g;
    struct dynbuf words, target;
    struct arena a;
    char path[64];
    int rc = verb_begin(&g, c);

    dynbuf_init(&words, REQUEST_MAX);
    dynbuf_init(&target, REQUEST_MAX);
    arena_init(&a, RECORD_TREE);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", "/api/v1/audit?limit=1", SPAN_NONE, 200);
    uint64_t head = rc == CLI_OK ? member_u64(g.tree, "head") : 0;
    (void)snprintf(path, sizeof(path), "/api/v1/audit?after=%llu&limit=%d",
                   (unsigned long long)(head > RECORDS ? head - RECORDS : 0), RECORDS);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", path, SPAN_NONE, 200);
    const struct json *rows = rc == CLI_OK ? json_get(g.tree, SPAN("audit")) : NULL;
    for (const struct json *r = rows ? rows->child : NULL; r; r = r->next) {
        const struct json *record =
            span_eq(member_text(r, "exchange"), exchange) ? json_parse(member_text(r, "json"), &a) : NULL;
        if (!record || !audit_is_news(record))
            continue;
        dynbuf_reset(&words);
        audit_words(record, &words);
        if (target.n == 0)
            audit_target(record, &target);
    }
    if (words.n) {
        fputs("request   ", stdout);
        print_text(dynbuf_span(&target));
        fputs("\nrecorded  ", stdout);
        print_text(dynbuf_span(&words));
        putchar('\n');
    }
    dynbuf_free(&words);
    dynbuf_free(&target);
    arena_free(&a);
    verb_end(&g);
}

static int print_trace(const struct cli_call *c, const struct json *j)
{
    const struct json *steps = json_get(j, SPAN("steps"));
    char since[32];

    if (!steps || !steps->child)
        return verb_fail(CLI_RUNTIME, "no role remembers this exchange: it was long ago, or never");
    fputs("exchange  ", stdout);
    print_text(member_text(j, "exchange"));
    putchar('\n');
    print_recorded(c, member_text(j, "exchange"));
    printf("began     %s\n", time_text(member_u64(j, "time_ms"), since));
    print_summary(steps);
    puts("\n      \302\265s  ROLE      STEP             RESULT");
    for (const struct json *s = steps->child; s; s = s->next) {
        printf("%8llu  ", (unsigned long long)member_u64(s, "us"));
        print_padded(member_text(s, "role"), 10);
        print_padded(member_text(s, "step"), 17);
        print_text(member_text(s, "result"));
        putchar('\n');
    }
    print_missing(json_get(j, SPAN("missing")));
    return CLI_OK;
}

/* Letters of an id only: it becomes part of a path, or a program's argument. */
static bool is_exchange(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return n > 0 && n < 128 && s[n] == '\0' && s[0] != '-';
}

int trace_main(const struct cli_call *c)
{
    struct gateway_call g;
    const struct json *ticket;
    char path[256], id[ID_TEXT + 1];
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK && !is_exchange(c->word[0]))
        rc = verb_fail(CLI_USAGE, "that is no exchange: its id is in the audit and the log");
    bool number =
        strchr(c->word[0], '-') || (strlen(c->word[0]) > 12 && !c->word[0][strspn(c->word[0], "0123456789")]);
    if (rc == CLI_OK && !number)
        rc = verb_ticket(&g, c->word[0], id, &ticket);
    (void)snprintf(path, sizeof(path), "/api/v1/trace/%.127s", number ? c->word[0] : id);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", path, SPAN_NONE, 200);
    if (rc == CLI_OK && c->json)
        verb_print_answer(&g);
    else if (rc == CLI_OK)
        rc = print_trace(c, g.tree);
    verb_end(&g);
    return rc;
}

/* The judge itself, with what it needs of the operator: the file, which it reads before it is confined. */
int replay_exchange_main(const struct cli_call *c)
{
    char dir[PATH_MAX], judge[PATH_MAX], file[PATH_MAX + 16], args[] = "--args", replay[] = "--replay", id[128];
    const char *from = cli_value(c, "from"), *debugger = cli_value(c, "debugger"), *dash;
    struct err e;

    if (!is_exchange(c->word[0]))
        return verb_fail(CLI_USAGE, "that is no exchange: its id is in the audit and the log");
    if (!from && api_state_dir(c->state_dir, dir, &e) != 0)
        return verb_fail(CLI_RUNTIME, "%s", e.text);
    if (verb_program("countersign-judge", judge) != 0)
        return verb_fail(CLI_RUNTIME, "countersign-judge is not installed: %s: %s", judge, strerror(errno));
    (void)snprintf(file, sizeof(file), "%s%s", from ? from : dir, from ? "" : "/recording");
    if (access(file, R_OK) != 0)
        return verb_fail(CLI_RUNTIME, "%s: %s; a recording is begun with `countersign log --trace NAME --record`",
                         file, strerror(errno));
    dash = strrchr(c->word[0], '-');
    (void)snprintf(id, sizeof(id), "%s", dash ? dash + 1 : c->word[0]);
    char *alone[] = {judge, replay, file, id, NULL};
    char *under[] = {(char *)(uintptr_t)debugger, args, judge, replay, file, id, NULL};
    (void)execvp(debugger ? debugger : judge, debugger ? under : alone);
    return verb_fail(CLI_RUNTIME, "cannot start %s: %s", debugger ? debugger : judge, strerror(errno));
}
