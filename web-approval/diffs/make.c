/* The way of one diff, each step asked of others, as of a task (tasks/api_tasks.c):
 *
 *   the held body -> a sandbox with the lane is started -> the body is written there -> git looks at it ->
 *   what it found is read -> the sandbox is destroyed -> diff_made or diff_failed
 *
 * Nobody's request waits for it: its exchange has no client. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/memfd.h"
#include "common/net/loop.h"
#include "proxy/extras/wire_extras.h"
#include "proxy/msgs.h"
#include "sandbox-shim/inside/diff/shim_diff.h"
#include "sandbox-shim/inside/shim_talk.h"
#include "web-approval/api/steps.h"
#include "web-approval/diffs/diffs.h"
#include "web-approval/tasks/chore.h"

/* A tenant that no key can have: nobody reaches these sandboxes by one. */
#define TENANT "Diffs"
enum {
    MIB = 1024 * 1024,
    FILE_S = 60,
    MARGIN_S = 120,
    URL_MAX = 2048,
    TYPE_MAX = 128,
    BOX_OWN_MIB = 1024, /* memory, and the disk below it: a repository that needs more is not compared */
    DISK_OWN_MIB = 768,
    PIDS_OWN = 64,
    FILES_OWN = 256,
};

struct making {
    struct diff *one; /* NULL: it is over */
    enum diff_kind kind;
    struct ticket t;
    struct span body;
    struct push push;
    char url[URL_MAX], pack_at[24], type[TYPE_MAX]; /* type: of an image, as the request says it */
    struct starting start;
    struct chore chore;
    bool runs; /* its sandbox may */
    const char *why;
    bool again;
    struct dynbuf result;
};

/* --- its end --------------------------------------------------------------------------- */

static void say(struct making *m, struct desk *d)
{
    struct diff *one = m->one;

    m->one = NULL;
    if (!one)
        return;
    if (m->why)
        diff_failed(d, one, m->why, m->again);
    else
        diff_made(d, one, dynbuf_span(&m->result));
}

static void give_back(struct exchange *x)
{
    struct making *m = x->holds;

    if (m->runs)
        api_started_not_wanted(x->desk, span_str(m->start.name));
    if (m->one && !m->why && m->result.n == 0) { /* what it asked could not be done now */
        m->why = "it could not be made now: a process of the gateway does not answer, or has no room";
        m->again = true;
    }
    say(m, x->desk);
    chore_drop(&m->chore);
    dynbuf_free(&m->result);
}

static void gone(struct exchange *x)
{
    struct making *m = x->holds;

    m->runs = false;
    reply_empty(x, 204);
}

static void finish(struct exchange *x, const char *why, bool again)
{
    struct making *m = x->holds;

    m->why = why;
    m->again = again;
    api_destroy_go(x, gone);
}

/* --- in its sandbox ---------------------------------------------------------------------- */

static void result_read(struct exchange *x, const struct transfer_end *e)
{
    struct making *m = x->holds;

    if (e->how == SB_EXITED && e->code == 0 && e->said.n > 0 && dynbuf_add(&m->result, e->said) == 0)
        finish(x, NULL, false);
    else
        finish(x, e->how != SB_EXITED ? "its sandbox was lost" : "it is larger than is taken", e->how != SB_EXITED);
}

static struct dynbuf *file_ask(struct exchange *x, enum talk_file what, struct span path)
{
    struct making *m = x->holds;
    struct dynbuf *b = chore_begin(&m->chore, x, M_SB_FILES);

    if (!b)
        return NULL;
    msg_put_span(b, span_str(m->start.name));
    msg_put_u64(b, FILE_S * 1000);
    msg_put_u8(b, (uint8_t)what);
    msg_put_u16(b, TALK_MODE_NONE);
    msg_put_u8(b, what == TALK_FILE_READ);
    msg_put_u64(b, 0);
    msg_put_u64(b, what == TALK_FILE_READ ? DIFFS_RESULT_MAX : 0);
    msg_put_span(b, path);
    msg_put_span(b, SPAN_NONE);
    return b;
}

static void looked(struct exchange *x, const struct transfer_end *e)
{
    struct making *m = x->holds;

    if (e->how == SB_TIMED_OUT)
        finish(x, "it took longer than it may (150 s)", false);
    else if (e->how != SB_EXITED)
        finish(x,
               e->how == SB_LOST ? "its sandbox was lost"
                                 : "a program in its sandbox was ended: it needed more memory than it may have",
               e->how == SB_LOST);
    else if (e->code != 0)
        finish(x, "what looks at it did not do so", false);
    else if (file_ask(x, TALK_FILE_READ, SPAN(DIFF_FILE)))
        chore_go(&m->chore, SPAN_NONE, DIFFS_RESULT_MAX, result_read);
}

