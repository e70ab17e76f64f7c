#include "policy_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/load/load.h"

const char *kit_own_pack = "";

static int fetch(void *arg, enum policy_ref kind, struct span name, struct span *text, struct err *e)
{
    static uint8_t bytes[8][65536]; /* packs live until the next load */
    static unsigned next;
    char path[300];
    const char *dir = getenv("srcdir");
    (void)arg;
    if (kind == POLICY_REF_CA) {
        static char large[200 * 1024];
        bool crl = span_find(name, SPAN("ca")) == name.n;
        const char *mark = crl ? "-----BEGIN X509 CRL-----\n" : "-----BEGIN CERTIFICATE-----\n";
        memset(large, 'A', sizeof(large));
        memcpy(large, mark, strlen(mark));
        *text = span_of(large, span_starts(name, SPAN("large")) ? sizeof(large) : strlen(mark));
        return span_eq(name, SPAN("none.pem")) ? err_set(e, "no such file") : 0;
    }
    if (kind == POLICY_REF_PACK && span_eq(name, SPAN("own@1"))) {
        *text = span_str(kit_own_pack);
        return 0;
    }
    if (kind == POLICY_REF_ZONE)
        snprintf(path, sizeof(path), "/usr/share/zoneinfo/%.*s", SPAN_FMT(name));
    else
        snprintf(path, sizeof(path), "%s/conf/packs/%.*s.yaml", dir ? dir : ".", (int)span_index(name, '@'),
                 (const char *)name.p);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return err_errno(e, "%s", path);
    uint8_t *b = bytes[next++ % 8];
    *text = span_of(b, fread(b, 1, sizeof(bytes[0]), f));
    fclose(f);
    return 0;
}

bool kit_load(struct kit *k, const char *yaml, const char *floors)
{
    return kit_load_at(k, yaml, floors, 0);
}

bool kit_load_at(struct kit *k, const char *yaml, const char *floors, uint64_t now_ms)
{
    struct policy_problem v[64];
    struct policy_problems problems = {v, 0, 64};
    struct policy_file files[2] = {{"policy.yaml", span_str(yaml), false}, {"floors.yaml", span_str(floors), true}};
    struct dynbuf out;
    *k = (struct kit){0};
    arena_init(&k->a, 1 << 20);
    dynbuf_init(&out, POLICY_IMAGE_MAX);
    int rc = policy_load(files, floors ? 2 : 1, fetch, NULL, now_ms, &out, &problems, &k->e);
    for (k->nproblems = 0; k->nproblems < problems.n; k->nproblems++)
        snprintf(k->problems[k->nproblems], sizeof(k->problems[0]), "%s %c %s %s", v[k->nproblems].code,
                 v[k->nproblems].severity, v[k->nproblems].where, v[k->nproblems].text);
    if (rc == 0) {
        k->image = out.p;
        k->image_n = out.n;
        k->p = policy_open(dynbuf_span(&out), &k->e);
    } else {
        dynbuf_free(&out);
    }
    return k->p != NULL;
}

void kit_free(struct kit *k)
{
    policy_close(k->p);
    free(k->image);
    arena_free(&k->a);
    *k = (struct kit){0};
}

static size_t split_fields(const char *fields, struct http_field *out, size_t max)
{
    size_t n = 0;
    for (struct span rest = span_str(fields); rest.n && n < max; n++) {
        struct span line;
        (void)span_cut(rest, '\n', &line, &rest);
        (void)span_cut(line, ':', &out[n].name, &out[n].value);
        out[n].value = span_trim(out[n].value);
    }
    return n;
}

static void split_url(const char *url, struct request *r)
{
    struct span s = span_str(url), rest;
    size_t at = span_find(s, SPAN("://"));
    r->scheme = span_first(s, at);
    rest = span_from(s, at + 3);
    struct span authority = span_first(rest, span_index(rest, '/')), port;
    rest = span_from(rest, authority.n);
    uint64_t v = span_eq(r->scheme, SPAN("https")) ? 443 : 80;
    if (span_cut(authority, ':', &r->host, &port))
        v = (uint64_t)atoi((const char *)port.p);
    r->port = (uint16_t)v;
    r->has_query = span_cut(rest, '?', &r->path, &r->query);
}

