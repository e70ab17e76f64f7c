/* A curl command line, as copied from documentation or a browser, as the request that curl would make of it. What
 * would make another request than is understood here is refused by its name. */
#include "cli/policy/explain/explain.h"

#include <stdio.h>

#include "policy/load/disk.h"

enum { CURL_WORDS_MAX = 400, CURL_BODY_MAX = 16 * 1024 * 1024 };

enum what {
    CURL_IGNORED = 1, /* changes nothing that a policy sees */
    CURL_IGNORED_VALUE,
    CURL_METHOD,
    CURL_HEADER,
    CURL_DATA,   /* line ends of a file are taken out */
    CURL_RAW,    /* an @ means nothing */
    CURL_BINARY, /* a file as it is */
    CURL_ENCODE,
    CURL_JSON,
    CURL_TO_QUERY,
    CURL_HEAD,
    CURL_COOKIE,
    CURL_AGENT,
    CURL_REFERER,
    CURL_USER,
    CURL_URL,
    CURL_REFUSED
};
static const struct option {
    char letter;
    const char *name;
    enum what what;
} options[] = {
    {'X', "request", CURL_METHOD},
    {'H', "header", CURL_HEADER},
    {'d', "data", CURL_DATA},
    {0, "data-ascii", CURL_DATA},
    {0, "data-raw", CURL_RAW},
    {0, "data-binary", CURL_BINARY},
    {0, "data-urlencode", CURL_ENCODE},
    {0, "json", CURL_JSON},
    {'G', "get", CURL_TO_QUERY},
    {'I', "head", CURL_HEAD},
    {'b', "cookie", CURL_COOKIE},
    {'A', "user-agent", CURL_AGENT},
    {'e', "referer", CURL_REFERER},
    {'u', "user", CURL_USER},
    {0, "oauth2-bearer", CURL_USER},
    {0, "url", CURL_URL},
    {'F', "form", CURL_REFUSED},
    {0, "form-string", CURL_REFUSED},
    {'T', "upload-file", CURL_REFUSED},
    {'K', "config", CURL_REFUSED},
    {0, "next", CURL_REFUSED},
    {'k', "insecure", CURL_IGNORED},
    {'s', "silent", CURL_IGNORED},
    {'S', "show-error", CURL_IGNORED},
    {'L', "location", CURL_IGNORED},
    {'i', "include", CURL_IGNORED},
    {'v', "verbose", CURL_IGNORED},
    {'f', "fail", CURL_IGNORED},
    {0, "fail-with-body", CURL_IGNORED},
    {'N', "no-buffer", CURL_IGNORED},
    {'#', "progress-bar", CURL_IGNORED},
    {0, "no-progress-meter", CURL_IGNORED},
    {'g', "globoff", CURL_IGNORED},
    {'O', "remote-name", CURL_IGNORED},
    {'J', "remote-header-name", CURL_IGNORED},
    {'4', "ipv4", CURL_IGNORED},
    {'6', "ipv6", CURL_IGNORED},
    {0, "compressed", CURL_IGNORED},
    {0, "http1.1", CURL_IGNORED},
    {0, "http2", CURL_IGNORED},
    {0, "tlsv1.2", CURL_IGNORED},
    {0, "tlsv1.3", CURL_IGNORED},
    {'o', "output", CURL_IGNORED_VALUE},
    {'m', "max-time", CURL_IGNORED_VALUE},
    {'w', "write-out", CURL_IGNORED_VALUE},
    {'D', "dump-header", CURL_IGNORED_VALUE},
    {'c', "cookie-jar", CURL_IGNORED_VALUE},
    {0, "connect-timeout", CURL_IGNORED_VALUE},
    {0, "retry", CURL_IGNORED_VALUE},
    {0, "retry-delay", CURL_IGNORED_VALUE},
    {0, "max-redirs", CURL_IGNORED_VALUE},
    {0, "cacert", CURL_IGNORED_VALUE},
    {'x', "proxy", CURL_IGNORED_VALUE},
};

struct curl {
    struct asked *q;
    struct err *e;
    struct span url, method;
    struct dynbuf body;
    bool data, json, to_query, head, globoff, type, accept, agent, user;
};

static int file_data(struct curl *c, struct span name, bool lines, struct span *out)
{
    char path[4096];
    struct dynbuf b;
    if (name.n == 0 || name.n >= sizeof(path) || span_eq(name, SPAN("-")))
        return err_set(c->e, "curl's data is read from a file with a name: @- is not");
    snprintf(path, sizeof(path), "%.*s", SPAN_FMT(name));
    if (policy_read_file(path, CURL_BODY_MAX, &c->q->a, out, c->e) != 0)
        return -1;
    if (!lines)
        return 0;
    dynbuf_init(&b, CURL_BODY_MAX);
    for (size_t i = 0; i < out->n; i++)
        if (out->p[i] != '\n' && out->p[i] != '\r' && out->p[i] != 0)
            (void)dynbuf_add_byte(&b, out->p[i]);
    *out = arena_keep(&c->q->a, &b);
    return 0;
}

