#include "sandbox-shim/warden/cell/cell.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/msg.h"
#include "sandbox-shim/warden/kept.h"
#include "sandbox-shim/warden/record.h"

enum { WHY_MAX = 400, NAME_FRAME = TALK_HEAD + TALK_PATH_MAX, BORN_FRAME = 64 };

struct cell {
    struct run *run;
    uint64_t id; /* as the parent knows it */
    struct conn *conn;
    bool hello; /* its first process has said it */
    bool falls; /* the parent was told so */
};

void cell_falls(struct run *r)
{
    if (r->cell == NULL || r->cell->falls)
        return;
    r->cell->falls = true;
    (void)chan_send(r->box->warden->parent, M_CELL_END, r->cell->id, SPAN_NONE);
}

void cell_end(struct run *r)
{
    struct cell *c = r->cell;

    if (c == NULL)
        return;
    cell_falls(r);
    r->cell = NULL;
    conn_free(&c->conn);
    free(c);
}

void cell_lost(struct run *r, enum sb_end how, const char *why)
{
    const struct talk nothing = {.why = span_str(why)};

    record_end(r, how, &nothing);
    if (r->kept != NULL) {
        kept_end(r, how, &nothing);
        return;
    }
    flow_tell(r, true);
    run_tell_exit(r, how, &nothing);
    run_free(r);
}

static bool is_there(const struct box *b, const struct cell *c)
{
    const struct run *r = b->runs;

    while (r != NULL && r->cell != c)
        r = r->next;
    return r != NULL;
}

static void hear(struct cell *c)
{
    struct run *r = c->run;
    struct box *b = r->box;
    struct talk t;
    size_t used;

    for (enum talk_got got; (got = talk_take(conn_input(c->conn), &t, &used)) != TALK_MORE;) {
        bool ok = got == TALK_FRAME && (t.type == TALK_HELLO) != c->hello;
        if (ok && t.type == TALK_HELLO)
            c->hello = true;
        else if (ok)
            ok = run_heard(b, c, &t) == 0;
        if (!is_there(b, c)) /* that was its end */
            return;
        if (!ok) {
            cell_lost(r, SB_LOST, "its first process said what it may not");
            return;
        }
        conn_consume(c->conn, used);
    }
    if (box_is_up(b))
        flow_tell_all(b);
}

static void event(void *arg, struct conn *conn, enum conn_event ev)
{
    struct cell *c = arg;

    if (ev == CONN_DATA)
        hear(c);
    else if (ev != CONN_DRAINED && ev != CONN_CONNECTED)
        cell_lost(c->run, c->hello ? SB_LOST : SB_NOT_STARTED,
                  c->hello ? "what held it apart in its sandbox ended"
                           : "it could not be set apart; the log may say why");
}

/* What a sandbox is told when it comes up: its name, and by what the gateway knows its commands. */
static int introduce(struct cell *c)
{
    struct dynbuf b;

    dynbuf_init(&b, NAME_FRAME + BORN_FRAME);
    int rc = talk_put_name(&b, span_str(c->run->box->name)) == 0 && talk_put_born(&b, c->run->box->born) == 0 &&
                     conn_write(c->conn, dynbuf_span(&b)) == 0
                 ? 0
                 : -1;
    dynbuf_free(&b);
    return rc;
}

static int ask_parent(struct cell *c, int fd)
{
    struct run *r = c->run;
    struct dynbuf *m = chan_begin(r->box->warden->parent, M_CELL, c->id);

    if (m == NULL)
        return -1;
    msg_put_u64(m, r->box->id);
    msg_put_span(m, span_str(r->lane));
    msg_put_u64(m, r->box->born);
    msg_put_u32(m, r->id);
    msg_put_u64(m, r->box->is.files);
    msg_put_u64(m, r->box->version != 0 ? 0 : r->box->is.pids);
    msg_put_u64(m, r->box->version != 0 ? 0 : r->box->is.memory);
    return chan_commit_fd(r->box->warden->parent, fd);
}

const char *cell_begin(struct run *r)
{
    struct warden *w = r->box->warden;
    struct cell *c = calloc(1, sizeof(*c));
    int fd[2] = {-1, -1};

    if (c == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd) != 0) {
        free(c);
        return "it cannot be set apart: no descriptors, or no memory";
    }
    *c = (struct cell){.run = r, .id = ++w->last_cell, .conn = conn_new(w->loop, fd[0], TALK_IN_MAX, event, c)};
    int rc = c->conn != NULL && ask_parent(c, fd[1]) == 0 ? introduce(c) : -1;
    if (c->conn == NULL)
        close(fd[0]);
    close(fd[1]);
    r->cell = c;
    if (rc == 0)
        return NULL;
    cell_end(r);
    return "it cannot be set apart: the gateway does not take more; try again in a moment";
}

void cell_say(struct run *r, const struct dynbuf *frame)
{
    if (r->cell != NULL && conn_write(r->cell->conn, dynbuf_span(frame)) != 0)
        cell_lost(r, SB_LOST, "its first process does not listen");
}

/* The parent's words are its own, and go into an answer as they are. */
void cell_on_none(struct warden *w, struct frame *f)
{
    struct msg_in m = msg_in(f->payload);
    struct span why = msg_get_span(&m, WHY_MAX);
    char words[WHY_MAX + 1];

    if (msg_end(&m) != 0)
        return;
    (void)snprintf(words, sizeof(words), "%.*s", SPAN_FMT(why));
    for (struct box *b = w->boxes; b != NULL; b = b->next)
        for (struct run *r = b->runs; r != NULL; r = r->next)
            if (r->cell != NULL && r->cell->id == f->id) {
                cell_lost(r, SB_NOT_STARTED, words);
                return;
            }
}

bool cell_runs(const struct box *b)
{
    for (const struct run *r = b->runs; r != NULL; r = r->next)
        if (r->cell != NULL || (r->lane[0] != '\0' && record_waits(r)))
            return true;
    return false;
}
