#include "web-approval/tasks/kinds.h"

#include <stdlib.h>

#include "proxy/msgs.h"

enum { KIND_BYTES = 2 * TASK_SCHEMA_MAX + 2 * TASK_COMMAND_MAX };

void kind_drop(struct task_kind **at)
{
    struct task_kind *t = *at;

    *at = NULL;
    if (!t || --t->users > 0)
        return;
    schema_free(&t->input);
    schema_free(&t->output);
    dynbuf_free(&t->bytes);
    free(t);
}

struct task_kind *kind_of(struct span payload)
{
    struct task_kind *t = calloc(1, sizeof(*t));
    struct schema_fault f;

    if (!t)
        return NULL;
    t->users = 1;
    dynbuf_init(&t->bytes, KIND_BYTES);
    if (dynbuf_add(&t->bytes, payload) == 0) {
        struct msg_in m = msg_in(dynbuf_span(&t->bytes));
        if (wire_get_task(&m, &t->is) == 0 && schema_compile(t->is.input, SCHEMA_PLAIN, &t->input, &f) == 0 &&
            schema_compile(t->is.output, SCHEMA_PLAIN, &t->output, &f) == 0)
            return t;
    }
    kind_drop(&t);
    return NULL;
}

static void forget(struct task_kind **list, size_t *n)
{
    while (*n > 0)
        kind_drop(&list[--*n]);
}

/* A list that is whole is the one that counts. */
static void take(struct task_kinds *k)
{
    if (k->n_next < k->coming)
        return;
    forget(k->now, &k->n);
    memcpy(k->now, k->next, k->n_next * sizeof(k->next[0]));
    k->n = k->n_next;
    k->n_next = k->coming = 0;
}

int kinds_hear(struct task_kinds *k, unsigned type, struct span payload)
{
    struct msg_in m = msg_in(payload);
    struct task_kind *t;

    if (type == M_TASKS) {
        forget(k->next, &k->n_next);
        k->coming = msg_get_u16(&m);
        bool fine = msg_end(&m) == 0 && k->coming <= TASKS_MAX;
        if (!fine)
            k->coming = 0;
        else
            take(k); /* there may be none */
        return fine ? 0 : -1;
    }
    if (k->n_next >= k->coming) /* of a list that was not taken */
        return -1;
    if (!(t = kind_of(payload))) {
        forget(k->next, &k->n_next);
        k->coming = 0;
        return -1;
    }
    k->next[k->n_next++] = t;
    take(k);
    return 0;
}

struct task_kind *kind_use(struct task_kinds *k, struct span name, struct span tenant)
{
    struct task_kind *found = NULL;

    for (size_t i = 0; i < k->n; i++) {
        struct task_kind *t = k->now[i];
        bool own = task_is_of(&t->is, tenant);
        if (span_eq(t->is.kind, name) && (own || (t->is.ntenants == 0 && !found)))
            found = t;
        if (found && own && found == t)
            break;
    }
    if (found)
        found->users++;
    return found;
}