const struct decision *kit_judge(struct kit *k, const char *sandbox, const char *method, const char *url,
                                 const char *fields, const char *body, size_t body_n, bool complete)
{
    struct http_field f[16];
    struct label labels[] = {{SPAN("team"), SPAN("research")}};
    struct subject s = {span_str(sandbox), labels, 1};
    struct request r = {.method = span_str(method), .fields = f, .has_body = body != NULL, .body_complete = complete};
    r.nfields = split_fields(fields, f, 16);
    r.body = span_of(body, body_n);
    split_url(url, &r);
    policy_judge(k->p, &s, &r, k->now_ms, &k->a, &k->d);
    k->ambiguity = policy_ambiguity(k->p, &s, &r, &k->d, k->now_ms, &k->a);
    /* Whatever is not understood has a cause of its own. */
    if (strcmp(k->d.code, "unclassified") == 0
            ? k->ambiguity.words.n == 0 || strcmp(k->ambiguity.word, "ambiguous") == 0
            : k->ambiguity.word[0] != '\0')
        fail_msg("%s %s: %s, cause \"%s\"", method, url, k->d.code, k->ambiguity.word);
    return &k->d;
}

void kit_rows(struct kit *k, const struct kit_row *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct decision *d = kit_judge(k, "sb", v[i].method, v[i].url, v[i].fields, v[i].body,
                                             v[i].body ? strlen(v[i].body) : 0, true);
        if (d->need_body ? strcmp(v[i].code, "unclassified") != 0
                         : d->verdict != v[i].verdict || strcmp(d->code, v[i].code) != 0 ||
                               !span_eq(d->rule.id, span_str(v[i].rule)))
            fail_msg("%s %s with %s: verdict %d, code %s, rule %.*s, %s", v[i].method, v[i].url,
                     v[i].body ? v[i].body : "nothing", d->verdict, d->code, SPAN_FMT(d->rule.id), k->ambiguity.word);
    }
}

const struct decision *kit_get(struct kit *k, const char *url)
{
    return kit_judge(k, "ci-1", "GET", url, NULL, NULL, 0, true);
}

bool kit_problem(const struct kit *k, const char *code, const char *where, const char *words)
{
    for (size_t i = 0; i < k->nproblems; i++)
        if (strncmp(k->problems[i], code, strlen(code)) == 0 && (where == NULL || strstr(k->problems[i], where)) &&
            (words == NULL || strstr(k->problems[i], words)))
            return true;
    return false;
}

size_t kit_push(char *dst, size_t max, const char *caps, const char *const *commands, const char *pack)
{
    size_t n = 0;
    for (size_t i = 0; commands[i]; i++) {
        size_t len = strlen(commands[i]), more = i == 0 && caps ? strlen(caps) + 1 : 0;
        n += (size_t)snprintf(dst + n, max - n, "%04zx%s", len + more + 5, commands[i]);
        if (more) {
            dst[n++] = 0;
            memcpy(dst + n, caps, more - 1);
            n += more - 1;
        }
        dst[n++] = '\n';
    }
    n += (size_t)snprintf(dst + n, max - n, "0000%s", pack);
    return n;
}

void kit_covered(const char *ids)
{
    for (struct span rest = span_str(ids); rest.n;) {
        struct span id = span_first(rest, span_index(rest, ' '));
        printf("ok %.*s policy\n", SPAN_FMT(id));
        rest = span_from(rest, id.n + 1);
    }
}

void kit_expect(const struct decision *d, enum verdict v, const char *code, const char *rule)
{
    char got[200], want[200];
    snprintf(got, sizeof(got), "%s%s %s %.*s", verdict_name(d->verdict), d->need_body ? "?" : "", d->code,
             SPAN_FMT(d->rule.id));
    snprintf(want, sizeof(want), "%s %s %s", verdict_name(v), code, rule);
    assert_string_equal(got, want);
}

const struct decision *kit_judge_push(struct kit *k, const char *base, const char *const *commands)
{
    static char body[8192], url[300];
    size_t n = kit_push(body, sizeof(body), "report-status-v2 side-band-64k agent=git/2.39.5", commands, "PACKxxxx");
    snprintf(url, sizeof(url), "%s/git-receive-pack", base);
    return kit_judge(k, "ci-1", "POST", url, RP_TYPE, body, n, true);
}
