#include "proxy/judge/exchange/record.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "proxy/judge/accounts/account.h"
#include "proxy/range.h"

struct waiting {
    struct account *of; /* NULL: of no sandbox */
    uint16_t type;
    uint64_t id;
    struct dynbuf payload;
    size_t counted; /* bytes of it, once it is whole */
    bool told;      /* it goes when the ledger says that it is written, and not when it was sent */
};

struct backlog {
    struct waiting w[BACKLOG_FRAMES];
    size_t n, bytes;
    uint64_t lost;
    struct dynbuf spill; /* takes what does not fit any more */
};

struct backlog *backlog_new(void)
{
    return calloc(1, sizeof(struct backlog));
}

static void waiting_free(struct waiting *w)
{
    if (w->of != NULL) {
        w->of->records--;
        w->of->record_bytes -= w->counted;
    }
    account_unref(w->of);
    dynbuf_free(&w->payload);
}

void backlog_free(struct backlog **b)
{
    if (*b == NULL)
        return;
    for (size_t i = 0; i < (*b)->n; i++)
        waiting_free(&(*b)->w[i]);
    dynbuf_free(&(*b)->spill);
    free(*b);
    *b = NULL;
}

static struct waiting *wait_in_line(struct backlog *k, const struct sandbox *s, uint16_t type, uint64_t id)
{
    struct account *of = s ? s->account : NULL;
    if (k->n == BACKLOG_FRAMES || k->bytes >= BACKLOG_BYTES ||
        (of && (of->records >= BACKLOG_EACH || of->record_bytes >= BACKLOG_BYTES_EACH)))
        return NULL;
    struct waiting *w = &k->w[k->n++];
    *w = (struct waiting){.of = of ? account_ref(of) : NULL, .type = type, .id = id};
    if (of != NULL)
        of->records++;
    dynbuf_init(&w->payload, CHAN_PAYLOAD_MAX);
    return w;
}

/* The last in line is whole. */
static void count(struct backlog *k)
{
    struct waiting *w = &k->w[k->n - 1];
    w->counted = w->payload.n;
    k->bytes += w->counted;
    if (w->of != NULL)
        w->of->record_bytes += w->counted;
}

/* Out of the line, at i. */
static void forget(struct backlog *k, size_t i)
{
    k->bytes -= k->w[i].counted;
    waiting_free(&k->w[i]);
    memmove(&k->w[i], &k->w[i + 1], (--k->n - i) * sizeof(k->w[0]));
}

/* Begin a record of this sandbox's (NULL: nobody's): to the ledger, else to the backlog. Never NULL. */
static struct dynbuf *begin(struct judge *j, const struct sandbox *s, uint16_t type, uint64_t id, bool *later)
{
    struct backlog *k = j->backlog;
    struct dynbuf *b = j->ledger ? post_begin(j, ROLE_LEDGER, 0, type, id) : NULL;
    *later = b == NULL || j->post.nobody;
    if (!*later)
        return b;
    struct waiting *w = wait_in_line(k, s, type, id);
    if (w != NULL)
        return &w->payload;
    if (k->lost++ % 1000 == 0)
        log_error("the ledger is away and there is no room for what happens: %llu records lost",
                  (unsigned long long)k->lost);
    dynbuf_free(&k->spill);
    dynbuf_init(&k->spill, 64 * 1024);
    return &k->spill;
}

/* soon: the record may wait a few milliseconds for others, so that not each of them wakes the ledger. */
static void commit(struct judge *j, struct dynbuf *b, bool later, bool soon)
{
    if (!later) {
        if ((soon ? post_commit_soon(j) : post_commit(j, -1)) != 0)
            log_error("a record could not be given to the ledger");
    } else if (b != &j->backlog->spill) {
        count(j->backlog);
    }
}

static bool repeat(struct judge *j, const struct waiting *w)
{
    if (!j->ledger || !dynbuf_ok(&w->payload))
        return false;
    struct dynbuf *b = post_begin(j, ROLE_LEDGER, 0, w->type, w->id);
    if (j->post.nobody)
        return false;
    dynbuf_add(b, dynbuf_span(&w->payload));
    commit(j, b, false, false);
    return true;
}

void backlog_flush(struct judge *j)
{
    struct backlog *k = j->backlog;
    size_t n = 0;
    for (size_t i = 0; i < k->n;) {
        n += repeat(j, &k->w[i]);
        if (k->w[i].told)
            i++;
        else
            forget(k, i);
    }
    if (n)
        log_info("the ledger is back: %zu records followed", n);
}

void record_written(struct judge *j, uint64_t xid)
{
    struct backlog *k = j->backlog;
    size_t i = 0;
    while (i < k->n && !(k->w[i].told && k->w[i].id == xid))
        i++;
    if (i < k->n)
        forget(k, i);
}

