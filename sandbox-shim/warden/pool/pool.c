/* The pool: sandboxes that are started before anybody asks for them, one kind (an image and limits) a row of the
 * configuration. Nothing runs in one but its first process, and it has no name; who asks for one like it is given it,
 * and it is theirs alone from then on, to its end. It is one more of the warden's sandboxes: the parent started it,
 * its cgroup counts it, and it ends with whatever ends all. */
#include "sandbox-shim/warden/pool/pool.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/msg.h"

/* Questions of ours to the parent are told from the desk's by this bit of their number. */
#define OURS (UINT64_C(1) << 63)

struct row {
    char image[BOX_NAME_MAX + 1]; /* empty: the machine's own files */
    struct wire_box is;           /* without its names */
    uint64_t cpu_percent, size;
    bool asked; /* for its image's digest */
};

struct pool {
    struct timer *timer;
    bool strict;
    uint64_t not_before_ms;
    uint64_t era; /* of its rows: an answer of before is nobody's */
    size_t nrows, next;
    struct row row[POOL_ROWS_MAX];
};

static bool same_kind(const struct box *b, const struct wire_box *is, uint64_t cpu_percent)
{
    return b->is.memory == is->memory && b->is.pids == is->pids && b->is.disk == is->disk &&
           b->is.files == is->files && b->cpu_percent == cpu_percent;
}

static bool of_row(const struct box *b, const struct row *r)
{
    return b->waits && b->state != BOX_ENDING && span_eq(b->is.image, span_str(r->image)) &&
           same_kind(b, &r->is, r->cpu_percent);
}

static size_t count(const struct warden *w, const struct row *r)
{
    size_t n = 0;

    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        n += r != NULL ? of_row(b, r) : b->waits && b->state != BOX_ENDING;
    return n;
}

/* Its end is no fault: whoever ends it knows why. */
static void let_go(struct box *b, const char *why)
{
    struct pool *p = b->warden->pool;
    uint64_t before = p->not_before_ms;

    box_end(b, why);
    p->not_before_ms = before;
}

/* --- those that are to wait ------------------------------------------------------------ */

/* Whoever is asked for comes first, and one that waits is started at a time. */
static bool something_starts(const struct warden *w)
{
    for (const struct box *b = w->boxes; b != NULL; b = b->next)
        if (b->state == BOX_ASKED || b->state == BOX_STARTING || b->state == BOX_FILLING)
            return true;
    return false;
}

static void ask_image(struct warden *w, struct row *r)
{
    struct pool *p = w->pool;
    struct dynbuf *m = chan_begin(w->parent, M_BOX_IMAGE, OURS | p->era << 8 | (uint64_t)(r - p->row));

    if (m == NULL)
        return;
    msg_put_span(m, span_str(r->image));
    r->asked = chan_commit(w->parent) == 0;
}

static void refill(void *arg)
{
    struct warden *w = arg;
    struct pool *p = w->pool;

    if (!w->known || something_starts(w)) /* whose end is looked at again */
        return;
    for (size_t i = 0; i < p->nrows; i++) {
        struct row *r = &p->row[(p->next + i) % p->nrows];
        if (r->asked)
            return;
        if (count(w, r) < r->size) {
            p->next = (size_t)(r - p->row) + 1;
            ask_image(w, r);
            return;
        }
    }
}

int pool_begin(struct warden *w)
{
    w->pool = calloc(1, sizeof(*w->pool));
    if (w->pool != NULL)
        w->pool->timer = timer_new(w->loop, refill, w);
    return w->pool != NULL && w->pool->timer != NULL ? 0 : -1;
}

void pool_look(struct warden *w, enum pool_why why)
{
    struct pool *p = w->pool;
    uint64_t now = loop_now(w->loop), at = now + (why == POOL_WAITS ? POOL_NEXT_MS : POOL_SETTLE_MS);

    if (p == NULL || p->nrows == 0)
        return;
    if (why == POOL_FAILED)
        p->not_before_ms = now + POOL_AGAIN_MS;
    timer_set(p->timer, (at > p->not_before_ms ? at : p->not_before_ms) - now);
}

/* The files of an image may be others by now: those that were made of the ones before are nobody's choice any more.
 */
static void end_stale(struct warden *w, const struct row *r, struct span digest)
{
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        if (of_row(b, r) && !span_eq(b->is.digest, digest))
            let_go(b, "its image is another now");
}

static void start(struct warden *w, struct row *r, struct span digest)
{
    struct box_order o = {.is = r->is, .cpu_percent = r->cpu_percent, .strict = w->pool->strict, .waits = true};

    end_stale(w, r, digest);
    if (something_starts(w) || count(w, r) >= r->size)
        return;
    o.is.image = span_str(r->image);
    o.is.digest = digest;
    const char *why = box_start(w, 0, &o);
    if (why != NULL)
        log_debug("no sandbox waits for who asks for one of image %s: %s", r->image[0] ? r->image : "host", why);
}