/* What is run, and with which words behind its name. */
static void words_put(struct dynbuf *b, const struct making *m)
{
    const struct push *p = &m->push;
    bool push = m->kind == DIFF_OF_PUSH, image = m->kind == DIFF_OF_IMAGE;

    msg_put_u16(b, push ? (uint16_t)(5 + 2 * p->n) : image ? 4 : 3);
    msg_put_u16(b, 0);
    msg_put_span(b, SPAN(PUSH_DIFF_SHIM));
    msg_put_span(b, push ? SPAN(PUSH_DIFF_MODE) : image ? SPAN(IMAGE_DIFF_MODE) : SPAN(PACKAGE_DIFF_MODE));
    msg_put_span(b, span_str(m->url));
    if (image)
        msg_put_span(b, span_str(m->type));
    if (!push)
        return;
    msg_put_span(b, span_str(m->pack_at));
    msg_put_span(b, span_str(p->format));
    for (size_t i = 0; i < p->n; i++) {
        msg_put_span(b, p->old_id[i]);
        msg_put_span(b, p->new_id[i]);
    }
}

static void written(struct exchange *x, const struct transfer_end *e)
{
    struct making *m = x->holds;
    struct dynbuf *b;

    if (e->how != SB_EXITED || e->code != 0) {
        finish(x, "it could not be put into its sandbox", e->how != SB_EXITED);
        return;
    }
    if (!(b = chore_begin(&m->chore, x, M_SB_EXEC)))
        return;
    msg_put_span(b, span_str(m->start.name));
    msg_put_u64(b, (uint64_t)DIFFS_COMMAND_S * 1000);
    msg_put_u64(b, 0); /* bytes of its output: none is told */
    msg_put_u8(b, TALK_NO_INPUT);
    msg_put_u16(b, 0);
    msg_put_u16(b, 0);
    msg_put_u8(b, false);
    words_put(b, m);
    msg_put_span(b, SPAN_NONE);
    chore_go(&m->chore, SPAN_NONE, 0, looked);
}

static void started(struct exchange *x)
{
    struct making *m = x->holds;

    m->runs = true;
    if (file_ask(x, TALK_FILE_WRITE, SPAN(PUSH_FILE)))
        chore_go(&m->chore, m->body, 0, written);
}

/* --- before it ----------------------------------------------------------------------------- */

static int start_take(struct exchange *x, struct making *m)
{
    struct json name = {.type = JSON_STRING};
    const struct member named = {.name = "name", .value = &name}, none = {.name = ""};
    struct starting *s = &m->start;
    char text[BOX_NAME_MAX + 1], random[ID_TEXT + 1];
    struct id id;

    if (id_new(&id) != 0)
        return -1;
    id_text(&id, random); /* what another desk has begun may still run */
    (void)snprintf(text, sizeof(text), "diff-%.10s", random);
    name.text = span_str(text);
    api_start_begin(x->desk, s);
    if (api_start_take(x, s, &named, &none, &none, &none) != 0)
        return -1;
    s->tenant = SPAN(TENANT);
    s->box.memory = (uint64_t)BOX_OWN_MIB * MIB;
    s->box.disk = (uint64_t)DISK_OWN_MIB * MIB;
    s->box.pids = PIDS_OWN;
    s->box.files = FILES_OWN;
    s->timeout_s = DIFFS_COMMAND_S + 2 * FILE_S + MARGIN_S;
    (void)snprintf(s->image, sizeof(s->image), "%s", x->desk->diff_image);
    (void)snprintf(s->lane, sizeof(s->lane), "%s", x->desk->diff_lane);
    s->box.lane = span_str(s->lane);
    s->then = started;
    s->bound = true;
    x->arg = span_str(s->name);
    return api_extras_give(x, s, &(struct wire_extras){.tenant = SPAN_NONE});
}

/* The same place; of a push without what is asked there. */
static bool url_make(struct making *m)
{
    const struct ticket *t = &m->t;
    struct span path = t->path;

    if (m->kind == DIFF_OF_PUSH && !span_ends(path, SPAN("/git-receive-pack")))
        return false;
    path.n -= m->kind == DIFF_OF_PUSH ? sizeof("/git-receive-pack") - 1 : 0;
    int n = snprintf(m->url, sizeof(m->url), "%.*s://%.*s:%llu%.*s", SPAN_FMT(t->scheme), SPAN_FMT(t->host),
                     (unsigned long long)t->port, SPAN_FMT(path));
    return n > 0 && (size_t)n < sizeof(m->url) && memchr(path.p, '\0', path.n) == NULL;
}

