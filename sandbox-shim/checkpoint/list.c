/* Which checkpoints there are, the newest first; and that one is no more, or all that nobody asked for. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "sandbox-shim/checkpoint/store.h"

/* --- a list -------------------------------------------------------------------------------- */

enum { FOUND_MAX = 65536 };

struct found {
    uint64_t created_ms;
    char id[FORM_ID + 1], shelf[SHELF_NAME + 1];
};

struct finding {
    int store;
    const struct order *order;
    struct shelf shelf;
    const char *name; /* of the shelf */
    struct found *all;
    size_t n;
};

/* What is made for a fork or a step alone, or of an idle sandbox, is nobody's to find: it goes with that. */
static bool is_wanted(const struct form_head *h, const struct order *o)
{
    bool idle = span_eq(h->name, FORM_OF_IDLE);

    return o->what == ORDER_IDLE ? idle
                                 : span_eq(h->tenant, o->tenant) && !idle && !span_eq(h->name, FORM_OF_FORK) &&
                                       !span_eq(h->name, FORM_OF_UNDO);
}

static int see(void *arg, const char *id)
{
    struct finding *f = arg;
    struct form_head h;
    struct dynbuf b;
    struct err e;

    if (!form_is_id(span_str(id)) || f->n == FOUND_MAX || away_is_gone(&f->shelf, id))
        return 0;
    dynbuf_init(&b, 2 * FORM_HEAD_MAX);
    int rc = shelf_head(&f->shelf, id, &b, &h, &e);
    if (rc < 0)
        log_warn("%s", e.text);
    if (rc == 0 && is_wanted(&h, f->order)) {
        struct found *one = &f->all[f->n++];
        one->created_ms = h.created_ms;
        memcpy(one->id, id, FORM_ID + 1);
        memcpy(one->shelf, f->name, SHELF_NAME + 1);
    }
    dynbuf_free(&b);
    return 0;
}

static int see_shelf(void *arg, const char *name)
{
    struct finding *f = arg;
    struct err e;

    if (strlen(name) != SHELF_NAME)
        return 0;
    f->name = name;
    int rc = shelf_open(f->store, name, false, &f->shelf, &e);
    if (rc == 0)
        (void)!shelf_each(f->shelf.dir, "ck-", "", see, f);
    if (rc == 0 && shelf_alone(&f->shelf)) /* what was half written by who was killed is not listed, and goes */
        rc = waste_clear(&f->shelf, false, &e);
    if (rc < 0)
        log_warn("checkpoints: %s", e.text);
    shelf_close(&f->shelf);
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return x->created_ms != y->created_ms ? (x->created_ms < y->created_ms ? 1 : -1) : strcmp(x->id, y->id);
}

static bool put_one(const struct store *s, const struct found *one, struct dynbuf *out)
{
    struct form_head h;
    struct shelf shelf;
    struct dynbuf b;
    struct err e;

    dynbuf_init(&b, 2 * FORM_HEAD_MAX);
    bool ok = shelf_open(s->dir, one->shelf, false, &shelf, &e) == 0 && shelf_head(&shelf, one->id, &b, &h, &e) == 0;
    h.reach = SPAN_NONE; /* which is long, and asked for of one alone */
    if (ok)
        form_put_head(out, &h);
    shelf_close(&shelf);
    dynbuf_free(&b);
    return ok;
}

/* bool there are more, then heads. */
int store_list(const struct store *s, const struct order *o, struct dynbuf *out, struct err *e)
{
    struct finding f = {.store = s->dir, .order = o, .all = calloc(FOUND_MAX, sizeof(*f.all))};
    size_t at = 0, n = 0;

    if (f.all == NULL)
        return err_set(e, "there is no memory for it");
    if (s->away != NULL && o->what == ORDER_LIST && away_look(s->away, o->tenant, SPAN_NONE, e) != 0) {
        free(f.all);
        return -1;
    }
    if (shelf_each(s->dir, "", "", see_shelf, &f) != 0) {
        free(f.all);
        return err_errno(e, "the folder of checkpoints cannot be read");
    }
    qsort(f.all, f.n, sizeof(*f.all), newest_first);
    for (size_t i = 0; i < f.n && o->which.n > 0; i++)
        if (span_eq(span_str(f.all[i].id), o->which))
            at = i + 1;
    msg_put_u8(out, f.n - at > ORDER_LIST_MAX);
    for (; at < f.n && n < ORDER_LIST_MAX; at++)
        n += put_one(s, &f.all[at], out); /* one that has gone meanwhile is not said */
    free(f.all);
    return dynbuf_ok(out) ? 0 : err_set(e, "there is no memory for it");
}

