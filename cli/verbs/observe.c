/* countersign log, trace, replay-exchange: what the gateway writes down of itself, and what became of one exchange */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/verb.h"
#include "policy/load/read/scalar.h"

enum { REQUEST_MAX = 4096 };

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

static int print_trace(const struct json *j)
{
    const struct json *steps = json_get(j, SPAN("steps"));
    char since[32];

    if (!steps || !steps->child)
        return verb_fail(CLI_RUNTIME, "no role remembers this exchange: it was long ago, or never");
    fputs("exchange  ", stdout);
    print_text(member_text(j, "exchange"));
    printf("\nbegan     %s\n", time_text(member_u64(j, "time_ms"), since));
    table_head("      \302\265s  ROLE      STEP             RESULT");
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
        rc = print_trace(g.tree);
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
