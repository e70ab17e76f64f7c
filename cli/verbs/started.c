/* countersign sandbox start|started|exec|destroy: sandboxes that the gateway itself starts. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/verb.h"
#include "common/text/utf8.h"
#include "common/text/visible.h"
#include "policy/load/read/scalar.h"
#include "sandbox-shim/plan/limits.h"

enum {
    PATH_ROOM = 256,
    NAME_MAX_BYTES = 63,
    BODY_MAX = 64 * 1024,
    ENV_MAX = CLI_GIVEN_MAX,
    EXIT_TIMED_OUT = 124,
    EXIT_LOST = 125,
    EXIT_SIGNAL = 128
};

static const char *name_wrong(const char *s)
{
    size_t n = strlen(s);
    bool ok = n > 0 && n <= NAME_MAX_BYTES && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-._") == n;
    return ok ? NULL : "that is not a sandbox's name";
}

/* A length of time in whole seconds, as a member of this name. */
static int put_seconds(struct jsonw *w, const struct cli_call *c, const char *option)
{
    const char *value = cli_value(c, option);
    uint64_t ms = 0;
    const char *wrong = value ? scalar_time(span_str(value), &ms) : NULL;

    if (wrong || (value && ms < 1000))
        return verb_fail(CLI_USAGE, "--%s %s", option, wrong ? wrong : "is at least a second");
    if (value)
        jsonw_kv_u64(w, option, ms / 1000);
    return CLI_OK;
}

static int put_bytes(struct jsonw *w, const struct cli_call *c, const char *option, unsigned least_mib)
{
    const char *value = cli_value(c, option);
    char name[32];
    uint64_t bytes;
    struct err e;

    (void)snprintf(name, sizeof(name), "--%s", option);
    if (!value)
        return CLI_OK;
    if (limits_bytes(&bytes, name, value, least_mib, &e) != 0)
        return verb_fail(CLI_USAGE, "%s", e.text);
    jsonw_kv_u64(w, option, bytes);
    return CLI_OK;
}

/* --- start ----------------------------------------------------------------------- */

static int put_counts(struct jsonw *w, const struct cli_call *c)
{
    const char *pids = cli_value(c, "pids"), *cpus = cli_value(c, "cpus"), *files = cli_value(c, "files");
    struct limits l = {0};
    struct err e;
    uint64_t n;

    if ((pids && limits_pids(&l, pids, &e) != 0) || (cpus && limits_cpus(&l, cpus, &e) != 0))
        return verb_fail(CLI_USAGE, "%s", e.text);
    if (files && span_u64(span_str(files), 65536, &n) != 0)
        return verb_fail(CLI_USAGE, "--files %s is not a number up to 65536", files);
    if (pids)
        jsonw_kv_u64(w, "pids", l.pids);
    if (cpus)
        jsonw_kv_u64(w, "cpu_percent", l.cpu_percent);
    if (files)
        jsonw_kv_u64(w, "files", n);
    return CLI_OK;
}

static int start_request(const struct cli_call *c, struct dynbuf *body)
{
    static const char *const texts[] = {"limits", "session"};
    struct jsonw w;

    jsonw_begin(&w, body);
    jsonw_object(&w);
    if (c->nwords)
        jsonw_kv(&w, "name", span_str(c->word[0]));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (cli_value(c, texts[i]))
            jsonw_kv(&w, texts[i], span_str(cli_value(c, texts[i])));
    int rc = put_bytes(&w, c, "memory", 64);
    if (rc == CLI_OK)
        rc = put_bytes(&w, c, "disk", 1);
    if (rc == CLI_OK)
        rc = put_counts(&w, c);
    if (rc == CLI_OK)
        rc = put_seconds(&w, c, "timeout");
    jsonw_end_object(&w);
    return rc;
}

int sandbox_start(const struct cli_call *c)
{
    struct gateway_call g;
    struct dynbuf body;
    const char *wrong = c->nwords ? name_wrong(c->word[0]) : NULL;
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, BODY_MAX);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    if (rc == CLI_OK)
        rc = start_request(c, &body);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "POST", "/api/v1/sandboxes/start", dynbuf_span(&body), 201);
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else if (rc == CLI_OK) {
        print_text(member_text(g.tree, "name"));
        putchar('\n');
        fprintf(stderr, "limits: %.*s, held by %.*s\n", SPAN_FMT(member_text(g.tree, "limits")),
                SPAN_FMT(member_text(g.tree, "held_by")));
    }
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

/* --- those that run ----------------------------------------------------------------- */

static void print_started(const struct json *r)
{
    print_text(member_text(r, "name"));
    printf("  generation %llu  %llu s, %llu s left  %llu commands  %llu MiB, %llu processes  ",
           (unsigned long long)member_u64(r, "generation"), (unsigned long long)member_u64(r, "age_ms") / 1000,
           (unsigned long long)member_u64(r, "left_ms") / 1000, (unsigned long long)member_u64(r, "commands"),
           (unsigned long long)member_u64(r, "memory") >> 20, (unsigned long long)member_u64(r, "pids"));
    print_text(member_text(r, "limits"));
    fputs(", ", stdout);
    print_text(member_text(r, "held_by"));
    putchar('\n');
}

int sandbox_started(const struct cli_call *c)
{
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", "/api/v1/sandboxes/started", SPAN_NONE, 200);
    const struct json *rows = rc == CLI_OK ? json_get(g.tree, SPAN("started")) : NULL;
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else
        for (const struct json *r = rows ? rows->child : NULL; r; r = r->next)
            print_started(r);
    verb_end(&g);
    return rc;
}

/* --- a command ------------------------------------------------------------------------ */

struct follow {
    bool json;
    int status; /* -1: its end was not said yet */
};

