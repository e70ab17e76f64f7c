/* countersign schema check: is a schema one that is understood whole, and does an instance fit it */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/verb.h"
#include "common/file.h"
#include "common/schema/schema.h"
#include "common/text/visible.h"

enum { LINE_MAX_BYTES = 16 * 1024 };

/* Texts of a schema never reach the terminal as they are. */
static void say(FILE *to, const char *file, struct span place, const char *words, struct span word)
{
    struct dynbuf line;

    dynbuf_init(&line, LINE_MAX_BYTES);
    visible_text(&line, span_str(file), false);
    if (place.p)
        (void)dynbuf_add(&line, SPAN(": "));
    visible_text(&line, place.n || !place.p ? place : SPAN("the whole"), false);
    (void)dynbuf_addf(&line, ": %s", words);
    if (word.n)
        (void)dynbuf_add(&line, SPAN(" "));
    visible_text(&line, word, false);
    if (dynbuf_ok(&line))
        fprintf(to, "%.*s\n", SPAN_FMT(dynbuf_span(&line)));
    dynbuf_free(&line);
}

static void print_json(const char *error, const char *place_name, struct span place, const struct schema_miss *m,
                       struct span keyword, struct span words)
{
    struct dynbuf out;
    struct jsonw w;

    dynbuf_init(&out, LINE_MAX_BYTES);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_kv_bool(&w, "valid", error == NULL);
    if (error) {
        jsonw_kv(&w, "error", span_str(error));
        if (place.p)
            jsonw_kv(&w, place_name, place);
        if (m && m->keyword)
            jsonw_kv_bool(&w, "below", m->below);
        if (keyword.n)
            jsonw_kv(&w, "keyword", keyword);
        if (words.n)
            jsonw_kv(&w, "words", words);
    }
    jsonw_end_object(&w);
    if (dynbuf_ok(&out))
        printf("%.*s\n", SPAN_FMT(dynbuf_span(&out)));
    dynbuf_free(&out);
}

/* "-": standard input. A file that is past the limit is read up to one byte more, for the validator to refuse. */
static int read_all(const char *path, struct dynbuf *b)
{
    bool input = strcmp(path, "-") == 0;
    int bad = input ? file_read_fd(0, b) : file_read(path, b);

    return bad == 0 || errno == EFBIG ? CLI_OK : verb_fail(CLI_RUNTIME, "%s: %s", path, strerror(errno));
}

static int refused(const char *file, const struct schema_fault *f, bool json)
{
    struct span pointer = span_str(f->pointer), keyword = span_str(f->keyword);

    if (json) {
        print_json("schema-refused", "pointer", pointer, NULL, keyword, span_str(f->why.text));
        return CLI_INVALID;
    }
    say(stderr, file, pointer, f->why.text, SPAN_NONE);
    return CLI_INVALID;
}

static int judged(const char *file, enum schema_verdict v, const struct schema_miss *m, bool json)
{
    bool misfit = v == SCHEMA_MISFIT;
    struct span path = misfit ? span_str(m->path) : SPAN_NONE;
    struct span keyword = misfit ? span_str(m->keyword) : SPAN_NONE;

    if (json)
        print_json(v == SCHEMA_FITS ? NULL : schema_verdict_name(v), "path", path, m, keyword, SPAN_NONE);
    else if (v == SCHEMA_FITS)
        say(stdout, file, SPAN_NONE, "fits", SPAN_NONE);
    else if (misfit)
        say(stderr, file, path, m->below ? "something below it does not fit" : "does not fit", keyword);
    else
        say(stderr, file, SPAN_NONE, schema_verdict_name(v), SPAN_NONE);
    return v == SCHEMA_FITS ? CLI_OK : CLI_RUNTIME;
}

int schema_check(const struct cli_call *c)
{
    const char *schema_file = c->word[0], *file = c->nwords > 1 ? c->word[1] : NULL;
    struct dynbuf text, instance;
    struct schema *s = NULL;
    struct schema_fault f;
    struct schema_miss m;
    unsigned options = cli_flag(c, "formats") ? SCHEMA_FORMATS : SCHEMA_PLAIN;

    dynbuf_init(&text, SCHEMA_TEXT_MAX + 1);
    dynbuf_init(&instance, SCHEMA_INSTANCE_MAX + 1);
    int rc = read_all(schema_file, &text);
    if (rc == CLI_OK && file)
        rc = read_all(file, &instance);
    if (rc != CLI_OK)
        goto out;
    if (schema_compile(dynbuf_span(&text), options, &s, &f) != 0)
        rc = refused(schema_file, &f, c->json);
    else if (file)
        rc = judged(file, schema_validate(s, dynbuf_span(&instance), &m), &m, c->json);
    else if (c->json)
        print_json(NULL, NULL, SPAN_NONE, NULL, SPAN_NONE, SPAN_NONE);
    else
        say(stdout, schema_file, SPAN_NONE, "valid", SPAN_NONE);
out:
    schema_free(&s);
    dynbuf_free(&text);
    dynbuf_free(&instance);
    return rc;
}
