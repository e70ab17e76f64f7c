#include "proxy/extras/wire_extras.h"

void wire_put_extras(struct dynbuf *b, const struct wire_extras *x)
{
    msg_put_span(b, x->tenant);
    msg_put_span(b, x->session);
    msg_put_span(b, x->task);
    msg_put_span(b, x->residency);
    msg_put_u8(b, (uint8_t)x->nmounts);
    msg_put_u8(b, (uint8_t)x->ndevices);
    for (size_t i = 0; i < x->nmounts; i++) {
        msg_put_span(b, x->mount[i].name);
        msg_put_span(b, x->mount[i].at);
    }
    for (size_t i = 0; i < x->ndevices; i++) {
        msg_put_span(b, x->device[i].pool);
        msg_put_u8(b, (uint8_t)x->device[i].count);
    }
}

bool extras_name_ok(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || (c != '-' && c != '.' && c != '_')))
            return false;
    }
    return s.n > 0 && s.n <= EXTRAS_NAME_MAX;
}

/* A part may begin with a dot (.cache), but be none that leads up or stays. */
static bool part_ok(struct span part)
{
    for (size_t i = 0; i < part.n; i++) {
        uint8_t c = part.p[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '-' && c != '.' &&
            c != '_')
            return false;
    }
    return part.n > 0 && !span_eq(part, SPAN(".")) && !span_eq(part, SPAN(".."));
}

bool extras_at_ok(struct span s)
{
    static const char *const below[] = {"/mnt/", "/home/agent/"};
    struct span rest = SPAN_NONE, part;

    for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
        if (span_starts(s, span_str(below[i])))
            rest = span_from(s, strlen(below[i]));
    if (rest.n == 0 || s.n > EXTRAS_AT_MAX)
        return false;
    for (;;) {
        bool more = span_cut(rest, '/', &part, &rest);
        if (!part_ok(part))
            return false;
        if (!more)
            return true;
    }
}

/* One below another would hide it, or lie in what is not the sandbox's. */
static bool apart(struct span a, struct span b)
{
    const struct span shorter = a.n < b.n ? a : b, longer = a.n < b.n ? b : a;

    return !span_starts(longer, shorter) || (longer.n > shorter.n && longer.p[shorter.n] != '/');
}

static bool mounts_ok(const struct wire_extras *x)
{
    for (size_t i = 0; i < x->nmounts; i++) {
        if (!extras_name_ok(x->mount[i].name) || !extras_at_ok(x->mount[i].at))
            return false;
        for (size_t k = 0; k < i; k++)
            if (!apart(x->mount[i].at, x->mount[k].at) || span_eq(x->mount[i].name, x->mount[k].name))
                return false;
    }
    return true;
}

static bool devices_ok(const struct wire_extras *x)
{
    for (size_t i = 0; i < x->ndevices; i++) {
        if (!extras_name_ok(x->device[i].pool) || x->device[i].count == 0 || x->device[i].count > EXTRAS_OF_POOL_MAX)
            return false;
        for (size_t k = 0; k < i; k++)
            if (span_eq(x->device[i].pool, x->device[k].pool))
                return false;
    }
    return true;
}

int wire_get_extras(struct span bytes, struct wire_extras *x)
{
    struct msg_in m = msg_in(bytes);

    *x = (struct wire_extras){.nmounts = 0};
    if (bytes.n == 0)
        return 0;
    x->tenant = msg_get_span(&m, EXTRAS_TENANT_MAX);
    x->session = msg_get_span(&m, DIGEST_BYTES);
    x->task = msg_get_span(&m, EXTRAS_NAME_MAX);
    x->residency = msg_get_span(&m, EXTRAS_NAME_MAX);
    x->nmounts = msg_get_u8(&m);
    x->ndevices = msg_get_u8(&m);
    if (m.bad || x->tenant.n == 0 || (x->session.n != 0 && x->session.n != DIGEST_BYTES) ||
        x->nmounts > EXTRAS_MOUNTS_MAX || x->ndevices > EXTRAS_DEVICES_MAX)
        return -1;
    for (size_t i = 0; i < x->nmounts; i++) {
        x->mount[i].name = msg_get_span(&m, EXTRAS_NAME_MAX);
        x->mount[i].at = msg_get_span(&m, EXTRAS_AT_MAX);
    }
    for (size_t i = 0; i < x->ndevices; i++) {
        x->device[i].pool = msg_get_span(&m, EXTRAS_NAME_MAX);
        x->device[i].count = msg_get_u8(&m);
    }
    return msg_end(&m) == 0 && mounts_ok(x) && devices_ok(x) ? 0 : -1;
}