static struct span path_with_query(const struct wire_request *q, uint8_t to[RECORD_PATH_MAX])
{
    size_t n = q->path.n < RECORD_PATH_MAX - 1 ? q->path.n : RECORD_PATH_MAX - 1;
    memcpy(to, q->path.p, n);
    to[n++] = '?';
    struct span query = span_first(q->query, RECORD_PATH_MAX - n);
    if (query.n)
        memcpy(to + n, query.p, query.n);
    return span_of(to, n + query.n);
}

/* "Text/Plain; charset=x" -> "text/plain" */
static struct span content_type(const struct wire_request *q, uint8_t to[RECORD_TYPE_MAX])
{
    struct span type = SPAN_NONE, rest;
    for (size_t i = 0; i < q->nfields && type.n == 0; i++)
        if (span_ieq(q->field[i].name, SPAN("content-type")))
            span_cut(q->field[i].value, ';', &type, &rest);
    type = span_first(span_trim(type), RECORD_TYPE_MAX);
    for (size_t i = 0; i < type.n; i++)
        to[i] = type.p[i] >= 'A' && type.p[i] <= 'Z' ? (uint8_t)(type.p[i] + 32) : type.p[i];
    return span_of(to, type.n);
}

/* A line a ref; one that does not fit any more becomes "...", and so do those after it. */
static struct span refs_of(const struct git_push *push, uint8_t to[RECORD_REFS_MAX])
{
    const struct span more = SPAN("...");
    size_t n = 0;
    for (size_t i = 0; i < push->nrefs; i++) {
        const struct git_ref *r = &push->refs[i];
        struct span what = git_id_is_zero(r->new_id)   ? SPAN("delete ")
                           : git_id_is_zero(r->old_id) ? SPAN("create ")
                                                       : SPAN("update ");
        size_t line = (n > 0) + what.n + r->name.n;
        bool fits = line <= RECORD_REFS_MAX - n && (i + 1 == push->nrefs || line + 1 + more.n <= RECORD_REFS_MAX - n);
        if (n > 0)
            to[n++] = '\n';
        memcpy(to + n, fits ? what.p : more.p, fits ? what.n : more.n);
        n += fits ? what.n : more.n;
        if (!fits)
            break;
        memcpy(to + n, r->name.p, r->name.n);
        n += r->name.n;
    }
    return span_of(to, n);
}

void record_fill(const struct exchange *x, struct wire_record *r, struct record_text *t)
{
    const struct wire_request *q = &x->request;
    const struct decision *d = &x->now.d;
    *r = (struct wire_record){
        .method = q->method,
        .scheme = q->scheme,
        .host = q->host,
        .port = q->port,
        .path = q->path,
        .verdict = span_str(verdict_name(d->verdict)),
        /* The rule's own code for a denial; where this gateway failed, what failed. */
        .code = span_str(x->refusal.code &&
                                 (x->now.image == NULL || d->verdict != VERDICT_DENY || x->judge->config.shadow)
                             ? x->refusal.code
                             : d->code),
        .cause = x->now.ambiguity.word ? span_str(x->now.ambiguity.word) : SPAN_NONE,
        .op = d->op,
        .effect = span_str(effect_name(d->effect)),
        .resource = d->resource,
        .credential = x->now.credential,
        .rule = {d->rule.id, d->rule.file, d->rule.line},
        .request = x->digest,
        .has_body = x->upload != UPLOAD_NONE,
        .upgrade = d->upgrade,
        .range = range_written(q),
        .range_sent = x->range_sent,
        .shadow = x->judge->config.shadow && (x->delivery >= DELIVERY_FORWARDED || x->refusal.code == NULL),
    };
    if (x->cause.n)
        r->code = x->cause;
    if (x->sandbox) {
        r->sandbox = x->sandbox->name;
        r->session = x->sandbox->session;
        r->generation = x->sandbox->started ? x->sandbox->generation : 0;
        r->by = x->by;
    }
    r->lease = x->lease;
    if (x->now.image)
        r->policy = x->now.image->digest;
    if (q->has_query)
        r->path = path_with_query(q, t->path);
    if (x->upload != UPLOAD_NONE)
        r->content_type = content_type(q, t->type);
    if (d->push != NULL)
        r->refs = refs_of(d->push, t->refs);
}

/* code: of a message that was refused; NULL: of the exchange. */
static void audit(struct exchange *x, const char *code)
{
    struct record_text text;
    struct wire_record r;
    bool later;
    record_fill(x, &r, &text);
    if (code != NULL) {
        r.verdict = SPAN("deny");
        r.code = span_str(code);
    }
    struct dynbuf *b = begin(x->judge, x->sandbox, M_AUDIT, x->xid, &later);
    wire_put_record(b, &r);
    commit(x->judge, b, later, true);
}

void record_audit(struct exchange *x)
{
    audit(x, NULL);
}

