/* What is told of a workspace's files may be anything: a checkpoint that is made of it is whole, has no more bytes
 * than the sandbox's disk, and can be read; nothing else becomes of the store. A mark that is known stands for any
 * sixteen bytes 'M'. */
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "sandbox-shim/checkpoint/seen.h"
#include "sandbox-shim/checkpoint/store.h"
#include "tests/fuzz/fuzz.h"

enum { KNOWN = 20 * 1000, DISK = 100 * 1000, INPUT_MAX = 60 * 1000 };

static bool reached;
static char top[] = "/dev/shm/fuzz_workspace.XXXXXX";
static enum store_end how;
static struct store store = {.how = &how, .most = 1 << 24};
static uint8_t mark[MARK];

bool fuzz_reached(void)
{
    return reached;
}

static int clear_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    return remove(path);
}

static void end(void)
{
    (void)nftw(top, clear_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int save(struct span said, struct dynbuf *out)
{
    const struct order o = {.what = ORDER_SAVE,
                            .tenant = SPAN("default"),
                            .owner = SPAN("root"),
                            .sandbox = SPAN("box"),
                            .generation = 1,
                            .disk = DISK};
    struct err e;
    int fd[2];

    MUST_HOLD(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
    MUST_HOLD(file_write_fd(fd[1], said) == 0 && shutdown(fd[1], SHUT_WR) == 0);
    dynbuf_init(out, 4096);
    int rc = store_save(&store, &o, fd[0], out, &e);
    close(fd[0]);
    close(fd[1]);
    return rc;
}

static void frame(struct dynbuf *b, uint32_t n, const uint8_t *p, size_t bytes)
{
    msg_put_u32(b, n);
    (void)dynbuf_add(b, span_of(p, bytes));
}

/* The first checkpoint, which stays: one file, whose mark is known from then on. */
static void begin(void)
{
    static uint8_t bytes[KNOWN + TAR_BLOCK], head[TAR_HEAD_MAX], key[MARK];
    struct tar_member m = {.type = TAR_FILE, .mode = 0600, .size = KNOWN, .name = "known"};
    struct dynbuf b, out;
    struct mark of;
    struct shelf s;
    struct err e;
    char name[SHELF_NAME + 1];

    (void)signal(SIGPIPE, SIG_IGN);
    MUST_HOLD(mkdtemp(top) != NULL && atexit(end) == 0);
    store.dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t n = tar_head(head, &m);
    dynbuf_init(&b, 1 << 20);
    frame(&b, (uint32_t)n, head, n);
    frame(&b, KNOWN + (uint32_t)tar_pad(KNOWN), bytes, KNOWN + tar_pad(KNOWN));
    frame(&b, 2 * TAR_BLOCK, bytes, 2 * TAR_BLOCK);
    frame(&b, 0, bytes, 10);
    MUST_HOLD(save(dynbuf_span(&b), &out) == 0);
    shelf_of(SPAN("default"), SPAN("root"), name);
    MUST_HOLD(shelf_open(store.dir, name, false, &s, &e) == 0);
    seen_key(&s, key);
    MUST_HOLD(mark_open(&of, key) == 0);
    mark_begin(&of);
    mark_add(&of, bytes, KNOWN);
    mark_end(&of, mark);
    mark_close(&of);
    shelf_close(&s);
    dynbuf_free(&b);
    dynbuf_free(&out);
}

/* All pieces are there, and its bytes are no more than its disk. */
static void whole(const struct shelf *s, const char *id)
{
    struct pieces pieces;
    struct form_file f;
    struct form_row r;
    struct dynbuf b;
    struct err e;
    uint64_t bytes = 0;

    dynbuf_init(&b, 1 << 20);
    MUST_HOLD(shelf_read(s, id, &b, &f, &e) == 0 && pieces_load(s, &pieces, &e) == 0);
    MUST_HOLD(pieces_want(&pieces, f.rows) == 0);
    struct msg_in m = msg_in(f.rows);
    while (m.rest.n > 0) {
        MUST_HOLD(form_get_row(&m, &r) == 0);
        bytes += r.size;
    }
    MUST_HOLD(bytes <= DISK);
    pieces_free(&pieces);
    dynbuf_free(&b);
}

static void made(struct span out)
{
    struct msg_in m = msg_in(out);
    struct form_head h;
    struct shelf s;
    struct dynbuf gone;
    struct err e;
    char id[FORM_ID + 1], found[FORM_ID + 1];

    MUST_HOLD(form_get_head(&m, &h) == 0);
    (void)snprintf(id, sizeof(id), "%.*s", SPAN_FMT(h.id));
    MUST_HOLD(shelf_find(store.dir, SPAN("default"), h.id, &s, found, &e) == 0);
    whole(&s, id);
    shelf_close(&s);
    const struct order o = {.what = ORDER_REMOVE, .tenant = SPAN("default"), .which = span_str(id)};
    dynbuf_init(&gone, 4096);
    MUST_HOLD(store_remove(&store, &o, &gone, &e) == 0);
    dynbuf_free(&gone);
    reached = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static bool begun;
    struct dynbuf out;

    if (n > INPUT_MAX)
        return 0;
    if (!begun)
        begin();
    begun = true;
    uint8_t *copy = fuzz_copy(span_of(data, n));
    for (size_t i = 0; i + MARK <= n; i++)
        if (memcmp(copy + i, "MMMMMMMMMMMMMMMM", MARK) == 0)
            memcpy(copy + i, mark, MARK);
    if (save(span_of(copy, n), &out) == 0)
        made(dynbuf_span(&out));
    dynbuf_free(&out);
    free(copy);
    return 0;
}