/* content, =content, name=content, @file, name@file */
static int encode(struct curl *c, struct span v, struct dynbuf *out)
{
    size_t eq = span_index(v, '='), at = span_index(v, '@');
    bool file = at < eq;
    size_t cut = file ? at : eq < v.n ? eq : 0;
    struct span name = span_first(v, cut), content = span_from(v, eq == v.n && !file ? 0 : cut + 1);
    if (file && file_data(c, content, false, &content) != 0)
        return -1;
    (void)dynbuf_add(out, name);
    (void)dynbuf_add(out, name.n ? SPAN("=") : SPAN_NONE);
    dynbuf_add_percent(out, content, "-._~");
    return 0;
}

static int add_data(struct curl *c, enum what what, struct span v)
{
    bool plain = what == CURL_RAW || what == CURL_ENCODE || !span_starts(v, SPAN("@"));
    (void)dynbuf_add(&c->body, c->data && what != CURL_JSON ? SPAN("&") : SPAN_NONE);
    c->data = true;
    c->json |= what == CURL_JSON;
    if (what == CURL_ENCODE)
        return encode(c, v, &c->body);
    if (!plain && file_data(c, span_from(v, 1), what == CURL_DATA, &v) != 0)
        return -1;
    return dynbuf_add(&c->body, v) == 0 ? 0 : err_set(c->e, "the data is too large");
}

/* "Name: value"; "Name:" takes curl's own out, "Name;" sends an empty one. */
static int add_header(struct curl *c, struct span v)
{
    struct span name, value;
    if (span_starts(v, SPAN("@")))
        return err_set(c->e, "-H @FILE is not read here: write the fields");
    bool empty = !span_cut(v, ':', &name, &value);
    if (empty && !span_ends(v, SPAN(";")))
        return err_set(c->e, "-H wants \"NAME: VALUE\"");
    name = span_trim(empty ? span_first(v, v.n - 1) : name);
    value = empty ? SPAN("") : span_trim(value);
    c->type |= span_ieq(name, SPAN("Content-Type"));
    c->accept |= span_ieq(name, SPAN("Accept"));
    c->agent |= span_ieq(name, SPAN("User-Agent"));
    if (!empty && value.n == 0)
        return 0;
    return asked_header(c->q, name, value) == 0 ? 0 : err_set(c->e, "too many headers");
}

static int add_named(struct curl *c, struct span name, struct span value)
{
    c->agent |= span_ieq(name, SPAN("User-Agent"));
    return asked_header(c->q, name, value) == 0 ? 0 : err_set(c->e, "too many headers");
}

static int set_url(struct curl *c, struct span v)
{
    if (c->url.n)
        return err_set(c->e, "curl is given several URLs: explain one at a time");
    c->url = v;
    return 0;
}

static int take(struct curl *c, const struct option *o, struct span v)
{
    switch (o->what) {
    case CURL_METHOD: c->method = v; return 0;
    case CURL_HEADER: return add_header(c, v);
    case CURL_DATA:
    case CURL_RAW:
    case CURL_BINARY:
    case CURL_ENCODE:
    case CURL_JSON: return add_data(c, o->what, v);
    case CURL_TO_QUERY: c->to_query = true; return 0;
    case CURL_HEAD: c->head = true; return 0;
    case CURL_COOKIE:
        if (span_index(v, '=') == v.n)
            return err_set(c->e, "-b with a file of cookies is not read here: write NAME=VALUE");
        return add_named(c, SPAN("Cookie"), v);
    case CURL_AGENT: return add_named(c, SPAN("User-Agent"), v);
    case CURL_REFERER: return add_named(c, SPAN("Referer"), v);
    case CURL_USER: c->user = true; return 0;
    case CURL_URL: return set_url(c, v);
    case CURL_IGNORED: c->globoff |= o->letter == 'g'; return 0;
    default: return 0;
    }
}

static bool wants_value(enum what what)
{
    return what != CURL_IGNORED && what != CURL_TO_QUERY && what != CURL_HEAD;
}

static const struct option *find(struct span name, int letter)
{
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (letter ? options[i].letter == letter : span_eq(name, span_str(options[i].name)))
            return &options[i];
    return NULL;
}