bool pool_image(struct warden *w, struct frame *f)
{
    struct pool *p = w->pool;
    struct msg_in m = msg_in(f->payload);
    bool there = msg_get_bool(&m);
    struct span digest = msg_get_span(&m, BOX_DIGEST_MAX);
    size_t i = f->id & 0xff;

    (void)msg_get_span(&m, CHAN_PAYLOAD_MAX);
    if (!(f->id & OURS))
        return false;
    if (p == NULL || i >= p->nrows || f->id != (OURS | p->era << 8 | i))
        return true;
    struct row *r = &p->row[i];
    r->asked = false;
    if (msg_end(&m) != 0 || !there || (digest.n > 0 && !box_digest_ok(digest)) || (r->image[0] && digest.n == 0)) {
        log_warn("no sandbox waits for who asks for one of image %s: there is no such image",
                 r->image[0] ? r->image : "host");
        pool_look(w, POOL_FAILED);
        return true;
    }
    start(w, r, digest);
    return true;
}

/* --- which are to ------------------------------------------------------------------------ */

static uint64_t or_usual(uint64_t v, uint64_t usual)
{
    return v != 0 ? v : usual;
}

static void read_row(struct msg_in *m, struct row *r)
{
    enum { MIB = 1024 * 1024 };

    struct span image = msg_get_span(m, BOX_NAME_MAX);

    *r = (struct row){.image = ""};
    (void)snprintf(r->image, sizeof(r->image), "%.*s", SPAN_FMT(image));
    r->size = msg_get_u16(m);
    r->is.memory = or_usual(msg_get_u64(m), (uint64_t)BOX_MEMORY_MIB * MIB);
    r->is.pids = or_usual(msg_get_u64(m), BOX_PIDS);
    r->cpu_percent = or_usual(msg_get_u64(m), BOX_CPU_PERCENT);
    r->is.disk = or_usual(msg_get_u64(m), (uint64_t)BOX_DISK_MIB * MIB);
    r->is.files = or_usual(msg_get_u64(m), BOX_FILES);
}

/* More of them than are to wait, or of no row. */
static void end_surplus(struct warden *w)
{
    const struct pool *p = w->pool;
    size_t left[POOL_ROWS_MAX];

    for (size_t i = 0; i < p->nrows; i++)
        left[i] = p->row[i].size;
    for (struct box *b = w->boxes; b != NULL; b = b->next) {
        bool stays = false;
        if (!b->waits || b->state == BOX_ENDING)
            continue;
        for (size_t i = 0; i < p->nrows && !stays; i++)
            if (of_row(b, &p->row[i]) && b->strict == p->strict && left[i] > 0) {
                left[i]--;
                stays = true;
            }
        if (!stays)
            let_go(b, "none like it is to wait any more");
    }
}

void pool_told(struct warden *w, struct frame *f)
{
    struct pool *p = w->pool;
    struct msg_in m = msg_in(f->payload);
    bool strict = msg_get_bool(&m);
    size_t n = msg_get_u16(&m);

    if (p == NULL || m.bad || n > POOL_ROWS_MAX) {
        log_error("which sandboxes are to wait cannot be read");
        return;
    }
    p->strict = strict;
    p->nrows = n;
    p->next = 0;
    p->era++;
    for (size_t i = 0; i < n; i++)
        read_row(&m, &p->row[i]);
    if (msg_end(&m) != 0) {
        log_error("which sandboxes are to wait cannot be read");
        p->nrows = 0;
    }
    p->not_before_ms = 0;
    end_surplus(w);
    pool_look(w, POOL_WAITS);
}

/* --- who asks ---------------------------------------------------------------------------- */

/* In all that cannot be changed any more; who wants its limits held has one whose are. Whoever has a network is
 * started anew, as its listener is its own. */
static bool is_like(const struct box *b, const struct box_order *o)
{
    return b->waits && b->state == BOX_READY && o->is.lane.n == 0 && o->is.extras.n == 0 &&
           span_eq(b->is.image, o->is.image) && span_eq(b->is.digest, o->is.digest) &&
           same_kind(b, &o->is, o->cpu_percent) && (!o->strict || b->version != 0);
}

/* The oldest: the last in the list. */
bool pool_claim(struct warden *w, uint64_t asker, const struct box_order *o)
{
    struct box *found = NULL;

    for (struct box *b = w->boxes; b != NULL; b = b->next)
        if (is_like(b, o))
            found = b;
    if (found == NULL)
        return false;
    box_claim(found, asker, o);
    pool_look(w, POOL_ANY);
    return true;
}

bool pool_room(struct warden *w, bool waits)
{
    size_t waiting = count(w, NULL);

    if (waits)
        return waiting < POOL_MAX && w->nboxes + waiting < WARDEN_BOXES_MAX;
    if (w->nboxes + waiting < WARDEN_BOXES_MAX)
        return true;
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        if (b->waits && b->state != BOX_ENDING) {
            let_go(b, "another one is asked for, and there is no more room");
            return true;
        }
    return false;
}