void record_message(struct exchange *x, const char *code)
{
    audit(x, code);
}

static void put_outcome(struct dynbuf *b, const struct exchange *x, bool told)
{
    struct record_text text;
    struct wire_record r;
    static const struct id none;
    bool kept = x->kept_answer.n != 0;
    record_fill(x, &r, &text);
    if (x->intent >= INTENT_ASKED)
        r.effect = span_str(effect_name(x->intent_effect));
    wire_put_record(b, &r);
    msg_put_id(b, x->claim >= CLAIM_MADE ? &x->ticket.ticket : &none);
    msg_put_u8(b, x->outcome);
    msg_put_u16(b, x->status);
    msg_put_u64(b, x->bytes_out);
    msg_put_u64(b, x->bytes_in);
    msg_put_u8(b, (x->delivery == DELIVERY_RELAYED || x->delivery == DELIVERY_SWITCHED) && !kept);
    msg_put_u8(b, kept);
    msg_put_u8(b, told);
    msg_put_u8(b, x->client == CLIENT_GONE);
    if (kept)
        dynbuf_add(b, x->kept_answer); /* as the carrier wrote it: wire_answer, size, span */
}

/* What came of a write is known here alone until it is written down: it may be on its way to a ledger that dies. */
static bool keep_outcome(struct exchange *x)
{
    struct backlog *k = x->judge->backlog;
    struct waiting *w = wait_in_line(k, x->sandbox, M_OUTCOME, x->xid);
    if (w == NULL)
        return false;
    w->told = true;
    put_outcome(&w->payload, x, true);
    count(k);
    if (dynbuf_ok(&w->payload)) {
        (void)repeat(x->judge, w); /* without a ledger it waits for one */
        return true;
    }
    forget(k, k->n - 1);
    return false;
}

void record_outcome(struct exchange *x)
{
    bool later, write = exchange_owes_outcome(x) || x->kept_answer.n;
    if (write && keep_outcome(x))
        return;
    struct dynbuf *b = begin(x->judge, x->sandbox, M_OUTCOME, x->xid, &later);
    put_outcome(b, x, false);
    commit(x->judge, b, later, !write);
}

void record_sent(struct exchange *x)
{
    bool later;
    struct dynbuf *b = begin(x->judge, x->sandbox, M_SENT_MARK, x->xid, &later);
    commit(x->judge, b, later, false);
}

static void put_refused(struct judge *j, const struct front *f, const struct refused *q, struct span resource)
{
    bool later;
    struct wire_record r = {.sandbox = f->sandbox ? f->sandbox->name : f->name,
                            .scheme = q->scheme,
                            .host = q->host,
                            .port = q->port,
                            .verdict = span_str(verdict_name(VERDICT_DENY)),
                            .code = q->code,
                            .op = span_str(walk_name(q->step)),
                            .resource = resource,
                            .by = q->by};
    if (f->sandbox)
        r.session = f->sandbox->session;
    if (f->sandbox && f->sandbox->started)
        r.generation = f->sandbox->generation;
    if (j->image)
        r.policy = j->image->digest;
    struct dynbuf *b = begin(j, f->sandbox, M_AUDIT, q->xid, &later);
    wire_put_record(b, &r);
    commit(j, b, later, true);
}

void record_refused_rest(struct judge *j, struct front *f)
{
    char text[40];
    int n = snprintf(text, sizeof(text), "%llu more", (unsigned long long)f->refused_more);
    if (f->refused_more > 0)
        put_refused(j, f, &(struct refused){f->refused_last, WALK_ACCEPT, .code = SPAN("more-refused")},
                    span_of(text, (size_t)n));
    f->refused_more = 0;
}

void record_refused(struct judge *j, struct front *f, const struct refused *r)
{
    uint64_t now = j->ports.now(j->ports.arg);
    if (now - f->refused_since >= 1000) {
        record_refused_rest(j, f);
        f->refused_since = now;
        f->refused_n = 0;
    }
    f->refused_last = r->xid;
    if (f->refused_n < REFUSED_RECORDS) {
        f->refused_n++;
        put_refused(j, f, r, SPAN_NONE);
    } else {
        f->refused_more++;
    }
}

void record_websocket(struct exchange *x)
{
    const struct socket_state *s = &x->socket;
    struct record_text text;
    struct wire_record r;
    bool later;
    record_fill(x, &r, &text);
    r.code = s->code ? span_str(s->code) : x->cause;
    struct dynbuf *b = begin(x->judge, x->sandbox, M_WEBSOCKET, x->xid, &later);
    wire_put_record(b, &r);
    msg_put_u64(b, s->messages_out);
    msg_put_u64(b, s->messages_in);
    msg_put_u64(b, x->bytes_out);
    msg_put_u64(b, x->bytes_in);
    msg_put_u16(b, s->closed);
    commit(x->judge, b, later, true);
}
