#include "web-approval/pictures/pictures.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/memfd.h"
#include "common/net/loop.h"
#include "web-approval/ask.h"
#include "web-approval/viewer/packed.h"

const struct viewer_ops *pictures_by;

struct kept {
    struct digest of;
    struct viewed is;
    int png; /* -1: it cannot be shown */
    uint64_t size, used;
};

/* A page that waits for pictures. */
struct wish {
    struct wish *next;
    struct exchange *x;
    struct view *v;
    void (*then)(struct exchange *x, struct view *v);
    size_t which;
    struct digest of[READING_PICTURES];
    int in[READING_PICTURES]; /* sealed, of those that are still to be looked at; else -1 */
    bool runs;
    uint64_t until_ms;
};

struct pictures {
    struct kept kept[PICTURES_KEPT_MAX];
    size_t nkept;
    uint64_t turn, last;
    struct viewing run[PICTURES_VIEWERS_MAX];
    struct wish *wishes; /* the one that came first, first */
};

static struct pictures *pictures_of(struct desk *d)
{
    if (!d->pictures)
        d->pictures = calloc(1, sizeof *d->pictures);
    return d->pictures;
}

/* --- what was made ---------------------------------------------------------- */

static struct kept *kept_find(struct pictures *p, const struct digest *of)
{
    for (size_t i = 0; i < p->nkept; i++)
        if (memcmp(p->kept[i].of.b, of->b, DIGEST_BYTES) == 0) {
            p->kept[i].used = ++p->turn;
            return &p->kept[i];
        }
    return NULL;
}

static void kept_drop(struct pictures *p, size_t i)
{
    if (p->kept[i].png >= 0)
        close(p->kept[i].png);
    p->kept[i] = p->kept[--p->nkept];
}

/* Those that nobody has asked for longest make room. */
static void kept_make_room(struct pictures *p, uint64_t size)
{
    for (;;) {
        uint64_t all = size;
        size_t oldest = 0;
        for (size_t i = 0; i < p->nkept; i++) {
            all += p->kept[i].size;
            if (p->kept[i].used < p->kept[oldest].used)
                oldest = i;
        }
        if (p->nkept == 0 || (p->nkept < PICTURES_KEPT_MAX && all <= PICTURES_KEPT_BYTES_MAX))
            return;
        kept_drop(p, oldest);
    }
}

/* png: taken over. */
static void kept_add(struct pictures *p, const struct digest *of, const struct viewed *is, int png, uint64_t size)
{
    kept_make_room(p, size);
    p->kept[p->nkept++] = (struct kept){*of, *is, png, size, ++p->turn};
}

/* --- who waits -------------------------------------------------------------- */

static bool same_operator(const struct wish *a, const struct wish *b)
{
    return span_eq(span_str(a->x->operator), span_str(b->x->operator));
}

static bool may_wait(const struct pictures *p, const struct wish *w)
{
    size_t all = 0, own = 0;

    for (const struct wish *o = p->wishes; o; o = o->next) {
        all++;
        own += same_operator(o, w);
    }
    return own < PICTURES_WAIT_EACH_MAX && all < PICTURES_WAIT_MAX;
}

static size_t still_to_see(const struct wish *w)
{
    size_t i = 0;

    while (i < READING_PICTURES && w->in[i] < 0)
        i++;
    return i;
}

static void forget(struct wish *w, size_t i)
{
    if (w->in[i] >= 0)
        close(w->in[i]);
    w->in[i] = -1;
}

/* What stands in packages goes with the page. */
static void keep_lists(struct pictures *p, struct wish *w)
{
    struct span list;

    for (size_t i = 0; w->which == PICTURES_ALL && i < w->v->r.npictures; i++) {
        const struct kept *k = w->v->r.picture[i].package ? kept_find(p, &w->of[i]) : NULL;
        if (k && k->png >= 0 && memfd_map(k->png, PACKED_LIST_MAX, &list) == 0) {
            w->v->list[i] = arena_copy(&w->x->arena, list);
            memfd_unmap(&list);
        }
        if (w->v->seen[i].end == VIEW_SHOWN && w->v->r.picture[i].package && w->v->list[i].n == 0)
            w->v->seen[i].end = VIEW_FAILED; /* what was made is gone, or there is no memory for it */
    }
}

