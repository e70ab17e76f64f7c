/* Which hosts and addresses a sandbox may reach, as the dock says it for its caller (proxy/reach/). */
#include "common/log.h"
#include "proxy/reach/reach.h"
#include "web-approval/api/api.h"
#include "web-approval/api/steps.h"

_Static_assert((int)FORM_REACH_MAX == (int)REACH_MAX, "a checkpoint has room for each");

enum { NOTE_MAX = 16 * 1024 }; /* the ledger takes no more */

/* allowOut or denyOut. */
struct list {
    const char *name;
    size_t n;
    bool all4, all6; /* it has all there is of IPv4, of IPv6 */
    bool only6;      /* all that it has are addresses of IPv6 */
    struct reach_what what[REACH_RULES_MAX];
};

/* -1, answered. */
static int list_take(struct exchange *x, const struct json *given, struct list *l)
{
    const struct json *from = json_get(given, span_str(l->name));

    if (from && from->type != JSON_ARRAY) {
        reply_problem(x, 400, "Bad request", "`%s` is a list of texts", l->name);
        return -1;
    }
    for (const struct json *m = from ? from->child : NULL; m; m = m->next) {
        if (l->n == REACH_RULES_MAX) {
            reply_problem(x, 400, "Bad request", "`network` has at most %d hosts and ranges", REACH_RULES_MAX);
            return -1;
        }
        struct reach_what *w = &l->what[l->n++];
        if (m->type != JSON_STRING || reach_read(m->text, w) != 0) {
            reply_problem(x, 400, "Bad request",
                          "`%.*s` in `%s` is none of: a host name in ASCII (xn-- for others), *. before one, an "
                          "address such as 10.0.0.1, a range such as 10.0.0.0/8 without bits behind its length",
                          SPAN_FMT(span_first(m->text, 100)), l->name);
            return -1;
        }
        l->only6 &= w->range && span_index(span_of(w->text, w->n), ':') < w->n;
        l->all4 |= w->all == 4;
        l->all6 |= w->all == 6;
    }
    return 0;
}

/* All of IPv4 among what is denied is, as E2B has it, all that allowOut does not name: where that names anything, it
 * says no more than that, and so does all of IPv6 beside it. Alone that one is the range that it is. Where IPv6 alone
 * is named, it stays what is denied: IPv4 in it (NAT64 and others) is IPv4. -1, answered. */
static int put(struct exchange *x, struct dynbuf *b, const struct list *allow, const struct list *deny)
{
    size_t n = allow->n;

    if (deny->all4 && allow->n == 0) {
        (void)dynbuf_add(b, REACH_NOTHING);
        return 0;
    }
    if ((allow->all4 && deny->all4) || (allow->all6 && deny->all6)) {
        reply_problem(x, 400, "Bad request", "`allowOut` and `denyOut` both have all addresses: say which is meant");
        return -1;
    }
    for (size_t i = 0; i < allow->n; i++)
        reach_put(b, true, &allow->what[i]);
    for (size_t i = 0; i < deny->n; i++)
        if (!(deny->all4 && deny->what[i].all) || (allow->only6 && deny->what[i].all == 4)) {
            reach_put(b, false, &deny->what[i]);
            n++;
        }
    if (n <= REACH_RULES_MAX && dynbuf_ok(b))
        return 0;
    reply_problem(x, 400, "Bad request", "`network` has at most %d hosts and ranges, of %d bytes together",
                  REACH_RULES_MAX, REACH_MAX);
    return -1;
}

static int keep(struct exchange *x, struct starting *s, const struct dynbuf *b)
{
    s->reach = arena_copy(&x->arena, dynbuf_span(b));
    if (s->reach.n == b->n)
        return 0;
    reply_problem(x, 503, "Not possible now", "no memory");
    return -1;
}

int api_reach_take(struct exchange *x, struct starting *s, const struct json *given)
{
    struct list *l = given ? arena_alloc(&x->arena, 2 * sizeof(*l)) : NULL;
    struct dynbuf b;
    int rc = -1;

    if (!given)
        return 0;
    if (!l) {
        reply_problem(x, 503, "Not possible now", "no memory");
        return -1;
    }
    dynbuf_init(&b, REACH_MAX);
    l[0] = (struct list){.name = "allowOut", .only6 = true};
    l[1] = (struct list){.name = "denyOut"};
    if (list_take(x, given, &l[0]) == 0 && list_take(x, given, &l[1]) == 0 && put(x, &b, &l[0], &l[1]) == 0)
        rc = keep(x, s, &b);
    dynbuf_free(&b);
    return rc;
}

int api_reach_narrow(struct exchange *x, struct starting *s, struct span more)
{
    struct dynbuf b;
    int rc = -1;

    dynbuf_init(&b, REACH_MAX);
    if (reach_both(&b, s->reach, more) != 0)
        reply_problem(x, 409, "Too much",
                      "what the sandbox of those files might reach and what this one may are together more than %d "
                      "hosts and ranges, or %d bytes; say less in `network`",
                      REACH_ALL_MAX, REACH_MAX);
    else
        rc = keep(x, s, &b);
    dynbuf_free(&b);
    return rc;
}

void api_reach_note(struct exchange *x, const struct starting *s)
{
    struct dynbuf b;
    struct jsonw w;

    dynbuf_init(&b, NOTE_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "operator", span_str(x->operator));
    jsonw_kv(&w, "sandbox", span_str(s->name));
    if (s->reach.n > 0)
        jsonw_kv(&w, "reach", s->reach);
    jsonw_end_object(&w);
    if (dynbuf_ok(&b))
        ask_note(x->desk, "sandbox-start", dynbuf_span(&b));
    else
        log_error("the audit misses an operator's act (sandbox-start): no memory");
    dynbuf_free(&b);
}
