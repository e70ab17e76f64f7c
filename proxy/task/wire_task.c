#include "proxy/task/wire_task.h"

void wire_put_task(struct dynbuf *b, const struct wire_task *t)
{
    msg_put_span(b, t->kind);
    msg_put_span(b, t->image);
    msg_put_u64(b, t->memory);
    msg_put_u64(b, t->pids);
    msg_put_u64(b, t->cpu_percent);
    msg_put_u64(b, t->disk);
    msg_put_u64(b, t->files);
    msg_put_u64(b, t->timeout_ms);
    msg_put_u8(b, (uint8_t)t->limits);
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
    t->timeout_ms = msg_get_u64(m);
    t->limits = (enum task_limits)msg_get_u8(m);
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
