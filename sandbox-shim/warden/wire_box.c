#include "sandbox-shim/warden/wire_box.h"

enum { MIB = 1024 * 1024, FILES_MAX = 65536, PIDS_MAX = 4194304 };
#define BYTES_MAX (UINT64_C(1) << 50)

bool box_name_ok(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || (c != '-' && c != '.' && c != '_')))
            return false;
    }
    return s.n > 0 && s.n <= BOX_NAME_MAX;
}

void wire_put_box(struct dynbuf *b, const struct wire_box *x)
{
    msg_put_span(b, x->name);
    msg_put_u64(b, x->memory);
    msg_put_u64(b, x->pids);
    msg_put_u64(b, x->disk);
    msg_put_u64(b, x->files);
    msg_put_u64(b, x->idle_ms);
    msg_put_u64(b, x->egress_requests);
    msg_put_u64(b, x->egress_bytes);
    msg_put_span(b, x->image);
    msg_put_span(b, x->digest);
    msg_put_span(b, x->lane);
    msg_put_span(b, x->extras);
}

bool box_digest_ok(struct span s)
{
    struct span hex = span_from(s, sizeof("sha256:") - 1);

    for (size_t i = 0; i < hex.n; i++)
        if (!(hex.p[i] >= '0' && hex.p[i] <= '9') && !(hex.p[i] >= 'a' && hex.p[i] <= 'f'))
            return false;
    return s.n == BOX_DIGEST_MAX && span_starts(s, SPAN("sha256:"));
}

static bool within(uint64_t v, uint64_t least, uint64_t most)
{
    return v >= least && v <= most;
}

int wire_get_box(struct msg_in *m, struct wire_box *x, bool order)
{
    x->name = msg_get_span(m, BOX_NAME_MAX);
    x->memory = msg_get_u64(m);
    x->pids = msg_get_u64(m);
    x->disk = msg_get_u64(m);
    x->files = msg_get_u64(m);
    x->idle_ms = msg_get_u64(m);
    x->egress_requests = msg_get_u64(m);
    x->egress_bytes = msg_get_u64(m);
    x->image = msg_get_span(m, BOX_NAME_MAX);
    x->digest = msg_get_span(m, BOX_DIGEST_MAX);
    x->lane = msg_get_span(m, BOX_NAME_MAX);
    x->extras = msg_get_span(m, BOX_EXTRAS_MAX);
    if (m->bad || (x->image.n > 0 && !box_name_ok(x->image)) || (x->digest.n > 0 && !box_digest_ok(x->digest)) ||
        (x->image.n > 0 && x->digest.n == 0) || !box_name_ok(x->name) || (x->lane.n > 0 && !box_name_ok(x->lane)) ||
        !(within(x->memory, (uint64_t)BOX_MEMORY_MIN_MIB * MIB, BYTES_MAX) || (order && x->memory == 0)) ||
        !(within(x->pids, BOX_PIDS_MIN, PIDS_MAX) || (order && x->pids == 0)) ||
        !within(x->disk, (uint64_t)BOX_DISK_MIN_MIB * MIB, BYTES_MAX) || x->egress_requests > BOX_EGRESS_MAX ||
        x->egress_bytes > BOX_EGRESS_MAX || x->idle_ms > BOX_IDLE_MAX_MS ||
        !within(x->files, BOX_FILES_MIN, FILES_MAX)) {
        m->bad = true;
        return -1;
    }
    return 0;
}