static void say_output(bool err, struct span data)
{
    uint8_t *bytes = malloc(data.n);
    struct dynbuf shown;
    size_t n;

    if (bytes && base64_decode(data, bytes, &n) == 0) {
        FILE *to = err ? stderr : stdout;
        dynbuf_init(&shown, 8 * API_EVENT_MAX);
        if (isatty(fileno(to))) { /* it may be meant for the terminal, not for who reads it */
            visible_text(&shown, span_of(bytes, n), true);
            (void)fwrite(shown.p, 1, dynbuf_ok(&shown) ? shown.n : 0, to);
        } else {
            (void)fwrite(bytes, 1, n, to);
        }
        (void)fflush(to);
        dynbuf_free(&shown);
    }
    free(bytes);
}

static void say_exit(struct follow *f, struct span data)
{
    struct arena a;

    arena_init(&a, API_EVENT_MAX);
    const struct json *j = json_parse(data, &a);
    struct span how = member_text(j, "how"), why = member_text(j, "why");
    if (span_eq(how, SPAN("exited")))
        f->status = (int)member_u64(j, "status") & 0xff;
    else if (span_eq(how, SPAN("signalled")))
        f->status = EXIT_SIGNAL + ((int)member_u64(j, "signal") & 0x7f);
    else
        f->status = span_eq(how, SPAN("timed-out")) ? EXIT_TIMED_OUT : EXIT_LOST;
    if (member_u64(j, "cut"))
        fprintf(stderr, "countersign: %llu bytes of its output were dropped (--output)\n",
                (unsigned long long)member_u64(j, "cut"));
    if (f->status == EXIT_TIMED_OUT)
        fputs("countersign: its time was over (--timeout)\n", stderr);
    if (why.n) {
        struct dynbuf shown;
        dynbuf_init(&shown, API_EVENT_MAX);
        visible_text(&shown, why, false);
        fprintf(stderr, "countersign: %.*s\n", dynbuf_ok(&shown) ? (int)shown.n : 0, (const char *)shown.p);
        dynbuf_free(&shown);
    }
    arena_free(&a);
}

static int on_event(void *ctx, const struct api_event *ev)
{
    struct follow *f = ctx;
    bool out = span_eq(ev->name, SPAN("stdout")), err = span_eq(ev->name, SPAN("stderr"));
    bool end = span_eq(ev->name, SPAN("exit"));

    if (f->json && (out || err || end))
        printf("{\"event\":\"%.*s\",\"data\":%s%.*s%s}\n", SPAN_FMT(ev->name), end ? "" : "\"", SPAN_FMT(ev->data),
               end ? "" : "\"");
    else if (out || err)
        say_output(err, ev->data);
    if (end)
        say_exit(f, ev->data);
    return ferror(stdout) ? 1 : 0; /* nobody reads it any more: the command is killed */
}

/* It goes as JSON, in which another byte would become another character, and a name that of another file. */
static int put_word(struct jsonw *w, const char *word)
{
    struct span s = span_str(word);

    jsonw_string(w, s);
    return utf8_run(s) == s.n ? CLI_OK
                              : verb_fail(CLI_USAGE, "a command is told to a sandbox as UTF-8, and a word of it is "
                                                     "not; a shell inside can make such bytes with printf");
}

static int exec_request(const struct cli_call *c, struct dynbuf *body)
{
    const char *variable[ENV_MAX], *dir = cli_value(c, "dir");
    size_t n = cli_values(c, "env", variable, ENV_MAX);
    int rc = CLI_OK;
    struct jsonw w;

    jsonw_begin(&w, body);
    jsonw_object(&w);
    jsonw_kv_array(&w, "argv");
    for (size_t i = 1; rc == CLI_OK && i < c->nwords; i++)
        rc = put_word(&w, c->word[i]);
    jsonw_end_array(&w);
    jsonw_kv_array(&w, "env");
    for (size_t i = 0; rc == CLI_OK && i < n; i++)
        rc = put_word(&w, variable[i]);
    jsonw_end_array(&w);
    if (rc == CLI_OK && dir) {
        jsonw_key(&w, "dir");
        rc = put_word(&w, dir);
    }
    if (rc == CLI_OK)
        rc = put_seconds(&w, c, "timeout");
    if (rc == CLI_OK)
        rc = put_bytes(&w, c, "output", 0);
    jsonw_end_object(&w);
    return rc == CLI_OK && !dynbuf_ok(body) ? verb_fail(CLI_USAGE, "the command is longer than 64 KiB") : rc;
}

int sandbox_exec(const struct cli_call *c)
{
    struct follow f = {.json = c->json, .status = -1};
    const char *wrong = name_wrong(c->word[0]);
    struct gateway_call g;
    struct dynbuf body;
    char path[PATH_ROOM];
    struct err e;
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, BODY_MAX);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    if (rc == CLI_OK)
        rc = exec_request(c, &body);
    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/exec", c->word[0]);
    if (rc == CLI_OK && api_stream_of(g.sock, path, dynbuf_span(&body), on_event, &f, &e) < 0)
        rc = verb_fail(EXIT_LOST, "%s", e.text);
    else if (rc == CLI_OK)
        rc = f.status >= 0 ? f.status : verb_fail(EXIT_LOST, "the gateway ended before the command");
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

/* --- an end --------------------------------------------------------------------------- */

int sandbox_destroy(const struct cli_call *c)
{
    const char *wrong = name_wrong(c->word[0]);
    struct gateway_call g;
    char path[PATH_ROOM];
    int rc = verb_begin(&g, c);

    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/destroy", c->word[0]);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "POST", path, SPAN_NONE, 204);
    verb_end(&g);
    return rc;
}