/* -sSL, -XPOST, -d @file: letters one after the other, the value of the last that wants one behind it. */
static int short_options(struct curl *c, struct span word, const struct span *next, size_t *used)
{
    for (size_t i = 1; i < word.n; i++) {
        const struct option *o = find(SPAN_NONE, word.p[i]);
        if (o == NULL || o->what == CURL_REFUSED)
            return err_set(c->e, "curl's option -%c is not understood here%s%s", word.p[i], o ? ": --" : "",
                           o ? o->name : "");
        if (!wants_value(o->what)) {
            (void)take(c, o, SPAN_NONE);
            continue;
        }
        struct span v = span_from(word, i + 1);
        if (v.n == 0 && next == NULL)
            return err_set(c->e, "curl's option -%c needs a value", word.p[i]);
        *used += v.n == 0;
        return take(c, o, v.n ? v : *next);
    }
    return 0;
}

static int long_option(struct curl *c, struct span word, const struct span *next, size_t *used)
{
    const struct option *o = find(span_from(word, 2), 0);
    if (o == NULL || o->what == CURL_REFUSED)
        return err_set(c->e, "curl's option %.*s is not understood here", SPAN_FMT(span_first(word, 60)));
    if (!wants_value(o->what))
        return take(c, o, SPAN_NONE);
    if (next == NULL)
        return err_set(c->e, "curl's option %.*s needs a value", SPAN_FMT(word));
    ++*used;
    return take(c, o, *next);
}

/* The URL, with what -G makes of the data; without a scheme curl takes http. */
static int finish_url(struct curl *c)
{
    struct dynbuf b;
    struct span url = span_first(c->url, span_index(c->url, '#'));
    struct span after = span_from(url, sizeof("https://[") - 1); /* an IPv6 address may stand there */
    if (url.n == 0)
        return err_set(c->e, "the curl command has no URL");
    if (!c->globoff && (span_index(url, '{') < url.n || span_index(after, '[') < after.n))
        return err_set(c->e,
                       "the URL has { or [, of which curl makes several URLs: explain one at a time, or add -g");
    dynbuf_init(&b, 128 * 1024);
    (void)dynbuf_add(&b, span_find(url, SPAN("://")) < url.n ? SPAN_NONE : SPAN("http://"));
    (void)dynbuf_add(&b, url);
    if (c->to_query && c->data) {
        (void)dynbuf_add(&b, span_index(url, '?') < url.n ? SPAN("&") : SPAN("?"));
        (void)dynbuf_add(&b, dynbuf_span(&c->body));
    }
    return asked_url(c->q, arena_keep(&c->q->a, &b), c->e);
}

static int finish(struct curl *c)
{
    struct request *r = &c->q->request;
    int rc = 0;
    bool body = c->data && !c->to_query;
    r->method = c->method.n ? c->method : c->head ? SPAN("HEAD") : body ? SPAN("POST") : SPAN("GET");
    r->has_body = body;
    r->body = body ? arena_copy(&c->q->a, dynbuf_span(&c->body)) : SPAN_NONE;
    if (body && !c->type)
        rc |= asked_header(c->q, SPAN("Content-Type"),
                           c->json ? SPAN("application/json") : SPAN("application/x-www-form-urlencoded"));
    if (!c->accept)
        rc |= asked_header(c->q, SPAN("Accept"), c->json ? SPAN("application/json") : SPAN("*/*"));
    if (!c->agent)
        rc |= asked_header(c->q, SPAN("User-Agent"), SPAN("curl"));
    if (rc != 0 || !dynbuf_ok(&c->body))
        return err_set(c->e, "too many headers, or too much data");
    if (c->user)
        c->q->note = "what -u says is left out: a rule that uses a credential puts its own in that place";
    return finish_url(c);
}

int asked_curl(struct asked *q, struct span line, struct err *e)
{
    struct curl c = {.q = q, .e = e};
    struct span *word = arena_alloc(&q->a, CURL_WORDS_MAX * sizeof(*word));
    bool variable = false;
    int n = word ? shell_words(line, &q->a, word, CURL_WORDS_MAX, &variable, e) : err_set(e, "no memory"), rc = 0;
    size_t first = n > 0 && span_eq(word[0], SPAN("$")) ? 1 : 0;
    if (n < 0)
        return -1;
    if ((size_t)n <= first || !span_eq(word[first], SPAN("curl")))
        return err_set(e, "--curl wants a command line that begins with curl, in quotes");
    dynbuf_init(&c.body, CURL_BODY_MAX);
    bool words = false;
    for (size_t i = first + 1; i < (size_t)n && rc == 0; i++) {
        const struct span *next = i + 1 < (size_t)n ? &word[i + 1] : NULL;
        if (!words && span_eq(word[i], SPAN("--")))
            words = true;
        else if (!words && span_starts(word[i], SPAN("--")))
            rc = long_option(&c, word[i], next, &i);
        else if (!words && word[i].n > 1 && word[i].p[0] == '-')
            rc = short_options(&c, word[i], next, &i);
        else
            rc = set_url(&c, word[i]);
    }
    if (variable)
        q->note = "a $NAME stays as it is written: write its value where a rule asks about it";
    if (rc == 0)
        rc = finish(&c);
    dynbuf_free(&c.body);
    return rc;
}
