/* The answer: for people, and as JSON. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/time/clock.h"
#include "common/json/json.h"
#include "cli/policy/diff/diff_parts.h"
#include "cli/policy/show.h"
#include "cli/verb.h"

enum { WORDS_MAX = 256, COMMAND_MAX = 1 << 20 };

static const char *const aspect_names[ASPECTS] = {"verdict", "credential", "approvers", "reason",    "within",
                                                  "limits",  "over",       "messages",  "protocols", "counted-anew"};
static const char *const aspect_words[ASPECTS] = {"the verdict",
                                                  "the credential",
                                                  "who approves",
                                                  "whether a reason is asked",
                                                  "how long a ticket lives",
                                                  "the limits",
                                                  "what comes of one past a limit",
                                                  "what may be sent after the upgrade",
                                                  "which subprotocols may be offered",
                                                  "what was used of the limits"};

/* ---- the command that shows it again ---- */

struct command {
    struct dynbuf text; /* words, each ended by a NUL */
};

static void word(struct command *c, struct span s)
{
    (void)dynbuf_add(&c->text, s);
    (void)dynbuf_add_byte(&c->text, 0);
}

static void words(struct command *c, const char *option, const char *fmt, ...) PRINTF(3, 4);
static void words(struct command *c, const char *option, const char *fmt, ...)
{
    char text[8192];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    word(c, span_str(option));
    word(c, n < 0 || (size_t)n >= sizeof(text) ? SPAN("") : span_of(text, (size_t)n));
}

static void add_url(struct command *c, const struct witness *w)
{
    bool https = span_eq(w->scheme, SPAN("https"));
    struct span scheme = w->upgrade ? (https ? SPAN("wss") : SPAN("ws")) : w->scheme;
    struct dynbuf *b = &c->text;
    (void)dynbuf_add(b, scheme);
    (void)dynbuf_add(b, SPAN("://"));
    (void)dynbuf_add(b, w->host);
    if (w->port != (https ? 443 : 80))
        (void)dynbuf_addf(b, ":%u", w->port);
    (void)dynbuf_add(b, w->path);
    if (w->has_query)
        (void)dynbuf_add_byte(b, '?');
    word(c, w->query);
}

static void add_time(struct command *c, uint64_t now_ms)
{
    char text[UTC_TEXT];
    (void)utc_text(now_ms, false, text);
    word(c, SPAN("--at"));
    word(c, span_str(text));
}

static const char *ref_verb(const struct git_ref *r)
{
    return r->old_id.n && r->old_id.p[0] == '0'   ? "create"
           : r->new_id.n && r->new_id.p[0] == '0' ? "delete"
                                                  : "update";
}

/* file: where the body is written, NULL for its text on the line. */
static void command_of(struct command *c, const struct witness *w, const struct diff_args *a, unsigned side,
                       const char *file)
{
    dynbuf_init(&c->text, COMMAND_MAX);
    static const char *const start[] = {"countersign", "policy", "explain"};
    for (size_t i = 0; i < 3; i++)
        word(c, span_str(start[i]));
    if (cli_value(a->call, "packs"))
        words(c, "--packs", "%s", cli_value(a->call, "packs"));
    if (a->floors[side])
        words(c, "--floors", "%s", a->floors[side]);
    if (!span_eq(w->sandbox, SPAN("sandbox")))
        words(c, "--as", "%.*s", SPAN_FMT(w->sandbox));
    for (size_t i = 0; i < w->nlabels; i++)
        words(c, "--label", "%.*s=%.*s", SPAN_FMT(w->labels[i].key), SPAN_FMT(w->labels[i].value));
    for (size_t i = 0; i < w->nfields; i++)
        words(c, "--header", "%.*s: %.*s", SPAN_FMT(w->fields[i].name), SPAN_FMT(w->fields[i].value));
    if (w->now_ms)
        add_time(c, w->now_ms);
    if (w->ref)
        words(c, "--ref", "%s %.*s", ref_verb(&w->push), SPAN_FMT(w->push.name));
    else if (w->has_body && file)
        words(c, "--body", "%s", file);
    else if (w->has_body) {
        word(c, SPAN("--data"));
        word(c, w->body);
    }
    word(c, w->method);
    add_url(c, w);
    for (size_t i = 0; i < a->npaths[side]; i++)
        word(c, span_str(a->paths[side][i]));
}

static bool plain_word(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t low = s.p[i] | 0x20;
        if (!(low >= 'a' && low <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') &&
            span_index(SPAN("-_./:=@%+,"), s.p[i]) == 10)
            return false;
    }
    return s.n > 0;
}

/* As a shell takes it; foreign bytes that could move a cursor are written in its own escapes. */
static void print_word(struct span s)
{
    bool odd = false;
    for (size_t i = 0; i < s.n; i++)
        odd |= s.p[i] < 0x20 || s.p[i] >= 0x7f;
    if (plain_word(s)) {
        printf("%.*s", SPAN_FMT(s));
        return;
    }
    fputs(odd ? "$'" : "'", stdout);
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < 0x20 || s.p[i] >= 0x7f)
            printf("\\x%02x", s.p[i]);
        else if (s.p[i] == '\'')
            fputs(odd ? "\\'" : "'\\''", stdout);
        else if (odd && s.p[i] == '\\')
            fputs("\\\\", stdout);
        else
            putchar(s.p[i]);
    }
    putchar('\'');
}

