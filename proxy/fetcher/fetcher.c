#include "proxy/fetcher/fetcher.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/crypto/secret.h"
#include "common/log.h"
#include "common/msg.h"
#include "policy/policy.h"
#include "proxy/msgs.h"

enum { ADDRS_MAX = 8, WORDS_MAX = 400, FOUND_MAX = 16 * 1024 };

struct errand {
    struct errand *next;
    struct fetcher *fetcher;
    uint64_t id, job;    /* the keeper's number of it, and ours */
    bool sign_in;        /* FETCH_OIDC */
    struct secret *asks; /* the wire_fetch, with secrets in it */
    struct timer *timer;
    struct chan *chan; /* to its job, once there is one */
    uint64_t timeout_ms;
    struct dynbuf found; /* for its job: for each place that was looked up u8 n, n x (u8 family, span) */
    uint8_t nfound;
};

/* ---- its end ---- */

static void forget(struct errand *r)
{
    struct fetcher *f = r->fetcher;
    for (struct errand **at = &f->errands; *at != NULL; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            f->nerrands--;
            f->nsign_in -= r->sign_in;
            break;
        }
    if (r->chan != NULL)
        (void)chan_send(f->parent, M_JOB_END, r->job, SPAN_NONE);
    chan_free(&r->chan);
    timer_free(&r->timer);
    secret_free(&r->asks);
    dynbuf_free(&r->found);
    free(r);
}

static void tell(struct fetcher *f, uint64_t id, bool busy, const char *why)
{
    struct dynbuf *b = f->keeper != NULL ? chan_begin(f->keeper, M_FETCHED, id) : NULL;
    if (b == NULL)
        return;
    wire_put_fetched(b, &(struct wire_fetched){.busy = busy, .why = span_first(span_str(why), WORDS_MAX)});
    (void)chan_commit(f->keeper);
}

static void fail(struct errand *r, const char *why)
{
    tell(r->fetcher, r->id, false, why);
    forget(r);
}

static void fail_unbegun(struct errand *r, const char *why)
{
    tell(r->fetcher, r->id, true, why);
    forget(r);
}

static void too_late(void *arg)
{
    struct errand *r = arg;
    struct err e;
    err_set(&e, "it took more than %llu s (its timeout:)", (unsigned long long)(r->timeout_ms + 999) / 1000);
    fail(r, e.text);
}

/* ---- its job ---- */

static void from_job(void *arg, struct chan *c, struct frame *f)
{
    struct errand *r = arg;
    if (f->type != M_FETCHED) {
        fail(r, "its job said what is no answer");
        return;
    }
    if (r->fetcher->keeper != NULL)
        (void)chan_send(r->fetcher->keeper, M_FETCHED, r->id, f->payload);
    forget(r);
}

static void job_gone(void *arg, struct chan *c)
{
    fail(arg, "its job ended without an answer; the log may say why");
}

static void start(struct errand *r, enum job_kind kind)
{
    static const struct chan_ops ops = {from_job, job_gone};
    struct fetcher *f = r->fetcher;
    struct dynbuf *b;
    int fd[2] = {-1, -1}, bad = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) != 0)
        goto out;
    if ((b = chan_begin(f->parent, M_JOB, r->job)) == NULL)
        goto out;
    msg_put_u8(b, (uint8_t)kind);
    if (chan_commit_fd(f->parent, fd[1]) != 0)
        goto out;
    r->chan = chan_new(f->loop, fd[0], &ops, r);
    fd[0] = -1;
    if (r->chan == NULL || (b = chan_begin(r->chan, M_FETCH, r->job)) == NULL)
        goto out;
    msg_put_u8(b, r->nfound);
    (void)dynbuf_add(b, dynbuf_span(&r->found));
    msg_put_span(b, span_str(f->roots));
    msg_put_span(b, span_str(f->crl));
    (void)dynbuf_add(b, secret_bytes(r->asks));
    bad = chan_commit(r->chan);
    secret_free(&r->asks);
out:
    if (fd[0] >= 0)
        close(fd[0]);
    if (fd[1] >= 0)
        close(fd[1]);
    if (bad)
        fail_unbegun(r, "its job cannot be started: no descriptors, or no memory");
}

void fetcher_no_job(struct fetcher *f, uint64_t job)
{
    for (struct errand *r = f->errands; r != NULL; r = r->next)
        if (r->job == job) {
            fail_unbegun(r, "its job cannot be started; is the installation complete?");
            return;
        }
}

/* It may be the one that is there: who changes one path says the other again. */
static void take_path(char *to, struct span path)
{
    if (path.n > 0)
        memmove(to, path.p, path.n);
    to[path.n] = '\0';
}

int fetcher_trust(struct fetcher *f, struct span roots, struct span crl)
{
    if (roots.n >= sizeof(f->roots) || crl.n >= sizeof(f->crl))
        return -1;
    take_path(f->roots, roots);
    take_path(f->crl, crl);
    return 0;
}

/* ---- where to ---- */

static void look_up(struct errand *r, const struct wire_upstream *to)
{
    struct fetcher *f = r->fetcher;
    struct dynbuf *b = f->resolver != NULL ? chan_begin(f->resolver, M_RESOLVE, r->job) : NULL;
    if (b == NULL) {
        fail_unbegun(r, "its host cannot be looked up: the resolver is restarting");
        return;
    }
    msg_put_span(b, to->address.n ? to->address : to->host);
    msg_put_u16(b, (uint16_t)to->ncidrs);
    for (size_t i = 0; i < to->ncidrs; i++)
        msg_put_span(b, to->cidr[i]);
    (void)chan_commit(f->resolver);
}

