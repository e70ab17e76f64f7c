#include "cli/policy/check/sarif.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/json/json.h"
#include "cli/policy/show.h"
#include "policy/load/check/codes.h"

enum { SARIF_MAX = 4 << 20, URI_MAX = 1024 };

/* "file:line:col", from its end: a file's name may have colons. */
static struct span take_number(struct span *where)
{
    size_t n = where->n;
    while (n > 0 && where->p[n - 1] != ':')
        n--;
    struct span number = span_from(*where, n);
    *where = span_first(*where, n ? n - 1 : 0);
    return number;
}

static struct span uri_of(struct span path, char out[URI_MAX])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/@";
    size_t n = 0;
    if (span_starts(path, SPAN("/")))
        n += (size_t)snprintf(out, URI_MAX, "file://");
    for (size_t i = 0; i < path.n && n + 4 < URI_MAX; i++) {
        if (path.p[i] && strchr(plain, path.p[i]))
            out[n++] = (char)path.p[i];
        else
            n += (size_t)snprintf(out + n, 4, "%%%02X", path.p[i]);
    }
    return span_of(out, n);
}

static void text_of(struct jsonw *w, const char *key, const char *text)
{
    jsonw_kv_object(w, key);
    jsonw_kv(w, "text", span_str(text));
    jsonw_end_object(w);
}

static void write_rules(struct jsonw *w)
{
    const struct policy_code *c;
    jsonw_kv_array(w, "rules");
    for (size_t i = 0; (c = policy_code_at(i)) != NULL; i++) {
        jsonw_object(w);
        jsonw_kv(w, "id", span_str(c->code));
        text_of(w, "shortDescription", c->means);
        text_of(w, "help", c->todo);
        jsonw_kv_object(w, "defaultConfiguration");
        jsonw_kv(w, "level", c->code[1] == '0' ? SPAN("error") : SPAN("warning"));
        jsonw_end_object(w);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void write_place(struct jsonw *w, const char *at)
{
    char uri[URI_MAX];
    uint64_t line = 1, col = 1;
    struct span where = span_str(at);
    struct span c = take_number(&where), l = take_number(&where);
    if (span_u64(l, UINT32_MAX, &line) != 0 || span_u64(c, UINT32_MAX, &col) != 0)
        line = col = 1;
    jsonw_kv_array(w, "locations");
    jsonw_object(w);
    jsonw_kv_object(w, "physicalLocation");
    jsonw_kv_object(w, "artifactLocation");
    jsonw_kv(w, "uri", uri_of(where, uri));
    jsonw_end_object(w);
    jsonw_kv_object(w, "region");
    jsonw_kv_u64(w, "startLine", line);
    jsonw_kv_u64(w, "startColumn", col);
    jsonw_end_object(w);
    jsonw_end_object(w);
    jsonw_end_object(w);
    jsonw_end_array(w);
}

static void write_results(struct jsonw *w, const struct loaded *l)
{
    jsonw_kv_array(w, "results");
    for (size_t i = 0; i < l->problems.n; i++) {
        const struct policy_problem *p = &l->v[i];
        jsonw_object(w);
        jsonw_kv(w, "ruleId", span_str(p->code));
        jsonw_kv(w, "level", p->severity == 'E' ? SPAN("error") : SPAN("warning"));
        text_of(w, "message", p->text);
        write_place(w, p->where);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

int sarif_print(const struct loaded *l)
{
    struct dynbuf out;
    struct jsonw w;
    dynbuf_init(&out, SARIF_MAX);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_kv(&w, "$schema", SPAN("https://json.schemastore.org/sarif-2.1.0.json"));
    jsonw_kv(&w, "version", SPAN("2.1.0"));
    jsonw_kv_array(&w, "runs");
    jsonw_object(&w);
    jsonw_kv_object(&w, "tool");
    jsonw_kv_object(&w, "driver");
    jsonw_kv(&w, "name", SPAN("countersign policy check"));
    jsonw_kv(&w, "version", SPAN(PACKAGE_VERSION));
    write_rules(&w);
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    jsonw_kv(&w, "columnKind", SPAN("unicodeCodePoints"));
    write_results(&w, l);
    jsonw_end_object(&w);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    return show_json(&out);
}

int sarif_print_code(const char *code)
{
    const struct policy_code *c = policy_code_find(code);
    if (c == NULL) {
        fprintf(stderr, "countersign policy check: there is no code %.20s. ", code);
        fputs(
            "In the message \"p.yaml:4:7: error P006: ...\" the code is P006; countersign-policy(5) lists them all\n",
            stderr);
        return CLI_USAGE;
    }
    printf("%s (%s): %s\n\n%s\n", c->code, c->code[1] == '0' ? "refuses" : "warns", c->means, c->todo);
    return CLI_OK;
}