static void print_command(const struct command *c)
{
    struct span rest = dynbuf_span(&c->text), one;
    for (bool first = true; rest.n; first = false) {
        (void)span_cut(rest, 0, &one, &rest);
        if (!first)
            putchar(' ');
        print_word(one);
    }
    putchar('\n');
}

/* ---- for people ---- */

static void print_decided(const struct decided *d)
{
    if (d->rule.n == 0) {
        print_text(d->code);
        return;
    }
    if (!span_eq(d->code, SPAN("rule"))) {
        print_text(d->code);
        putchar(' ');
    } else {
        fputs("rule ", stdout);
    }
    print_text(d->rule);
    fputs(", ", stdout);
    print_text(d->file);
    printf(":%u", d->line);
}

static const char *const kinds[] = {"note", "narrowed", "changed", "widened"};
static const char *const kinds_loud[] = {"NOTE", "NARROWED", "CHANGED", "WIDENED"};

static void print_aspects(const struct drift *c)
{
    uint32_t all = c->widened | c->narrowed | c->changed;
    const char *between = "";
    for (unsigned i = 0; i < ASPECTS; i++)
        if (all & 1u << i) {
            printf("%s%s (%s)", between, aspect_words[i],
                   1u << i == ASPECT_COUNTED ? "counted anew"
                   : c->widened & 1u << i    ? "looser"
                   : c->changed & 1u << i    ? "another"
                                             : "stricter");
            between = ", ";
        }
}

/* Bodies that no command line holds are written to files. */
static const char *body_file(const struct diff_args *a, size_t i, char *path, size_t max)
{
    int n = a->witness ? snprintf(path, max, "%s/%zu.body", a->witness, i + 1) : -1;
    return n > 0 && (size_t)n < max ? path : NULL;
}

static void print_entry(const struct diff *d, size_t i, const struct diff_args *a)
{
    const struct entry *e = &d->entry[i];
    char path[4096];
    struct command c;
    printf("  %s ", kinds_loud[e->kind]);
    if (e->text.n) {
        print_text(e->text);
        putchar('\n');
        return;
    }
    const char *was = verdict_name(e->was[OLD].verdict), *is = verdict_name(e->was[NEW].verdict);
    if (e->was[OLD].verdict != e->was[NEW].verdict)
        printf("%s -> %s", was, is);
    else {
        printf("%s: ", is);
        print_aspects(&e->what);
    }
    fputs("  [by ", stdout);
    print_decided(&e->was[NEW]);
    fputs("; before: ", stdout);
    print_decided(&e->was[OLD]);
    printf("]\n");
    if (e->classes > 1)
        printf("    %zu classes of requests%s; the simplest:\n", e->classes,
               e->hosts > 1 ? ", on several hosts" : "");
    command_of(&c, &e->witness, a, NEW, body_file(a, i, path, sizeof(path)));
    fputs("    ", stdout);
    print_command(&c);
    dynbuf_free(&c.text);
}

void diff_print(const struct diff *d, const struct diff_args *a)
{
    size_t n[4] = {0};
    struct span *done = calloc(d->nentries + 1, sizeof(*done));
    size_t ndone = 0;
    for (size_t i = 0; done && i < d->nentries; i++) {
        bool known = false;
        for (size_t k = 0; k < ndone && !known; k++)
            known = span_eq(done[k], d->entry[i].op);
        n[d->entry[i].kind]++;
        if (known)
            continue;
        done[ndone++] = d->entry[i].op;
        print_text(d->entry[i].op);
        putchar('\n');
        for (int kind = DIFF_WIDENED; kind >= DIFF_NOTE; kind--)
            for (size_t k = i; k < d->nentries; k++)
                if ((int)d->entry[k].kind == kind && span_eq(d->entry[k].op, d->entry[i].op))
                    print_entry(d, k, a);
    }
    free(done);
    for (size_t i = 0; i < d->nunread; i++) {
        fputs("not fully analysed: ", stdout);
        print_text(d->unread[i]);
        putchar('\n');
    }
    printf("%zu widened, %zu changed, %zu narrowed; %zu hosts, %zu requests judged under both\n", n[DIFF_WIDENED],
           n[DIFF_CHANGED], n[DIFF_NARROWED], d->hosts, d->points);
    if (d->points)
        puts("not looked at: names given three times, pushes of several refs, what countersign-policy(5) lists");
}

/* ---- as JSON ---- */