/* One place after the other, each under the number of the job: there is one question of it at a time. */
static void look_up_next(struct errand *r, const struct wire_fetch *ask)
{
    const struct wire_upstream *next = wire_place(ask, r->nfound);
    if (next != NULL)
        look_up(r, next);
    else if (ask->kind == SOURCE_EXEC)
        start(r, JOB_PROGRAM);
    else if (ask->kind == FETCH_GATE)
        start(r, JOB_GATE);
    else if (r->nfound > 0 && ask->kind == FETCH_TELL)
        start(r, JOB_TELL);
    else if (r->nfound > 0 && fetch_is_gate(ask->kind))
        start(r, JOB_ASK);
    else if (r->nfound > 0)
        start(r, JOB_HTTP);
    else
        fail(r, "no host is named that could be asked");
}

/* All of it was read once, and nothing has changed it since. */
static void take_addresses(struct errand *r, struct msg_in *m, unsigned n)
{
    static struct wire_fetch ask;
    struct msg_in asks = msg_in(secret_bytes(r->asks));
    msg_put_u8(&r->found, (uint8_t)n);
    for (unsigned i = 0; i < n; i++) {
        msg_put_u8(&r->found, msg_get_u8(m));
        msg_put_span(&r->found, msg_get_span(m, 16));
    }
    r->nfound++;
    if (m->bad || !dynbuf_ok(&r->found) || wire_get_fetch(&asks, &ask) != 0)
        fail(r, "the addresses of its host cannot be read, or there is no memory");
    else
        look_up_next(r, &ask);
}

static void not_found(struct errand *r, struct span why)
{
    static struct wire_fetch ask;
    struct msg_in asks = msg_in(secret_bytes(r->asks));
    const struct wire_upstream *at = wire_get_fetch(&asks, &ask) == 0 ? wire_place(&ask, r->nfound) : NULL;
    struct err e;
    if (at != NULL && ask.kind == SOURCE_EXEC)
        err_set(&e, "%.*s, which its program may reach, cannot be: %.*s", SPAN_FMT(at->host), SPAN_FMT(why));
    else
        err_set(&e, "its host cannot be reached: %.*s", SPAN_FMT(why));
    fail(r, e.text);
}

static void from_resolver(void *arg, struct chan *c, struct frame *frame)
{
    struct fetcher *f = arg;
    struct errand *r = f->errands;
    struct msg_in m = msg_in(frame->payload);
    unsigned n = msg_get_u8(&m);
    while (r != NULL && (r->job != frame->id || r->chan != NULL))
        r = r->next;
    if (r == NULL || frame->type != M_ADDRESSES)
        return;
    if (n > 0 && n <= ADDRS_MAX) {
        take_addresses(r, &m, n);
        return;
    }
    (void)msg_get_span(&m, 64);
    not_found(r, msg_get_span(&m, WORDS_MAX));
}

/* ---- the keeper's questions ---- */

static void from_keeper(void *arg, struct chan *c, struct frame *frame)
{
    struct fetcher *f = arg;
    struct msg_in m = msg_in(frame->payload);
    static struct wire_fetch ask;
    if (frame->type != M_FETCH || wire_get_fetch(&m, &ask) != 0 || msg_end(&m) != 0) {
        log_error("the keeper said %u, which cannot be read", frame->type);
        if (frame->type == M_FETCH) /* whoever waits for it would wait for ever */
            tell(f, frame->id, false, "what it is asked with cannot be read");
        return;
    }
    bool sign_in = ask.kind == FETCH_OIDC;
    bool room = sign_in ? f->nsign_in < ERRANDS_SIGN_IN : f->nerrands - f->nsign_in < ERRANDS_MAX - ERRANDS_SIGN_IN;
    struct errand *r = room ? calloc(1, sizeof(*r)) : NULL;
    if (r == NULL) {
        tell(f, frame->id, true, "too many values are being fetched; try again shortly");
        return;
    }
    *r = (struct errand){.next = f->errands,
                         .fetcher = f,
                         .id = frame->id,
                         .job = ++f->last,
                         .sign_in = sign_in,
                         .asks = secret_new(frame->payload),
                         .timeout_ms = ask.timeout_ms};
    dynbuf_init(&r->found, FOUND_MAX);
    r->timer = timer_new(f->loop, too_late, r);
    f->errands = r;
    f->nerrands++;
    f->nsign_in += sign_in;
    if (r->asks == NULL || r->timer == NULL) {
        fail_unbegun(r, "out of memory");
        return;
    }
    timer_set(r->timer, ask.timeout_ms + ERRAND_SLACK_MS);
    look_up_next(r, &ask);
}

/* ---- peers ---- */

/* Nobody waits for what it asked: the next keeper asks anew. */
static void keeper_gone(void *arg, struct chan *c)
{
    struct fetcher *f = arg;
    chan_free(&f->keeper);
    while (f->errands != NULL)
        forget(f->errands);
}

static void resolver_gone(void *arg, struct chan *c)
{
    struct fetcher *f = arg;
    chan_free(&f->resolver);
    for (struct errand *r = f->errands, *next; r != NULL; r = next) {
        next = r->next;
        if (r->chan == NULL)
            fail_unbegun(r, "its host cannot be looked up: the resolver is restarting");
    }
}

void fetcher_keeper(struct fetcher *f, int fd)
{
    static const struct chan_ops ops = {from_keeper, keeper_gone};
    if (f->keeper != NULL)
        keeper_gone(f, f->keeper);
    f->keeper = chan_new(f->loop, fd, &ops, f);
}

void fetcher_resolver(struct fetcher *f, int fd)
{
    static const struct chan_ops ops = {from_resolver, resolver_gone};
    if (f->resolver != NULL)
        resolver_gone(f, f->resolver);
    f->resolver = chan_new(f->loop, fd, &ops, f);
}
