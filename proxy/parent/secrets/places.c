/* Who is told outside the page (notify:): of whom the ledger is told that they are there, and the keeper where they
 * are, each with the digest of all that is said of one. */
#include <stdio.h>

#include "common/file.h"
#include "common/log.h"
#include "common/msg.h"
#include "proxy/parent/secrets/places.h"

static void digest_notify(const struct config_notify *n, struct digest *out)
{
    if (config_notify_digest(n, out) != 0)
        log_die("out of memory");
}

void parent_put_targets(const struct config *c, struct dynbuf *out)
{
    msg_put_u8(out, (uint8_t)c->nnotify);
    for (size_t i = 0; i < c->nnotify; i++) {
        const struct config_notify *n = &c->notify[i];
        struct wire_tell_target t = {.name = span_str(n->name),
                                     .kind = n->kind,
                                     .events = n->events,
                                     .give_up_ms = n->give_up_ms,
                                     .budget = n->budget,
                                     .buttons = n->signing[0] != '\0',
                                     .ntenants = n->ntenants};
        digest_notify(n, &t.of);
        for (size_t k = 0; k < n->ntenants; k++)
            t.tenant[k] = span_str(n->tenant[k]);
        wire_put_tell_target(out, &t);
    }
}

static void put_place(const struct config_notify *n, struct span ca, struct dynbuf *out)
{
    struct wire_tell_place p = {.name = span_str(n->name),
                                .kind = n->kind,
                                .url = span_str(n->url),
                                .secret = span_str(n->secret),
                                .ca_pem = ca,
                                .from = span_str(n->from),
                                .user = span_str(n->user),
                                .tls_required = n->tls_required,
                                .nto = n->nto,
                                .signing = span_str(n->signing),
                                .npeople = n->npeople};
    digest_notify(n, &p.of);
    for (size_t i = 0; i < n->ncidrs; i++)
        p.cidr[p.ncidrs++] = span_str(n->cidr[i]);
    if (n->loopback) {
        p.cidr[p.ncidrs++] = SPAN("127.0.0.0/8");
        p.cidr[p.ncidrs++] = SPAN("::1/128");
    }
    for (size_t i = 0; i < n->nto; i++)
        p.to[i] = span_str(n->to[i]);
    for (size_t i = 0; i < n->npeople; i++) {
        p.people[i].who = span_str(n->people[i].who);
        p.people[i].name = span_str(n->people[i].name);
    }
    wire_put_tell_place(out, &p);
}

/* One without its CA would be asked of the system's: it is left out, and what is to be told there waits. */
void parent_give_places(const struct parent *p, struct child *keeper)
{
    for (size_t i = 0; i < p->config->nnotify; i++) {
        const struct config_notify *n = &p->config->notify[i];
        struct dynbuf ca;
        dynbuf_init(&ca, TELL_CA_MAX);
        bool bad = n->ca[0] != '\0' && (file_read(n->ca, &ca) != 0 || ca.n == 0);
        struct dynbuf *b = bad ? NULL : chan_begin(keeper->chan, M_TELL_PLACE, 0);
        if (bad)
            log_error("notify %s: its ca cannot be read, or is longer than %d KiB", n->name, TELL_CA_MAX / 1024);
        if (b != NULL) {
            put_place(n, dynbuf_span(&ca), b);
            (void)chan_commit(keeper->chan);
        }
        dynbuf_free(&ca);
    }
}

void parent_name_targets(const struct config *c, char *to, size_t cap)
{
    static const char *const kinds[TELL_KINDS] = {
        [TELL_WEBHOOK] = "webhook", [TELL_SLACK] = "slack", [TELL_MAIL] = "mail"};
    size_t n = 0;
    to[0] = '\0';
    for (size_t i = 0; i < c->nnotify && n < cap; i++)
        n += (size_t)snprintf(to + n, cap - n, "%s %s%s\n", c->notify[i].name, kinds[c->notify[i].kind],
                              c->notify[i].signing[0] != '\0' ? " signing" : "");
}
