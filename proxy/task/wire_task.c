#include "proxy/task/wire_task.h"

enum { TASK_EXTRAS_MAX = 4096 };

/* Whose it is is not known yet. */
static void put_extras(struct dynbuf *b, const struct wire_task *t)
{
    struct wire_extras x = {.tenant = SPAN("-"), .nmounts = t->nmounts, .ndevices = t->ndevices};
    struct dynbuf bytes;

    memcpy(x.mount, t->mount, sizeof(x.mount));
    memcpy(x.device, t->device, sizeof(x.device));
    dynbuf_init(&bytes, TASK_EXTRAS_MAX);
    wire_put_extras(&bytes, &x);
    msg_put_span(b, dynbuf_span(&bytes));
    dynbuf_free(&bytes);
}

static int get_extras(struct msg_in *m, struct wire_task *t)
{
    struct wire_extras x;

    if (wire_get_extras(msg_get_span(m, TASK_EXTRAS_MAX), &x) != 0)
        return -1;
    memcpy(t->mount, x.mount, sizeof(t->mount));
    memcpy(t->device, x.device, sizeof(t->device));
    t->nmounts = x.nmounts;
    t->ndevices = x.ndevices;
    return 0;
}

static int get_whose(struct msg_in *m, struct wire_task *t)
{
    t->lane = msg_get_span(m, TASK_NAME_MAX);
    t->residency = msg_get_span(m, TASK_NAME_MAX);
    t->retries = msg_get_u8(m);
    t->ntenants = msg_get_u8(m);
    if (m->bad || t->ntenants > TASK_TENANTS_MAX || t->retries > TASK_RETRIES_MAX ||
        (t->lane.n > 0 && !extras_name_ok(t->lane)) || (t->residency.n > 0 && !extras_name_ok(t->residency)))
        return -1;
    for (size_t i = 0; i < t->ntenants; i++)
        t->tenant[i] = msg_get_span(m, EXTRAS_TENANT_MAX);
    return get_extras(m, t);
}

bool task_is_of(const struct wire_task *t, struct span tenant)
{
    for (size_t i = 0; i < t->ntenants; i++)
        if (span_eq(t->tenant[i], tenant))
            return true;
    return false;
}

void wire_put_task(struct dynbuf *b, const struct wire_task *t)
{
    msg_put_span(b, t->kind);
    msg_put_span(b, t->image);
    msg_put_u64(b, t->memory);
    msg_put_u64(b, t->pids);
    msg_put_u64(b, t->cpu_percent);
    msg_put_u64(b, t->disk);
    msg_put_u64(b, t->files);
    msg_put_u64(b, t->egress_requests);
    msg_put_u64(b, t->egress_bytes);
    msg_put_u64(b, t->timeout_ms);
    msg_put_u8(b, (uint8_t)t->limits);
    msg_put_span(b, t->lane);
    msg_put_span(b, t->residency);
    msg_put_u8(b, (uint8_t)t->retries);
    msg_put_u8(b, (uint8_t)t->ntenants);
    for (size_t i = 0; i < t->ntenants; i++)
        msg_put_span(b, t->tenant[i]);
    put_extras(b, t);
    msg_put_u16(b, (uint16_t)t->nwords);
    for (size_t i = 0; i < t->nwords; i++)
        msg_put_span(b, t->word[i]);
    msg_put_span(b, t->input);
    msg_put_span(b, t->output);
}

int wire_get_task(struct msg_in *m, struct wire_task *t)
{
    *t = (struct wire_task){.kind = msg_get_span(m, TASK_NAME_MAX)};
    t->image = msg_get_span(m, TASK_NAME_MAX);
    t->memory = msg_get_u64(m);
    t->pids = msg_get_u64(m);
    t->cpu_percent = msg_get_u64(m);
    t->disk = msg_get_u64(m);
    t->files = msg_get_u64(m);
    t->egress_requests = msg_get_u64(m);
    t->egress_bytes = msg_get_u64(m);
    t->timeout_ms = msg_get_u64(m);
    t->limits = (enum task_limits)msg_get_u8(m);
    if (m->bad || get_whose(m, t) != 0)
        return -1;
    t->nwords = msg_get_u16(m);
    if (m->bad || t->nwords == 0 || t->nwords > TASK_WORDS_MAX)
        return -1;
    for (size_t i = 0; i < t->nwords; i++)
        t->word[i] = msg_get_span(m, TASK_COMMAND_MAX);
    t->input = msg_get_span(m, TASK_SCHEMA_MAX);
    t->output = msg_get_span(m, TASK_SCHEMA_MAX);
    bool whole = t->kind.n > 0 && t->limits <= TASK_APPROXIMATE && t->timeout_ms >= 1000 &&
                 t->timeout_ms <= (uint64_t)TASK_TIMEOUT_MAX_S * 1000;
    return msg_end(m) == 0 && whole ? 0 : -1;
}
