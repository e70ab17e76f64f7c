#include "cli/verb.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/text/person.h"
#include "common/text/utf8.h"
#include "common/text/visible.h"

enum { TREE_MAX = 64 * 1024 * 1024, TEXT_MAX = 64 * 1024 * 1024, SOURCE_PATH_MAX = 256, FAIL_ROOM = 3 * PATH_MAX };

int verb_fail(int code, const char *fmt, ...)
{
    char words[FAIL_ROOM] = "";
    struct dynbuf shown;
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    dynbuf_init(&shown, VISIBLE_ESCAPE_MAX * FAIL_ROOM);
    visible_text(&shown, span_str(words), false);
    fprintf(stderr, "countersign: %.*s\n", dynbuf_ok(&shown) ? (int)shown.n : 0, (const char *)shown.p);
    dynbuf_free(&shown);
    return code;
}

int verb_begin(struct gateway_call *g, const struct cli_call *c)
{
    struct err e;

    *g = (struct gateway_call){.json = c->json};
    dynbuf_init(&g->answer, API_ANSWER_MAX);
    arena_init(&g->arena, TREE_MAX);
    return api_socket(c->state_dir, g->sock, &e) == 0 ? CLI_OK : verb_fail(CLI_USAGE, "%s", e.text);
}

void verb_say_restored(void)
{
    uint64_t generation = api_restored();

    if (generation)
        fprintf(
            stderr,
            "countersign: the sandbox was idle: its files were restored, as generation %llu, and nothing that ran "
            "in it before\n",
            (unsigned long long)generation);
    if (api_restored_with_another())
        fprintf(stderr,
                "countersign: its image is another one than it had, which is not there any more: `countersign "
                "sandbox started` says which\n");
}

void verb_end(struct gateway_call *g)
{
    verb_say_restored();
    dynbuf_free(&g->answer);
    arena_free(&g->arena);
}

static void answer_free(struct gateway_call *g)
{
    dynbuf_free(&g->answer);
    arena_free(&g->arena);
    g->tree = NULL;
    g->status = 0;
}

static int answered(struct gateway_call *g, int rc, unsigned want, struct err *e)
{
    if (rc != 0)
        return verb_fail(CLI_STORE, "%s", e->text);
    if (g->status != want) {
        (void)api_explain(g->status, dynbuf_span(&g->answer), e);
        return verb_fail(g->status == 503 ? CLI_STORE : CLI_RUNTIME, "%s", e->text);
    }
    g->tree = json_parse(dynbuf_span(&g->answer), &g->arena);
    return CLI_OK;
}

int verb_ask(struct gateway_call *g, const char *method, const char *path, struct span body, unsigned want)
{
    struct err e;

    answer_free(g);
    return answered(g, api_call(g->sock, method, path, body, &g->status, &g->answer, &e), want, &e);
}

struct waiting {
    const char *doing;
    bool shown;
};

/* On a terminal, over what stood there before. */
static void still_waits(void *ctx, unsigned seconds)
{
    struct waiting *w = ctx;

    if (!isatty(STDERR_FILENO))
        return;
    w->shown = true;
    fprintf(stderr, "\r\033[K%s: %u s", w->doing, seconds);
}

int verb_ask_long(struct gateway_call *g, const char *method, const char *path, struct span body, unsigned want,
                  const char *doing)
{
    struct waiting w = {.doing = doing};
    struct err e;

    answer_free(g);
    int rc = api_call_watched(g->sock, method, path, body, still_waits, &w, &g->status, &g->answer, &e);
    if (w.shown)
        fputs("\r\033[K", stderr);
    return answered(g, rc, want, &e);
}

int verb_check_source(const char *dir, struct span name, struct dynbuf *answer, struct err *e)
{
    char sock[PATH_MAX], path[SOURCE_PATH_MAX];
    unsigned status = 0;
    int n = snprintf(sock, sizeof(sock), "%s/keeper.sock", dir);
    int m = snprintf(path, sizeof(path), "/v1/credentials/%.*s/check", SPAN_FMT(name));

    dynbuf_init(answer, API_ANSWER_MAX);
    if (n <= 0 || (size_t)n >= sizeof(sock) || m <= 0 || (size_t)m >= sizeof(path))
        return err_set(e, "the state directory's path or the credential's name is too long");
    int running = api_running(sock, e);
    if (running == 0)
        return err_set(e, "no gateway runs here, and only its policy says what the source is");
    if (running < 0 || api_call(sock, "POST", path, SPAN_NONE, &status, answer, e) != 0)
        return -1;
    return status >= 400 ? api_explain(status, dynbuf_span(answer), e) : 0;
}