/* What the request says it is: once, and in plain words, or registries may take it for something else. */
static bool type_take(struct exchange *x, struct making *m)
{
    const struct json *list = json_parse(m->t.fields_json, &x->arena);
    size_t n = 0;

    for (const struct json *f = list ? list->child : NULL; f; f = f->next) {
        struct span name = f->child ? f->child->text : SPAN_NONE;
        struct span value = f->child && f->child->next ? f->child->next->text : SPAN_NONE;
        if (span_ieq(name, SPAN("content-encoding")))
            return false;
        if (!span_ieq(name, SPAN("content-type")))
            continue;
        n++;
        if (value.n == 0 || value.n >= sizeof(m->type))
            return false;
        (void)snprintf(m->type, sizeof(m->type), "%.*s", SPAN_FMT(value));
    }
    return n == 1;
}

static bool deletes_alone(struct making *m)
{
    if (m->kind != DIFF_OF_PUSH || m->push.pack_at > 0)
        return false;
    (void)dynbuf_add(&m->result, SPAN("{\"version\":1,\"refs\":["));
    for (size_t i = 0; i < m->push.n; i++)
        (void)dynbuf_addf(&m->result, "%s{\"state\":\"deleted\"}", i ? "," : "");
    (void)dynbuf_add(&m->result, SPAN("]}"));
    return true;
}

static void body_came(struct exchange *x, struct frame *f)
{
    struct making *m = x->holds;
    struct body b;

    if (api_body_read(f, &b) != 0) {
        m->why = f ? "the held body is not kept any more" : "the ledger did not answer";
        m->again = f == NULL;
    } else if (b.fd >= 0 && (b.size > DIFFS_PUSH_MAX || memfd_map(b.fd, b.size, &x->mapped) != 0)) {
        m->why = "it is larger than is compared (64 MiB)";
    } else {
        m->body = b.fd >= 0 ? x->mapped : arena_copy(&x->arena, b.bytes);
        m->why = !m->body.p                ? "there is no memory for it"
                 : m->kind == DIFF_OF_PUSH ? push_read(m->body, &m->push)
                                           : NULL;
    }
    if (b.fd >= 0)
        close(b.fd);
    if (!m->why && !diff_names(m->one, &m->push))
        m->why = "there is no memory for it";
    if (!m->why && !deletes_alone(m) && !url_make(m))
        m->why = "its place cannot be read as that of a repository, a package or an image";
    if (!m->why && m->kind == DIFF_OF_IMAGE && !type_take(x, m))
        m->why = "the request does not say once, in its Content-Type, what it puts there";
    (void)snprintf(m->pack_at, sizeof(m->pack_at), "%zu", m->push.pack_at);
    if (m->why || m->result.n > 0)
        reply_empty(x, 204);
    else if (start_take(x, m) != 0) {
        if (x->status == 0)
            reply_empty(x, 503);
    } else {
        x->step = &m->start;
        api_start_go(x);
    }
}

static struct exchange *exchange_alone(struct desk *d)
{
    struct exchange *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->desk = d;
    x->place = PLACE_CONTROL;
    x->file = -1;
    if (d->loop) {
        x->now_ms = loop_now(d->loop);
        x->wall_ms = loop_wall(d->loop);
    }
    (void)snprintf(x->operator, sizeof(x->operator), "the desk");
    dynbuf_init(&x->out, DESK_TEXT * 4);
    arena_init(&x->arena, DIFFS_PUSH_MAX);
    return x;
}

void diff_make(struct desk *d, struct diff *one)
{
    struct exchange *x = exchange_alone(d);
    struct making *m = x ? arena_alloc(&x->arena, sizeof(*m)) : NULL;
    struct err e;
    struct id id;

    if (!m) {
        if (x)
            exchange_answered(x);
        diff_failed(d, one, "there is no memory for it", true);
        return;
    }
    *m = (struct making){.one = one, .kind = one->kind};
    dynbuf_init(&m->result, DIFFS_RESULT_MAX);
    x->holds = m;
    x->over = give_back;
    if (desk_store_ticket(d->store, span_str(one->ticket), &x->arena, &m->t, &e) != 1 ||
        id_parse(m->t.id, &id) != 0) {
        m->why = "its ticket cannot be read";
        m->again = true;
        reply_empty(x, 204);
    } else if (m->kind == DIFF_OF_PACKAGE && (m->why = diff_typed(&m->t, &x->arena)) != NULL) {
        reply_empty(x, 204);
    } else {
        api_body_ask(x, &id, body_came);
    }
    if (x->status != 0)
        exchange_answered(x);
}