/* All was seen that will be: the page goes on. at_once: whoever asked is still on the stack, and hands its answer on.
 */
static void go_on(struct pictures *p, struct wish *w, bool at_once)
{
    struct exchange *x = w->x;
    struct kept *k = w->which < READING_PICTURES ? kept_find(p, &w->of[w->which]) : NULL;

    for (struct wish **at = &p->wishes; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    keep_lists(p, w);
    if (k && k->png >= 0 && k->is.format != VIEW_PACKAGE) {
        x->file = fcntl(k->png, F_DUPFD_CLOEXEC, 0);
        x->file_size = k->size;
    }
    for (size_t i = 0; i < READING_PICTURES; i++)
        forget(w, i);
    if (!at_once && x->desk->loop) {
        x->now_ms = loop_now(x->desk->loop);
        x->wall_ms = loop_wall(x->desk->loop);
    }
    w->v->looked = true;
    w->then(x, w->v);
    free(w);
    if (!at_once && x->status != 0)
        exchange_answered(x);
}

/* --- viewers ---------------------------------------------------------------- */

static bool begin(struct desk *d, struct viewing *run, struct wish *w)
{
    *run = (struct viewing){.id = ++d->pictures->last,
                            .out = memfd_create("picture", MFD_CLOEXEC | MFD_ALLOW_SEALING),
                            .wish = w,
                            .until_ms = w->x->desk->loop ? loop_now(d->loop) + (VIEW_SECONDS + 1) * 1000
                                                         : w->x->now_ms + (VIEW_SECONDS + 1) * 1000};
    w->runs = true;
    return run->out >= 0 && pictures_by && pictures_by->begin(d, run, w->in[still_to_see(w)]);
}

/* The first that waits, of an operator who leaves a viewer to others. */
static struct wish *whose_turn(const struct pictures *p)
{
    for (struct wish *w = p->wishes; w; w = w->next) {
        size_t own = 0;
        for (size_t i = 0; i < PICTURES_VIEWERS_MAX; i++)
            own += p->run[i].id && same_operator(p->run[i].wish, w);
        if (!w->runs && still_to_see(w) < READING_PICTURES && own < PICTURES_VIEWERS_MAX - 1)
            return w;
    }
    return NULL;
}

static void start_more(struct desk *d)
{
    struct pictures *p = d->pictures;
    struct wish *w;

    for (size_t i = 0; i < PICTURES_VIEWERS_MAX; i++)
        if (p->run[i].id == 0 && (w = whose_turn(p)) != NULL && !begin(d, &p->run[i], w))
            p->run[i].until_ms = 0; /* the next look at the clock ends it, when nobody is on the stack who asked */
}

/* Sealed, and as it was said to be; its size, or 0. */
static uint64_t made(const struct viewing *run, const struct viewed *is)
{
    struct span png;
    uint64_t size = 0;

    if (memfd_map(run->out, VIEW_PNG_MAX, &png) != 0)
        return 0;
    if (viewed_made(png, is))
        size = png.n;
    memfd_unmap(&png);
    return size;
}

void pictures_said(struct desk *d, struct viewing *run, const struct viewed *said)
{
    struct pictures *p = d->pictures;
    struct viewed is = said ? *said : (struct viewed){.end = VIEW_FAILED};
    struct wish *w = run->wish;
    size_t i = still_to_see(w);
    uint64_t size = is.end == VIEW_SHOWN ? made(run, &is) : 0;
    int out = run->out;

    if (is.end == VIEW_SHOWN && size == 0)
        is = (struct viewed){.end = VIEW_FAILED};
    if (pictures_by)
        pictures_by->end(d, run);
    *run = (struct viewing){.out = -1};
    w->v->seen[i] = is;
    if (size == 0 && out >= 0)
        close(out);
    if (is.end != VIEW_FAILED) /* else the next one may have more luck */
        kept_add(p, &w->of[i], &is, size ? out : -1, size);
    forget(w, i);
    w->runs = false;
    if (still_to_see(w) == READING_PICTURES)
        go_on(p, w, false);
    start_more(d);
}

struct viewing *pictures_run(struct desk *d, uint64_t id)
{
    for (size_t i = 0; d->pictures && i < PICTURES_VIEWERS_MAX; i++)
        if (d->pictures->run[i].id == id && id != 0)
            return &d->pictures->run[i];
    return NULL;
}

void pictures_lost(struct desk *d, const struct chan *c)
{
    for (size_t i = 0; d->pictures && i < PICTURES_VIEWERS_MAX; i++)
        if (d->pictures->run[i].id && d->pictures->run[i].chan == c)
            pictures_said(d, &d->pictures->run[i], NULL);
}

void pictures_expire(struct desk *d, uint64_t now)
{
    struct pictures *p = d->pictures;

    if (!p || !p->wishes)
        return;
    for (size_t i = 0; i < PICTURES_VIEWERS_MAX; i++)
        if (p->run[i].id && p->run[i].until_ms <= now)
            pictures_said(d, &p->run[i], NULL);
    for (struct wish *w = p->wishes, *next; w; w = next) {
        next = w->next;
        if (w->runs || w->until_ms > now)
            continue;
        for (size_t i = 0; i < READING_PICTURES; i++)
            if (w->in[i] >= 0)
                w->v->seen[i].end = VIEW_BUSY;
        go_on(p, w, false);
        next = p->wishes; /* who went on may have changed the row */
    }
}

/* --- a request's pictures ----------------------------------------------------- */

/* What it is of, and where it is not known yet, its bytes where a viewer can read them. */
static void take(struct pictures *p, struct wish *w, size_t i, uint64_t *bytes)
{
    struct span s = w->v->r.picture[i].bytes;
    const struct kept *k;

    w->v->seen[i] = (struct viewed){.end = VIEW_FAILED};
    if (w->which != PICTURES_ALL && w->which != i)
        return;
    if (s.n > PICTURES_BYTES_MAX - *bytes) {
        w->v->seen[i].end = VIEW_LARGE;
        return;
    }
    *bytes += s.n;
    digest_of(s, &w->of[i]);
    if ((k = kept_find(p, &w->of[i])) != NULL)
        w->v->seen[i] = k->is;
    else
        w->in[i] = memfd_of(s);
}

void pictures_see(struct exchange *x, struct view *v, size_t which, void (*then)(struct exchange *x, struct view *v))
{
    struct pictures *p = pictures_of(x->desk);
    struct wish *w = p ? calloc(1, sizeof *w) : NULL, **end;
    struct arena a;
    uint64_t bytes = 0;

    v->looked = true;
    memset(v->seen, 0, sizeof v->seen);
    if (!w) { /* nothing is seen, and so nothing is shown */
        then(x, v);
        return;
    }
    *w = (struct wish){.x = x, .v = v, .then = then, .which = which, .until_ms = x->now_ms + PICTURES_MS};
    memset(w->in, -1, sizeof w->in);
    v->looked = false;
    arena_init(&a, READING_ARENA);
    page_read(x, v, &a);
    for (size_t i = 0; i < v->r.npictures; i++)
        take(p, w, i, &bytes);
    arena_free(&a);
    bool waits = still_to_see(w) < READING_PICTURES;
    if (waits && !may_wait(p, w)) {
        for (size_t i = 0; i < READING_PICTURES; i++)
            if (w->in[i] >= 0)
                v->seen[i].end = VIEW_BUSY;
        waits = false;
    }
    if (!waits) {
        go_on(p, w, true);
        return;
    }
    for (end = &p->wishes; *end;)
        end = &(*end)->next;
    *end = w;
    start_more(x->desk);
}