static void print_visible(struct span s, bool lines)
{
    struct dynbuf b;

    dynbuf_init(&b, TEXT_MAX);
    visible_text(&b, s, lines);
    if (!dynbuf_ok(&b))
        fputs("(too long to show)", stdout);
    else if (b.n > 0) /* of nothing there are no bytes to point to */
        (void)fwrite(b.p, 1, b.n, stdout);
    dynbuf_free(&b);
}

void print_text(struct span s)
{
    print_visible(s, false);
}

void print_lines(struct span s)
{
    print_visible(s, true);
}

/* What would be seen as nothing or as something else stands in a text of JSON's, which has an escape for it. */
static void json_escape(struct dynbuf *out, struct span s, size_t n)
{
    uint32_t c = utf8_char(s) == n ? utf8_code(s, n) : 0xfffd;
    if (c >= 0x10000)
        (void)dynbuf_addf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
    else
        (void)dynbuf_addf(out, "\\u%04x", c);
}

void print_json_line(struct span s)
{
    struct dynbuf b;

    dynbuf_init(&b, TEXT_MAX);
    while (isatty(STDOUT_FILENO) && s.n > 0 && dynbuf_ok(&b)) {
        char escape[VISIBLE_ESCAPE_MAX];
        size_t n;
        bool between = s.p[0] == '\n' || s.p[0] == '\t' || s.p[0] == '\r'; /* of values: a text has it escaped */
        if (visible_char(s, &n, escape) == VISIBLE_ESCAPED && !between)
            json_escape(&b, s, n);
        else
            (void)dynbuf_add(&b, span_first(s, n));
        s = span_from(s, n);
    }
    struct span shown = b.n > 0 ? dynbuf_span(&b) : s;
    if (!dynbuf_ok(&b))
        fputs("(too long to show)", stdout);
    else if (shown.n > 0)
        (void)fwrite(shown.p, 1, shown.n, stdout);
    putchar('\n');
    dynbuf_free(&b);
}

void verb_print_answer(const struct gateway_call *g)
{
    print_json_line(dynbuf_span(&g->answer));
}

void print_person(struct span who)
{
    char name[PERSON_NAME_MAX];

    print_text(person_name(who, name));
}

struct span member_text(const struct json *j, const char *key)
{
    const struct json *m = json_get(j, span_str(key));

    return m && (m->type == JSON_STRING || m->type == JSON_NUMBER) ? m->text : SPAN_NONE;
}

uint64_t member_u64(const struct json *j, const char *key)
{
    uint64_t v;
    return json_u64(j, span_str(key), &v) == 0 ? v : 0;
}

const char *age_text(uint64_t now_ms, uint64_t then_ms, char out[32])
{
    static const struct {
        uint64_t s;
        const char *unit;
    } steps[] = {{2 * 86400, "days"}, {2 * 3600, "h"}, {2 * 60, "min"}, {0, "s"}};
    static const unsigned of[] = {86400, 3600, 60, 1};
    uint64_t s = now_ms > then_ms ? (now_ms - then_ms) / 1000 : 0;
    size_t i = 0;

    while (s < steps[i].s)
        i++;
    (void)snprintf(out, 32, "%llu %s", (unsigned long long)(s / of[i]), steps[i].unit);
    return out;
}

const char *time_text(uint64_t ms, char out[32])
{
    time_t t = (time_t)(ms / 1000);
    struct tm tm;

    if (ms == 0 || !localtime_r(&t, &tm) || strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        return "-";
    return out;
}

int verb_program(const char *name, char out[PATH_MAX])
{
    static const char *const places[] = {"", "../libexec/countersign/"};
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *slash;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
        int len = snprintf(out, PATH_MAX, "%.*s/%s%s", (int)(slash - self), self, places[i], name);
        if (len > 0 && len < PATH_MAX && access(out, X_OK) == 0)
            return 0;
    }
    (void)snprintf(out, PATH_MAX, "%s/%s", LIBEXECDIR, name);
    return access(out, X_OK);
}
