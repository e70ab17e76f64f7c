#include "proxy/fetcher/job/job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/role/role.h"

static int take_place(struct msg_in *m, struct job_place *p)
{
    size_t n = msg_get_u8(m);
    int bad = n > 0 && n <= JOB_ADDRS_MAX ? 0 : -1;
    for (p->naddrs = 0; bad == 0 && p->naddrs < n;) {
        unsigned family = msg_get_u8(m);
        bad = addr_from_bytes(family, msg_get_span(m, sizeof(p->addr[0].b)), &p->addr[p->naddrs++]);
    }
    return bad;
}

void job_read(struct job *j)
{
    struct frame f;
    int bad = -1;
    role_job_order(&f, &j->payload);
    struct msg_in m = msg_in(f.payload);
    size_t n = msg_get_u8(&m);
    j->id = f.id;
    if (f.type == M_FETCH && n <= FETCH_HOSTS_MAX)
        bad = 0;
    for (size_t i = 0; bad == 0 && i < n; i++)
        bad = take_place(&m, &j->place[i]);
    struct span roots = msg_get_span(&m, sizeof(j->roots) - 1);
    snprintf(j->roots, sizeof(j->roots), "%.*s", SPAN_FMT(roots));
    struct span crl = msg_get_span(&m, sizeof(j->crl) - 1);
    snprintf(j->crl, sizeof(j->crl), "%.*s", SPAN_FMT(crl));
    if (bad || wire_get_fetch(&m, &j->ask) != 0 || msg_end(&m) != 0 || wire_place(&j->ask, n) != NULL ||
        (n > 0 && wire_place(&j->ask, n - 1) == NULL))
        log_die("the question cannot be read; is this the same version of countersignd?");
}

static void answer(const struct job *j, const struct wire_fetched *f) __attribute__((noreturn));
static void answer(const struct job *j, const struct wire_fetched *f)
{
    struct dynbuf b;
    dynbuf_init(&b, CHAN_PAYLOAD_MAX);
    wire_put_fetched(&b, f);
    bool heard = role_job_answer(M_FETCHED, j->id, &b);
    dynbuf_wipe(&b);
    exit(heard ? 0 : 1);
}

void job_done(const struct job *j, struct span value, uint64_t lifetime_ms, struct span keep)
{
    struct err e;
    if (value.n == 0)
        job_kept(j, keep, "the value is empty");
    err_set(&e, "the value is longer than %d bytes", FETCH_VALUE_MAX - 2);
    if (value.n > FETCH_VALUE_MAX || keep.n > FETCH_VALUE_MAX)
        job_kept(j, keep, e.text);
    answer(j, &(struct wire_fetched){.ok = true, .value = value, .lifetime_ms = lifetime_ms, .keep = keep});
}

void job_kept(const struct job *j, struct span keep, const char *why)
{
    struct span k = keep.n <= FETCH_VALUE_MAX ? keep : SPAN_NONE;
    answer(j, &(struct wire_fetched){.keep = k, .why = span_first(span_str(why), FETCH_WHY_MAX)});
}

static void none(const struct job *j, bool busy, const char *fmt, va_list args) PRINTF(3, 0)
    __attribute__((noreturn));
static void none(const struct job *j, bool busy, const char *fmt, va_list args)
{
    char why[FETCH_WHY_MAX];
    int n = vsnprintf(why, sizeof(why), fmt, args);
    answer(j, &(struct wire_fetched){.busy = busy, .why = n > 0 ? span_str(why) : SPAN("it failed without a word")});
}

void job_failed(const struct job *j, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    none(j, false, fmt, args);
}

void job_busy(const struct job *j, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    none(j, true, fmt, args);
}
