/* What a key for the broker, and a turn's lane, let do. */
#include <stdio.h>

#include "common/log.h"
#include "common/msg.h"
#include "web-approval/api/api.h"
#include "web-approval/api/steps.h"
#include "web-approval/broker/broker.h"
#include "web-approval/dock.h"

enum { LANE_MAX = 128 };

struct hunt {
    const struct digest *want; /* NULL: any of the tenant's */
    struct span tenant;
    char key[CALLER_KEY + 1], of[CALLER_TENANT + 1], note[DESK_TEXT];
    bool found;
};

static bool copy(char *to, size_t room, struct span from)
{
    if (from.n >= room)
        return false;
    if (from.n > 0)
        memcpy(to, from.p, from.n);
    to[from.n] = '\0';
    return true;
}

/* Each row is looked at, whichever it is: how long that takes says nothing of any. */
static int compare(void *ctx, const struct token_row *r)
{
    struct hunt *h = ctx;
    bool is = h->want ? r->hash.n == DIGEST_BYTES && span_eq_consttime(r->hash, span_of(h->want->b, DIGEST_BYTES))
                      : span_eq(r->tenant, h->tenant);

    if (is && r->note.n > 0) /* what has no scopes is a key for sandboxes */
        h->found = r->name.n > 0 && r->tenant.n > 0 && copy(h->key, sizeof(h->key), r->name) &&
                   copy(h->of, sizeof(h->of), r->tenant) && copy(h->note, sizeof(h->note), r->note);
    return 0;
}

static enum dock_opened look(struct desk *d, struct hunt *h)
{
    struct arena a;
    struct err e;

    arena_init(&a, DESK_ARENA_MAX);
    int rc = desk_store_tokens(d->store, "key", SPAN_NONE, &a, compare, h, &e);
    arena_free(&a);
    if (rc != 0)
        log_warn("the broker's caller is told to come again: %s", e.text);
    return rc != 0 ? DOCK_LATER : h->found ? DOCK_OPEN : DOCK_UNKNOWN;
}

void broker_who(struct desk *d, const struct digest *hash, struct dynbuf *to)
{
    struct hunt h = {.want = hash};
    enum dock_opened is = look(d, &h);
    bool open = is == DOCK_OPEN;

    msg_put_u8(to, (uint8_t)is);
    msg_put_span(to, open ? span_str(h.key) : SPAN_NONE);
    msg_put_span(to, open ? span_str(h.of) : SPAN_NONE);
    msg_put_span(to, open ? span_str(h.note) : SPAN_NONE);
}

enum dock_opened broker_tenant(struct desk *d, struct span tenant, struct caller *who)
{
    struct hunt h = {.tenant = tenant};

    *who = (struct caller){.broker = true};
    if (tenant.n == 0 || !copy(who->tenant, sizeof(who->tenant), tenant))
        return DOCK_UNKNOWN;
    return span_eq(tenant, SPAN("default")) ? DOCK_OPEN : look(d, &h);
}

int broker_conversation(struct exchange *x)
{
    struct id id;

    if (id_parse(x->arg, &id) == 0)
        return 0;
    reply_problem(x, 404, "No such conversation", "this is not the id of a conversation");
    return -1;
}

/* Is this one of the tokens of now? Each is looked at. */
static bool is_token(struct span hashes, struct span token)
{
    struct digest have;
    bool is = false;

    digest_of(token, &have);
    for (; hashes.n >= DIGEST_BYTES; hashes = span_from(hashes, DIGEST_BYTES))
        is |= span_eq_consttime(span_first(hashes, DIGEST_BYTES), span_of(have.b, DIGEST_BYTES));
    return is;
}

bool broker_lane(struct exchange *x, struct span sandbox)
{
    const struct http_field *f = http_find(&x->head, SPAN("Countersign-Lane"));
    struct sandbox_row row;
    struct id id;
    struct err e;
    int rc = 0;

    if (f && f->value.n > 0 && f->value.n <= LANE_MAX && span_starts(sandbox, SPAN("c-")) &&
        id_parse(span_from(sandbox, 2), &id) == 0) {
        struct span name = arena_printf(&x->arena, "m-%.*s", SPAN_FMT(span_from(sandbox, 2)));
        rc = desk_store_sandbox(x->desk->store, name, &x->arena, &row, &e);
    }
    if (rc < 0) {
        reply_unable(x, &e);
        return false;
    }
    if (rc == 1 && span_eq(row.tenant, span_str(x->caller.tenant)) && is_token(row.token_hash, f->value))
        return true;
    reply_problem(x, 409, "Its lane has ended", "another worker has this turn, or it is over: nothing was done");
    return false;
}

int broker_take(struct exchange *x, const struct json *name, struct starting *s)
{
    struct sandbox_row row;
    struct err e;

    if (!name) {
        reply_problem(x, 400, "Bad request",
                      "the broker says the `name` of the sandbox, and besides `timeout` and `from` at most");
        return -1;
    }
    if (!broker_lane(x, name->text))
        return -1;
    if (desk_store_sandbox(x->desk->store, arena_printf(&x->arena, "m-%.*s", SPAN_FMT(span_from(name->text, 2))),
                           &x->arena, &row, &e) != 1) {
        reply_problem(x, 503, "Not possible now", "whose turn this is cannot be looked up; try again");
        return -1;
    }
    s->owner = row.owner;
    (void)snprintf(s->image, sizeof(s->image), "%s", x->desk->broker_image);
    (void)snprintf(s->lane, sizeof(s->lane), "%.*s", SPAN_FMT(dock_lane(x->desk, &x->caller)));
    s->box.lane = span_str(s->lane);
    return 0;
}
