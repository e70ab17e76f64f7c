/* countersign policy history, show and rollback: the versions that a gateway keeps. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/table.h"
#include "cli/verb.h"
#include "policy/load/stored.h"

enum { SHORT_DIGEST = 12, ASK_ROOM = 4096 };

/* --- history ---------------------------------------------------------------- */

static bool truth(const struct json *j, const char *key)
{
    const struct json *b = json_get(j, span_str(key));

    return b && b->type == JSON_BOOL && b->truth;
}

/* The files that the policy is written in, not what they bring along. */
static void put_files(struct table *t, const struct json *v)
{
    const struct json *files = json_get(v, SPAN("files"));
    const char *comma = "";

    for (const struct json *f = files ? files->child : NULL; f; f = f->next)
        if (span_eq(member_text(f, "kind"), SPAN("policy")) || span_eq(member_text(f, "kind"), SPAN("floors"))) {
            table_add(t, comma);
            table_add_text(t, member_text(f, "name"));
            comma = ", ";
        }
    table_next(t);
}

static void put_version(struct table *t, const struct json *v)
{
    char when[32];
    bool current = truth(v, "current"), pinned = truth(v, "pinned");

    table_cell(t, "%s", time_text(member_u64(v, "in_force_ms"), when));
    table_text(t, span_first(member_text(v, "digest"), SHORT_DIGEST));
    if (member_text(v, "broken").n) {
        table_cell(t, "-");
        table_cell(t, "-");
        table_add(t, "BROKEN: ");
        table_text(t, member_text(v, "broken"));
        table_next(t);
    } else {
        table_cell(t, "%llu%s", (unsigned long long)member_u64(v, "rules"), t->people ? "" : " rules");
        table_cell(t, "%llu%s", (unsigned long long)member_u64(v, "nfiles"), t->people ? "" : " files");
        table_text(t, member_text(v, "name").n ? member_text(v, "name") : SPAN("-"));
        put_files(t, v);
    }
    table_cell(t, "%s", current && pinned ? "(in force, pinned)" : current ? "(in force)" : pinned ? "(pinned)" : "");
    table_row(t);
}

int policy_history(const struct cli_call *c)
{
    struct gateway_call g;
    struct table t;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", "/api/v1/policy/versions", SPAN_NONE, 200);
    if (rc == CLI_OK && c->json) {
        verb_print_answer(&g);
    } else if (rc == CLI_OK) {
        const struct json *all = json_get(g.tree, SPAN("versions"));
        table_begin(&t, "IN FORCE SINCE\tDIGEST\tRULES\tFILES\tNAME\tWRITTEN IN\tSTATE");
        for (const struct json *v = all ? all->child : NULL; v; v = v->next)
            put_version(&t, v);
        table_end(&t, "No version was in force yet.");
        if (member_text(g.tree, "pinned").n) {
            fputs("pinned by a rollback of ", stdout);
            print_person(member_text(g.tree, "pinned_by"));
            puts(": the policy files are not in force until `countersign policy rollback --end`");
        }
    }
    verb_end(&g);
    return rc;
}

/* --- show: from the state directory, also when no gateway runs -------------- */

