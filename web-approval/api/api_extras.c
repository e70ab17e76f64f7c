/* What a started sandbox has beside its limits, as the parent is told it (proxy/extras/), and as its row and its list
 * say it. */
#include "proxy/extras/wire_extras.h"
#include "proxy/wire_ticket.h"
#include "web-approval/api/steps.h"

int api_extras_give(struct exchange *x, struct starting *s, const struct wire_extras *e)
{
    struct wire_extras all = *e, read;
    struct digest session;
    struct dynbuf b;

    digest_of(s->session, &session);
    all.tenant = s->tenant;
    all.session = span_of(session.b, DIGEST_BYTES);
    dynbuf_init(&b, EXTRAS_BYTES_MAX);
    wire_put_extras(&b, &all);
    if (!dynbuf_ok(&b) || wire_get_extras(dynbuf_span(&b), &read) != 0)
        reply_problem(
            x, 400, "Bad request",
            "these mounts or devices are too many, or of no name: of each at most %d and %d, mounts lie below /mnt "
            "or /home/agent and apart from each other",
            EXTRAS_MOUNTS_MAX, EXTRAS_DEVICES_MAX);
    else if (!(s->box.extras = arena_copy(&x->arena, dynbuf_span(&b))).p)
        reply_problem(x, 503, "Not possible now", "no memory");
    dynbuf_free(&b);
    return x->status != 0 ? -1 : 0;
}

int api_extras_again(struct exchange *x, struct starting *s)
{
    const struct span before = s->box.extras;
    struct wire_extras e;

    if (wire_get_extras(before, &e) == 0)
        return api_extras_give(x, s, &e);
    reply_problem(x, 503, "Not possible now", "its mounts cannot be read again");
    return -1;
}

static int mount_read(struct exchange *x, const struct json *given, struct extras_mount *m)
{
    const struct json *name = json_get(given, SPAN("name")), *at = json_get(given, SPAN("at"));

    *m = (struct extras_mount){name ? name->text : SPAN_NONE, at ? at->text : SPAN_NONE};
    if (given->type == JSON_OBJECT && name && name->type == JSON_STRING && at && at->type == JSON_STRING &&
        !given->child->next->next)
        return 0;
    reply_problem(x, 400, "Bad request", "each of `mounts` is an object with `name` and `at`");
    return -1;
}

/* What the configuration gives every sandbox that the dock starts for a tenant: "TENANT NAME AT\n" each. */
static void of_dock(const struct desk *d, struct span tenant, struct wire_extras *e)
{
    struct span rest = span_str(d->dock_mounts), line, whose, name, at;

    while (e->nmounts < EXTRAS_MOUNTS_MAX && span_cut(rest, '\n', &line, &rest))
        if (span_cut(line, ' ', &whose, &line) && span_cut(line, ' ', &name, &at) && span_eq(whose, tenant))
            e->mount[e->nmounts++] = (struct extras_mount){name, at};
}

int api_mounts_take(struct exchange *x, struct starting *s, const struct member *mounts)
{
    const struct json *given = mounts->value ? mounts->value->child : NULL;
    struct wire_extras e = {.nmounts = 0};

    if (x->place == PLACE_DOCK)
        of_dock(x->desk, s->tenant, &e);
    for (; given; given = given->next) {
        if (e.nmounts == EXTRAS_MOUNTS_MAX) {
            reply_problem(x, 400, "Bad request", "a sandbox has at most %d mounts", EXTRAS_MOUNTS_MAX);
            return -1;
        }
        if (mount_read(x, given, &e.mount[e.nmounts++]) != 0)
            return -1;
    }
    return e.nmounts > 0 ? api_extras_give(x, s, &e) : 0;
}

void api_extras_put(struct jsonw *w, const struct wire_box *b)
{
    struct wire_extras e;

    if (wire_get_extras(b->extras, &e) != 0)
        return;
    if (e.task.n > 0)
        jsonw_kv(w, "task", e.task);
    if (e.residency.n > 0)
        jsonw_kv(w, "residency", e.residency);
    if (e.nmounts > 0)
        jsonw_kv_array(w, "mounts");
    for (size_t i = 0; i < e.nmounts; i++) {
        jsonw_object(w);
        jsonw_kv(w, "name", e.mount[i].name);
        jsonw_kv(w, "at", e.mount[i].at);
        jsonw_end_object(w);
    }
    if (e.nmounts > 0)
        jsonw_end_array(w);
    if (e.ndevices > 0)
        jsonw_kv_array(w, "devices");
    for (size_t i = 0; i < e.ndevices; i++) {
        jsonw_object(w);
        jsonw_kv(w, "pool", e.device[i].pool);
        jsonw_kv_u64(w, "count", e.device[i].count);
        jsonw_end_object(w);
    }
    if (e.ndevices > 0)
        jsonw_end_array(w);
}