/* --- one of them --------------------------------------------------------------------------- */

int store_find(const struct store *s, const struct order *o, struct shelf *shelf, char id[FORM_ID + 1], struct err *e)
{
    int rc = shelf_find(s->dir, o->tenant, o->which, shelf, id, e);
    bool looks = rc == 1 && s->away != NULL && o->what != ORDER_FORGET && o->what != ORDER_LOOK_STEP &&
                 !form_stays_here(o->name);

    if (looks && away_look(s->away, o->tenant, o->which, e) != 0)
        return -1;
    if (looks)
        rc = shelf_find(s->dir, o->tenant, o->which, shelf, id, e);
    return rc == 0 && s->away != NULL ? away_place(s->away, shelf, o->tenant, e) : rc;
}

/* What an idle sandbox is kept in, or a step may be undone from, is nobody's to remove, also by its id. */
static bool is_held(struct span name)
{
    return span_eq(name, FORM_OF_IDLE) || span_eq(name, FORM_OF_UNDO);
}

/* A damaged one is called nothing: it can be removed. */
static bool is_called(const struct shelf *s, const char *id, bool is(struct span name))
{
    struct form_head h;
    struct dynbuf b;
    struct err e;

    dynbuf_init(&b, 2 * FORM_HEAD_MAX);
    bool does = shelf_head(s, id, &b, &h, &e) == 0 && is(h.name);
    dynbuf_free(&b);
    return does;
}

int store_look(const struct store *s, const struct order *o, struct dynbuf *out, struct err *e)
{
    char id[FORM_ID + 1];
    struct form_head h;
    struct shelf shelf;
    struct dynbuf b;

    dynbuf_init(&b, 2 * FORM_HEAD_MAX);
    int rc = store_find(s, o, &shelf, id, e);
    if (rc == 0)
        rc = shelf_head(&shelf, id, &b, &h, e);
    if (rc == 0 && (span_eq(h.name, FORM_OF_IDLE) ||
                    (span_eq(h.name, FORM_OF_UNDO) && o->what != ORDER_LOOK_STEP))) /* nobody's to begin with */
        rc = 1;
    if (rc == 0)
        form_put_head(out, &h);
    shelf_close(&shelf);
    dynbuf_free(&b);
    if (rc != 1)
        return rc;
    *s->how = STORE_MISSING;
    return err_set(e, ORDER_NO_SUCH);
}

/* --- an end -------------------------------------------------------------------------------- */

/* there: it may lie elsewhere as well, from where it goes later (store_tidy), and is never taken again, also while no
 * such store is configured: there may be one again. */
static int remove_one(const struct store *s, const struct shelf *shelf, const char *id, bool there, struct err *e)
{
    int lock = there ? shelf_names_lock(s->dir) : -1;
    bool done = (!there || (lock >= 0 && away_gone(shelf, id) == 0)) && waste_mark(shelf) == 0 &&
                unlinkat(shelf->dir, id, 0) == 0 && fsync(shelf->dir) == 0;

    if (!done)
        (void)err_errno(e, "the checkpoint cannot be removed");
    if (lock >= 0)
        close(lock);
    return done ? 0 : -1;
}

int store_remove(const struct store *s, const struct order *o, struct dynbuf *out, struct err *e)
{
    char id[FORM_ID + 1];
    struct shelf shelf;
    struct err why;

    int rc = store_find(s, o, &shelf, id, e);
    if (rc == 0 && o->what == ORDER_REMOVE && is_called(&shelf, id, is_held))
        rc = 1;
    if (rc == 0)
        rc = remove_one(s, &shelf, id, !is_called(&shelf, id, form_stays_here), e);
    /* What another one of its owner needs stays. While one is written or read, all of it does, until the next time.
     */
    if (rc == 0 && shelf_alone(&shelf) && waste_clear(&shelf, true, &why) != 0)
        log_warn("checkpoints: %s", why.text);
    if (rc == 0)
        msg_put_span(out, span_str(id));
    shelf_close(&shelf);
    if (rc != 1)
        return rc;
    *s->how = STORE_MISSING;
    return err_set(e, ORDER_NO_SUCH);
}

struct sweep {
    const struct store *store;
    const struct order *order;
    const struct shelf *shelf;
};