static void json_decided(struct jsonw *w, const char *key, const struct decided *d)
{
    jsonw_kv_object(w, key);
    jsonw_kv(w, "decide", span_str(verdict_name(d->verdict)));
    jsonw_kv(w, "code", d->code);
    if (d->rule.n) {
        jsonw_kv_object(w, "rule");
        jsonw_kv(w, "id", d->rule);
        jsonw_kv(w, "file", d->file);
        jsonw_kv_u64(w, "line", d->line);
        jsonw_end_object(w);
    }
    jsonw_end_object(w);
}

static void json_aspects(struct jsonw *w, const char *key, uint32_t mask)
{
    jsonw_kv_array(w, key);
    for (unsigned i = 0; i < ASPECTS; i++)
        if (mask & 1u << i)
            jsonw_string(w, span_str(aspect_names[i]));
    jsonw_end_array(w);
}

static void json_command(struct jsonw *w, const char *key, const struct diff *d, size_t i, const struct diff_args *a,
                         unsigned side)
{
    char path[4096];
    struct command c;
    command_of(&c, &d->entry[i].witness, a, side, body_file(a, i, path, sizeof(path)));
    struct span rest = dynbuf_span(&c.text), one;
    jsonw_kv_array(w, key);
    while (rest.n) {
        (void)span_cut(rest, 0, &one, &rest);
        jsonw_string(w, one);
    }
    jsonw_end_array(w);
    dynbuf_free(&c.text);
}

static void json_witness(struct jsonw *w, const struct witness *v)
{
    jsonw_kv_object(w, "witness");
    jsonw_kv(w, "sandbox", v->sandbox);
    jsonw_kv_array(w, "labels");
    for (size_t i = 0; i < v->nlabels; i++) {
        jsonw_object(w);
        jsonw_kv(w, "key", v->labels[i].key);
        jsonw_kv(w, "value", v->labels[i].value);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    jsonw_kv(w, "method", v->method);
    jsonw_kv(w, "scheme", v->scheme);
    jsonw_kv(w, "host", v->host);
    jsonw_kv_u64(w, "port", v->port);
    jsonw_kv(w, "path", v->path);
    if (v->has_query)
        jsonw_kv(w, "query", v->query);
    jsonw_kv_array(w, "headers");
    for (size_t i = 0; i < v->nfields; i++) {
        jsonw_object(w);
        jsonw_kv(w, "name", v->fields[i].name);
        jsonw_kv(w, "value", v->fields[i].value);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
    if (v->ref) {
        jsonw_kv(w, "ref", v->push.name);
        jsonw_kv(w, "ref_change", span_str(ref_verb(&v->push)));
    } else if (v->has_body) {
        jsonw_kv(w, "body", v->body);
    }
    if (v->now_ms)
        jsonw_kv_u64(w, "time", v->now_ms / 1000);
    jsonw_end_object(w);
}

static void json_entry(struct jsonw *w, const struct diff *d, size_t i, const struct diff_args *a)
{
    const struct entry *e = &d->entry[i];
    jsonw_object(w);
    jsonw_kv(w, "kind", span_str(kinds[e->kind]));
    jsonw_kv(w, "op", e->op);
    if (e->text.n) {
        jsonw_kv(w, "text", e->text);
    } else {
        json_decided(w, "old", &e->was[OLD]);
        json_decided(w, "new", &e->was[NEW]);
        json_aspects(w, "widened", e->what.widened);
        json_aspects(w, "narrowed", e->what.narrowed);
        json_aspects(w, "changed", e->what.changed);
        jsonw_kv_u64(w, "classes", e->classes);
        jsonw_kv_u64(w, "hosts", e->hosts);
        json_witness(w, &e->witness);
        json_command(w, "explain_old", d, i, a, OLD);
        json_command(w, "explain_new", d, i, a, NEW);
    }
    jsonw_end_object(w);
}

int diff_json(const struct diff *d, const struct diff_args *a)
{
    struct dynbuf out;
    struct jsonw w;
    dynbuf_init(&out, 64 << 20);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_kv_array(&w, "entries");
    for (size_t i = 0; i < d->nentries; i++)
        json_entry(&w, d, i, a);
    jsonw_end_array(&w);
    jsonw_kv_array(&w, "not_fully_analysed");
    for (size_t i = 0; i < d->nunread; i++)
        jsonw_string(&w, d->unread[i]);
    jsonw_end_array(&w);
    jsonw_kv_u64(&w, "hosts", d->hosts);
    jsonw_kv_u64(&w, "requests", d->points);
    jsonw_end_object(&w);
    return show_json(&out);
}

int diff_witness_files(const struct diff *d, const struct diff_args *a)
{
    char path[4096];
    if (mkdir(a->witness, 0777) != 0 && access(a->witness, W_OK) != 0)
        return -1;
    for (size_t i = 0; i < d->nentries; i++) {
        const struct witness *w = &d->entry[i].witness;
        if (!w->has_body || w->ref)
            continue;
        int fd =
            body_file(a, i, path, sizeof(path)) ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
        if (fd < 0)
            return -1;
        ssize_t n = write(fd, w->body.p ? w->body.p : (const uint8_t *)"", w->body.n);
        if (close(fd) != 0 || n != (ssize_t)w->body.n)
            return -1;
    }
    return 0;
}
