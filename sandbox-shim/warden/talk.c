#include "sandbox-shim/warden/talk.h"

#include "common/msg.h"

enum { END_MAX = 2 + 3 * 8 + 4 + TALK_WHY_MAX, SIGNAL_MAX = 64 };

/* --- what comes --------------------------------------------------------------- */

static int take_end(struct span payload, struct talk *t)
{
    struct msg_in m = msg_in(payload);
    unsigned how = msg_get_u8(&m);

    t->code = msg_get_u8(&m);
    t->user_us = msg_get_u64(&m);
    t->system_us = msg_get_u64(&m);
    t->memory_kib = msg_get_u64(&m);
    t->why = msg_get_span(&m, TALK_WHY_MAX);
    if (msg_end(&m) != 0 || how < TALK_EXITED || how > TALK_FAILED || (how == TALK_FAILED) != (t->why.n > 0) ||
        (how == TALK_SIGNALLED && (t->code == 0 || t->code > SIGNAL_MAX)))
        return -1;
    t->how = (enum talk_how)how;
    return 0;
}

static int take_payload(struct span payload, struct talk *t)
{
    struct msg_in m = msg_in(payload);

    switch (t->type) {
    case TALK_HELLO: return msg_get_u32(&m) == TALK_VERSION && msg_end(&m) == 0 && t->run == 0 ? 0 : -1;
    case TALK_OUT:
    case TALK_ERR: t->bytes = payload; return t->run != 0 && payload.n > 0 ? 0 : -1;
    case TALK_FED:
        t->fed = msg_get_u32(&m);
        return t->run != 0 && msg_end(&m) == 0 && t->fed > 0 && t->fed <= TALK_IN_WINDOW ? 0 : -1;
    case TALK_END: return t->run != 0 ? take_end(payload, t) : -1;
    default: return -1;
    }
}

/* So that a frame that cannot become one is refused before its bytes are waited for. */
static size_t payload_max(unsigned type)
{
    switch (type) {
    case TALK_HELLO:
    case TALK_FED: return 4;
    case TALK_OUT:
    case TALK_ERR: return TALK_PIECE_MAX;
    case TALK_END: return END_MAX;
    default: return 0;
    }
}

enum talk_got talk_take(struct span in, struct talk *t, size_t *used)
{
    struct msg_in m = msg_in(in);
    size_t bytes = msg_get_u32(&m);
    unsigned type = msg_get_u8(&m);

    *t = (struct talk){.type = (enum talk_type)type, .run = msg_get_u32(&m)};
    if (m.bad)
        return TALK_MORE;
    if (bytes == 0 || bytes > payload_max(type))
        return TALK_BAD;
    if (m.rest.n < bytes)
        return TALK_MORE;
    *used = TALK_HEAD + bytes;
    return take_payload(span_first(m.rest, bytes), t) == 0 ? TALK_FRAME : TALK_BAD;
}

/* --- what is said --------------------------------------------------------------- */

static void put_head(struct dynbuf *b, size_t bytes, enum talk_type type, uint32_t run)
{
    msg_put_u32(b, (uint32_t)bytes);
    msg_put_u8(b, (uint8_t)type);
    msg_put_u32(b, run);
}

static bool word_ok(struct span s)
{
    return s.n <= TALK_PAYLOAD_MAX && span_index(s, 0) == s.n;
}

static bool command_ok(const struct talk_command *c, size_t *bytes)
{
    size_t words = c->nargs + c->nvariables;

    *bytes = 1 + 2 + 2 + 2 + 2 + 4 + c->dir.n;
    if (c->input > TALK_TERMINAL || (c->rows > 0) != (c->input == TALK_TERMINAL) ||
        (c->columns > 0) != (c->input == TALK_TERMINAL))
        return false;
    if (c->nargs == 0 || c->arg[0].n == 0 || c->nargs > TALK_WORDS_MAX || c->nvariables > TALK_WORDS_MAX ||
        words + 2 > TALK_WORDS_MAX || !word_ok(c->dir))
        return false;
    for (size_t i = 0; i < words; i++) {
        struct span s = i < c->nargs ? c->arg[i] : c->variable[i - c->nargs];
        if (!word_ok(s) || (i >= c->nargs && (span_index(s, '=') == 0 || span_index(s, '=') == s.n)))
            return false;
        *bytes += 4 + s.n;
        if (*bytes > TALK_PAYLOAD_MAX)
            return false;
    }
    return true;
}