/* Of all that was made for a fork or a step, or of one sandbox what was made for forks or, with the name of that, for
 * steps of a generation up to the order's: another one of its name may have steps by now. */
static bool is_swept(const struct form_head *h, const struct order *o)
{
    bool fork = span_eq(h->name, FORM_OF_FORK), step = span_eq(h->name, FORM_OF_UNDO);

    if (o->which.n == 0)
        return fork || (step && span_eq(o->name, FORM_OF_UNDO));
    return span_eq(h->sandbox, o->which) && span_eq(h->tenant, o->tenant) &&
           (span_eq(o->name, FORM_OF_UNDO) ? step && h->generation <= o->generation : fork);
}

static int sweep_one(void *arg, const char *id)
{
    const struct sweep *w = arg;
    const struct shelf *s = w->shelf;
    struct form_head h;
    struct dynbuf b;
    struct err e;

    if (!form_is_id(span_str(id)))
        return 0;
    dynbuf_init(&b, 2 * FORM_HEAD_MAX);
    if (shelf_head(s, id, &b, &h, &e) == 0 && is_swept(&h, w->order) &&
        (waste_mark(s) != 0 || unlinkat(s->dir, id, 0) != 0))
        log_warn("checkpoints: %s, of a fork or a step, cannot be removed", id);
    dynbuf_free(&b);
    return 0;
}

static int sweep_shelf(void *arg, const char *name)
{
    struct sweep *w = arg;
    struct shelf shelf;
    struct err e;

    if (strlen(name) != SHELF_NAME)
        return 0;
    int rc = shelf_open(w->store->dir, name, false, &shelf, &e);
    w->shelf = &shelf;
    if (rc == 0 && shelf_each(shelf.dir, "ck-", "", sweep_one, w) != 0)
        rc = err_errno(&e, "a folder of checkpoints cannot be read");
    if (rc == 0 && shelf_alone(&shelf))
        rc = waste_clear(&shelf, false, &e);
    if (rc < 0)
        log_warn("checkpoints: %s", e.text);
    shelf_close(&shelf);
    return 0;
}

int store_sweep(const struct store *s, const struct order *o, struct err *e)
{
    struct sweep w = {.store = s, .order = o};

    return shelf_each(s->dir, "", "", sweep_shelf, &w) == 0
               ? 0
               : err_errno(e, "the folder of checkpoints cannot be read");
}

struct tidy {
    const struct store *store;
    char first[SHELF_NAME + 1]; /* of these names, or (turned) of those before it */
    bool turned;
    unsigned left, bad; /* left: shelves that are not done; bad: of these, of which there is something to say */
    struct err *err;
};

/* One that cannot be done is in the way of no other. */
static int tidy_shelf(void *arg, const char *name)
{
    struct tidy *t = arg;
    struct shelf shelf;

    if (strlen(name) != SHELF_NAME || (strcmp(name, t->first) < 0) != t->turned)
        return 0;
    int rc = shelf_open(t->store->dir, name, false, &shelf, t->err);
    if (rc > 0) {
        shelf_close(&shelf);
        return 0;
    }
    if (rc == 0 && shelf_alone(&shelf))
        rc = waste_clear(&shelf, false, t->err);
    if (rc == 0)
        rc = shelf_share(&shelf) == 0 ? away_tidy(t->store->away, &shelf, t->err)
                                      : err_errno(t->err, "the folder of checkpoints cannot be locked");
    t->left += rc != 0;
    if (rc < 0 && t->bad++ == 0) /* as a rule it is the same for all */
        log_warn("checkpoints: what was removed is still in the checkpoint store, and is tried again: %s",
                 t->err->text);
    shelf_close(&shelf);
    return 0;
}

/* It may be ended before it is done: each time it begins with another one. */
int store_tidy(const struct store *s, struct err *e)
{
    struct tidy t = {.store = s, .err = e};
    struct id first;

    if (s->away == NULL)
        return 0;
    if (id_new(&first) != 0)
        return err_set(e, "the system has no randomness to give");
    hex_text(span_of(first.b, sizeof(first.b)), t.first);
    bool read = shelf_each(s->dir, "", "", tidy_shelf, &t) == 0;
    t.turned = true;
    if (!read || shelf_each(s->dir, "", "", tidy_shelf, &t) != 0)
        return err_errno(e, "the folder of checkpoints cannot be read");
    return t.left == 0 ? 0 : err_set(e, "not all that was removed is gone from the checkpoint store yet");
}
