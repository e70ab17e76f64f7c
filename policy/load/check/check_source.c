#include "policy/load/check/check_source.h"

#include "policy/load/read/scalar.h"

enum { ARGUMENT_MAX = 4096 };

static void bad(struct loader *l, const struct item *v, const char *why)
{
    load_problem(l, v->at, "P008", "\"%.*s\" %s", SPAN_FMT(span_first(v->text, 100)), why);
}

static void check_stored(struct loader *l, enum source_kind kind, const struct item *v)
{
    if (v->at == NULL)
        return;
    if (kind == SOURCE_STORE && !scalar_is_name(v->text))
        bad(l, v, "is no name of a stored secret");
    if (kind == SOURCE_ENV && !scalar_is_word(v->text))
        bad(l, v, "is no name of a variable");
    if (kind == SOURCE_SYSTEMD && !scalar_is_name(v->text))
        bad(l, v, "is no name of a credential of systemd: letters, digits, '.', '_' and '-'");
}

static void check_settings(struct loader *l, const struct m_asked *a)
{
    for (size_t i = 0; i < a->n; i++) {
        check_stored(l, a->v[i].from, &a->v[i].value);
        if (a->v[i].value.text.n > ARGUMENT_MAX)
            load_problem(l, a->v[i].at, "P017", "a setting of a source is longer than %d bytes", ARGUMENT_MAX);
    }
}

static void check_exec(struct loader *l, const struct m_asked *a)
{
    bool value = false, expires = false;
    size_t i = 0;
    while (i < a->n && !span_eq(a->v[i].key, SPAN("argv")))
        i++;
    if (i < a->n && !span_starts(a->v[i].value.text, SPAN("/")))
        bad(l, &a->v[i].value, "is no full path of a program");
    for (i = 0; i < a->n; i++) {
        value |= span_eq(a->v[i].key, SPAN("value"));
        expires |= span_eq(a->v[i].key, SPAN("expires_in"));
    }
    if (expires && !value)
        load_problem(l, a->at, "P015",
                     "expires_in: is a place in JSON, so value: must say where in it the secret is");
}

void check_source(struct loader *l, const struct m_source *s)
{
    const struct m_stored *is = &s->stored;
    const struct item *at[] = {[SOURCE_NONE] = NULL,
                               [SOURCE_FILE] = &is->file,
                               [SOURCE_ENV] = &is->env,
                               [SOURCE_STORE] = &is->store,
                               [SOURCE_SYSTEMD] = &is->systemd};
    int given = s->exec.at != NULL;
    for (unsigned k = SOURCE_FILE; k <= SOURCE_SYSTEMD; k++) {
        given += at[k]->at != NULL;
        check_stored(l, (enum source_kind)k, at[k]);
    }
    if (is->at && given != 1)
        load_problem(l, is->at, "P015", "a source is one of file:, env:, store:, systemd: and exec:");
    check_settings(l, &s->exec);
    if (s->exec.at != NULL)
        check_exec(l, &s->exec);
}