int talk_put_run(struct dynbuf *b, uint32_t run, const struct talk_command *c)
{
    size_t bytes;

    if (!command_ok(c, &bytes))
        return -1;
    put_head(b, bytes, TALK_RUN, run);
    msg_put_u8(b, (uint8_t)c->input);
    msg_put_u16(b, c->rows);
    msg_put_u16(b, c->columns);
    msg_put_u16(b, (uint16_t)c->nargs);
    msg_put_u16(b, (uint16_t)c->nvariables);
    for (size_t i = 0; i < c->nargs; i++)
        msg_put_span(b, c->arg[i]);
    for (size_t i = 0; i < c->nvariables; i++)
        msg_put_span(b, c->variable[i]);
    msg_put_span(b, c->dir);
    return dynbuf_ok(b) ? 0 : -1;
}

int talk_put_files(struct dynbuf *b, uint32_t run, const struct talk_files *f)
{
    bool ok = f->what > TALK_FILE_NONE && f->what < TALK_FILE_KINDS && f->path.n > 0 && f->path.n <= TALK_PATH_MAX &&
              f->other.n <= TALK_PATH_MAX && word_ok(f->path) && word_ok(f->other) &&
              (f->mode <= 0777 || f->mode == TALK_MODE_NONE);

    if (!ok)
        return -1;
    put_head(b, 1 + 2 + 1 + 8 + 8 + 4 + f->path.n + 4 + f->other.n, TALK_FILE, run);
    msg_put_u8(b, (uint8_t)f->what);
    msg_put_u16(b, f->mode);
    msg_put_u8(b, f->whole);
    msg_put_u64(b, f->from);
    msg_put_u64(b, f->most);
    msg_put_span(b, f->path);
    msg_put_span(b, f->other);
    return dynbuf_ok(b) ? 0 : -1;
}

int talk_put_born(struct dynbuf *b, uint64_t born)
{
    if (born == 0)
        return -1;
    put_head(b, 8, TALK_BORN, 0);
    msg_put_u64(b, born);
    return dynbuf_ok(b) ? 0 : -1;
}

int talk_put_signal(struct dynbuf *b, uint32_t run, unsigned signo)
{
    if (signo == 0 || signo > SIGNAL_MAX)
        return -1;
    put_head(b, 1, TALK_SIGNAL, run);
    msg_put_u8(b, (uint8_t)signo);
    return dynbuf_ok(b) ? 0 : -1;
}

int talk_put_input(struct dynbuf *b, uint32_t run, struct span bytes)
{
    if (bytes.n > TALK_IN_WINDOW)
        return -1;
    put_head(b, bytes.n, bytes.n > 0 ? TALK_IN : TALK_IN_END, run);
    return dynbuf_add(b, bytes) == 0 && dynbuf_ok(b) ? 0 : -1;
}

int talk_put_size(struct dynbuf *b, uint32_t run, uint16_t rows, uint16_t columns)
{
    if (rows == 0 || columns == 0)
        return -1;
    put_head(b, 4, TALK_SIZE, run);
    msg_put_u16(b, rows);
    msg_put_u16(b, columns);
    return dynbuf_ok(b) ? 0 : -1;
}

int talk_put_credit(struct dynbuf *b, uint32_t run, uint32_t bytes)
{
    put_head(b, 4, TALK_CREDIT, run);
    msg_put_u32(b, bytes);
    return dynbuf_ok(b) ? 0 : -1;
}

int talk_put_name(struct dynbuf *b, struct span name)
{
    if (name.n == 0 || name.n > TALK_PATH_MAX)
        return -1;
    put_head(b, 4 + name.n, TALK_NAME, 0);
    msg_put_span(b, name);
    return dynbuf_ok(b) ? 0 : -1;
}