static void json_show(const struct stored *s)
{
    char hex[STORED_HEX + 1];
    struct dynbuf out;
    struct jsonw w;

    dynbuf_init(&out, STORED_MANIFEST_MAX);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_kv(&w, "digest", span_str(s->hex));
    jsonw_kv(&w, "name", s->name);
    jsonw_kv_u64(&w, "rules", s->rules);
    jsonw_kv_u64(&w, "stored_ms", s->stored_ms);
    jsonw_kv_u64(&w, "in_force_ms", s->used_ms);
    jsonw_kv_array(&w, "files");
    for (size_t i = 0; i < s->n; i++) {
        hex_text(span_of(s->v[i].sha256.b, DIGEST_BYTES), hex);
        jsonw_object(&w);
        jsonw_kv(&w, "kind", span_str(stored_kind(s->v[i].kind)));
        jsonw_kv(&w, "name", s->v[i].name);
        jsonw_kv(&w, "stored_as", span_str(s->v[i].file));
        jsonw_kv_u64(&w, "size", s->v[i].size);
        jsonw_kv(&w, "sha256", span_str(hex));
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (dynbuf_ok(&out))
        printf("%.*s\n", SPAN_FMT(dynbuf_span(&out)));
    dynbuf_free(&out);
}

static void text_show(const struct stored *s, bool only_files)
{
    char hex[STORED_HEX + 1], when[32];

    if (!only_files) {
        printf("digest    %s\nname      ", s->hex);
        print_text(s->name.n ? s->name : SPAN("-"));
        printf("\nrules     %llu\n", (unsigned long long)s->rules);
        printf("stored    %s\n", time_text(s->stored_ms, when));
        printf("in force  %s (last put)\n", time_text(s->used_ms, when));
    }
    for (size_t i = 0; i < s->n; i++) {
        hex_text(span_of(s->v[i].sha256.b, DIGEST_BYTES), hex);
        printf("%-8s  %.12s  %8llu  ", stored_kind(s->v[i].kind), hex, (unsigned long long)s->v[i].size);
        print_text(s->v[i].name);
        putchar('\n');
    }
}

/* By the name it had, the last part of it, or the name it is stored under. */
static int print_one(const struct stored *s, const char *name)
{
    const struct stored_file *found = NULL;

    for (size_t i = 0; i < s->n; i++) {
        const struct stored_file *f = &s->v[i];
        struct span want = span_str(name), tail = span_from(f->name, f->name.n > want.n ? f->name.n - want.n : 0);
        bool whole = span_eq(f->name, want) || strcmp(f->file, name) == 0;
        if (whole || (found == NULL && span_eq(tail, want) && f->name.p[f->name.n - want.n - 1] == '/'))
            found = f;
    }
    if (found == NULL)
        return verb_fail(CLI_RUNTIME, "version %.12s has no file %s; --files lists them", s->hex, name);
    (void)fwrite(found->text.p, 1, found->text.n, stdout);
    return CLI_OK;
}

int policy_show(const struct cli_call *c)
{
    char dir[PATH_MAX + 16], hex[STORED_HEX + 1];
    struct stored s = {.n = 0};
    struct err e;
    int rc = CLI_OK;

    if (api_state_dir(c->state_dir, dir, &e) != 0)
        return verb_fail(CLI_USAGE, "%s", e.text);
    (void)strcat(dir, "/policies");
    if (access(dir, R_OK | X_OK) != 0)
        return verb_fail(CLI_STORE, "no policy is stored in %s: %s", dir, strerror(errno));
    if (stored_find(dir, span_str(c->word[0]), hex, &e) != 0 || stored_open(dir, hex, &s, &e) != 0 ||
        stored_read(dir, &s, &e) != 0)
        rc = verb_fail(CLI_RUNTIME, "%s", e.text);
    else if (c->nwords == 2)
        rc = print_one(&s, c->word[1]);
    else if (c->json)
        json_show(&s);
    else
        text_show(&s, cli_flag(c, "files"));
    stored_free(&s);
    return rc;
}

/* --- rollback --------------------------------------------------------------- */

static int roll_back(struct gateway_call *g, const char *digest)
{
    struct dynbuf body;
    struct jsonw w;

    dynbuf_init(&body, ASK_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    if (digest)
        jsonw_kv(&w, "digest", span_str(digest));
    else
        jsonw_kv_bool(&w, "end", true);
    jsonw_end_object(&w);
    int rc = dynbuf_ok(&body) ? verb_ask(g, "POST", "/api/v1/policy/rollback", dynbuf_span(&body), 200)
                              : verb_fail(CLI_USAGE, "that is no digest");
    dynbuf_free(&body);
    return rc == CLI_RUNTIME && g->status == 422 ? CLI_INVALID : rc;
}

int policy_rollback(const struct cli_call *c)
{
    bool end = cli_flag(c, "end");
    struct gateway_call g;

    if (c->nwords != (end ? 0 : 1))
        return cli_complain(c->verb, end         ? "--end takes no DIGEST"
                                     : c->nwords ? "it takes one DIGEST"
                                                 : "DIGEST is missing");
    int rc = verb_begin(&g, c);
    if (rc == CLI_OK)
        rc = roll_back(&g, end ? NULL : c->word[0]);
    if (rc == CLI_OK && c->json) {
        verb_print_answer(&g);
    } else if (rc == CLI_OK) {
        print_lines(member_text(g.tree, "text"));
        putchar('\n');
    }
    verb_end(&g);
    return rc;
}
