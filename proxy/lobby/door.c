#include "proxy/lobby/door.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"

/* A name fits, or the parent is not ours. */
static int name_set(char to[DOOR_NAME], struct span s)
{
    if (s.n >= DOOR_NAME)
        return -1;
    if (s.n > 0)
        memcpy(to, s.p, s.n);
    to[s.n] = '\0';
    return 0;
}

static int take_source(struct door_source *to, enum listener_identity identity, struct span key, struct span sandbox)
{
    if (sandbox.n == 0 || key.n == 0 || name_set(to->sandbox, sandbox) != 0)
        return -1;
    if (identity == IDENTITY_SOURCE)
        return cidr_parse(key, &to->range);
    uint8_t *copy = malloc(key.n);
    if (copy == NULL)
        return -1;
    memcpy(copy, key.p, key.n);
    to->key = span_of(copy, key.n);
    return 0;
}

static int take(struct lobby_door *d, const struct wire_listener *w)
{
    bool many = w->identity == IDENTITY_SOURCE || w->identity == IDENTITY_CERTIFICATE;
    d->way = w->way;
    d->identity = w->identity;
    if (name_set(d->sandbox, w->sandbox) != 0 || (w->identity == IDENTITY_SANDBOX) != (w->sandbox.n > 0) ||
        many != (w->nsources > 0) || (w->identity == IDENTITY_CERTIFICATE && !w->tls) ||
        (w->way == WAY_CAPTURED && (w->tls || w->npeers || w->identity != IDENTITY_SOURCE)))
        return -1;
    d->source = calloc(w->nsources + 1, sizeof(*d->source));
    if (d->source == NULL)
        return -1;
    for (; d->nsources < w->nsources; d->nsources++)
        if (take_source(&d->source[d->nsources], w->identity, w->source[d->nsources].key,
                        w->source[d->nsources].sandbox) != 0)
            return -1;
    for (; d->npeers < w->npeers; d->npeers++)
        if (cidr_parse(w->peer[d->npeers], &d->peer[d->npeers]) != 0)
            return -1;
    return 0;
}

static int take_tls(struct lobby_door *d, const int fd[CHAN_FDS_MAX])
{
    struct err e = {{0}};
    struct dynbuf pem[3];
    int bad = 0;
    for (int i = 0; i < 3; i++) {
        dynbuf_init(&pem[i], DOOR_PEM_MAX);
        if (fd[i + 1] >= 0 && bad == 0 && file_read_fd(fd[i + 1], &pem[i]) != 0)
            bad = err_errno(&e, "its files cannot be read");
    }
    if (bad == 0 && d->identity == IDENTITY_CERTIFICATE && pem[2].n == 0)
        bad = err_set(&e, "the CA of clients is empty: everybody would be let in");
    if (bad == 0)
        d->tls = tls_server_own(dynbuf_span(&pem[0]), dynbuf_span(&pem[1]), dynbuf_span(&pem[2]), &e);
    for (int i = 0; i < 3; i++)
        dynbuf_wipe(&pem[i]);
    if (d->tls == NULL)
        log_error("listener %s is not opened, or not changed: tls: %s", d->name, e.text);
    return d->tls == NULL ? -1 : 0;
}

struct lobby_door *door_new(struct lobby *l, struct frame *f)
{
    static struct wire_listener w; /* some kilobytes */
    struct msg_in m = msg_in(f->payload);
    struct lobby_door *d = calloc(1, sizeof(*d));
    int fd[CHAN_FDS_MAX];
    for (unsigned i = 0; i < CHAN_FDS_MAX; i++)
        fd[i] = frame_take_fd(f, i);
    if (d == NULL)
        log_die("out of memory");
    d->lobby = l;
    d->fd = fd[0];
    (void)msg_get_u8(&m); /* the kind; way and identity say more */
    int bad = name_set(d->name, msg_get_span(&m, 255));
    if (bad == 0 && (d->fd < 0 || wire_get_listener(&m, &w) != 0 || msg_end(&m) != 0 || take(d, &w) != 0)) {
        log_error("listener %s is not opened, or not changed: its description is not understood", d->name);
        bad = -1;
    }
    if (bad == 0 && w.tls)
        bad = take_tls(d, fd);
    for (unsigned i = 1; i < CHAN_FDS_MAX; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    if (bad != 0)
        door_free(&d);
    return d;
}

void door_free(struct lobby_door **dp)
{
    struct lobby_door *d = *dp;
    *dp = NULL;
    if (d == NULL)
        return;
    watch_free(&d->watch);
    if (d->fd >= 0)
        close(d->fd);
    tls_server_free(&d->tls);
    for (size_t i = 0; d->source != NULL && i <= d->nsources; i++)
        free((void *)d->source[i].key.p);
    free(d->source);
    free(d);
}

void door_change(struct lobby_door *d, struct lobby_door *fresh)
{
    bool same = d->way == fresh->way && d->identity == fresh->identity && (d->tls == NULL) == (fresh->tls == NULL);
    if (same) {
        struct lobby_door was = *d;
        d->source = fresh->source;
        d->nsources = fresh->nsources;
        d->tls = fresh->tls;
        fresh->source = was.source;
        fresh->nsources = was.nsources;
        fresh->tls = was.tls; /* connections that began with it hold it themselves */
        d->npeers = fresh->npeers;
        memcpy(d->peer, fresh->peer, sizeof(d->peer));
        memcpy(d->sandbox, fresh->sandbox, sizeof(d->sandbox));
    } else {
        log_error("listener %s is not changed: it would be another kind of listener", d->name);
    }
    door_free(&fresh);
}

struct span door_source(const struct lobby_door *d, const struct addr *from)
{
    const struct door_source *best = NULL;
    for (size_t i = 0; i < d->nsources; i++) {
        const struct door_source *s = &d->source[i];
        if (cidr_has(&s->range, from) && (best == NULL || s->range.bits > best->range.bits))
            best = s;
    }
    return best != NULL ? span_str(best->sandbox) : SPAN_NONE;
}

struct span door_certificate(const struct lobby_door *d, const struct conn *c)
{
    struct span found = SPAN_NONE;
    for (size_t i = 0; i < d->nsources; i++) {
        struct span sandbox = span_str(d->source[i].sandbox);
        if (!conn_peer_named(c, d->source[i].key))
            continue;
        if (found.n > 0 && !span_eq(found, sandbox))
            return SPAN_NONE;
        found = sandbox;
    }
    return found;
}

bool door_wants_header(const struct lobby_door *d, const struct addr *from)
{
    return cidrs_have(d->peer, d->npeers, from);
}
