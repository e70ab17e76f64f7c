#include "sandbox-shim/checkpoint/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { ORDER = 9, HEAD = 4, END = 10 };
static const uint64_t same = 0x80000001;

static int write_all(int fd, const uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t some = write(fd, p, n);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return -1;
        p += some;
        n -= (size_t)some;
    }
    return 0;
}

static int read_all(int fd, uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t some = read(fd, p, n);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            return -1;
        p += some;
        n -= (size_t)some;
    }
    return 0;
}

static void put_number(uint8_t *at, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
}

static uint64_t get_number(const uint8_t *at, unsigned bytes)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | at[i];
    return v;
}

int stream_ask(int fd, enum stream_what what, uint64_t most)
{
    uint8_t order[ORDER] = {(uint8_t)what};

    put_number(order + 1, most, 8);
    return write_all(fd, order, ORDER);
}

int stream_asked(int fd, enum stream_what *what, uint64_t *most)
{
    uint8_t order[ORDER];

    if (read_all(fd, order, ORDER) != 0)
        return -1;
    *what = (enum stream_what)order[0];
    *most = get_number(order + 1, 8);
    return 0;
}

static int flush(struct stream *s)
{
    uint8_t head[HEAD];
    size_t n = s->n;

    s->n = 0;
    put_number(head, n, HEAD);
    return n == 0 || (write_all(s->fd, head, HEAD) == 0 && write_all(s->fd, s->out, n) == 0) ? 0 : -1;
}

int stream_put(struct stream *s, const uint8_t *p, size_t n)
{
    while (n > 0) {
        size_t room = sizeof(s->out) - s->n, some = n < room ? n : room;
        memcpy(s->out + s->n, p, some);
        s->n += some;
        p += some;
        n -= some;
        if (s->n == sizeof(s->out) && flush(s) != 0)
            return -1;
    }
    return 0;
}

int stream_end_put(struct stream *s, const struct stream_end *e)
{
    uint8_t end[HEAD + END] = {0};
    size_t n = e->nwords < STREAM_WORDS ? e->nwords : STREAM_WORDS;

    put_number(end + HEAD, e->code, 4);
    put_number(end + HEAD + 4, e->left_out, 4);
    put_number(end + HEAD + 8, n, 2);
    return flush(s) == 0 && write_all(s->fd, end, sizeof(end)) == 0 &&
                   write_all(s->fd, (const uint8_t *)e->words, n) == 0
               ? 0
               : -1;
}

int stream_same_put(struct stream *s, const uint8_t mark[MARK])
{
    uint8_t frame[HEAD + MARK];

    put_number(frame, same, HEAD);
    memcpy(frame + HEAD, mark, MARK);
    return flush(s) == 0 ? write_all(s->fd, frame, sizeof(frame)) : -1;
}

int stream_marks_put(int fd, const uint8_t key[MARK], const uint8_t *marks, size_t n)
{
    uint8_t head[HEAD];

    put_number(head, n, HEAD);
    return write_all(fd, key, MARK) == 0 && write_all(fd, head, HEAD) == 0 ? write_all(fd, marks, n * MARK) : -1;
}

int stream_marks_get(int fd, uint8_t key[MARK], uint8_t **marks, size_t *n)
{
    uint8_t head[HEAD];

    *marks = NULL;
    *n = 0;
    if (read_all(fd, key, MARK) != 0 || read_all(fd, head, HEAD) != 0)
        return -1;
    uint64_t many = get_number(head, HEAD);
    if (many == 0)
        return 0;
    if (many > STREAM_MARKS_MAX || (*marks = malloc((size_t)many * MARK)) == NULL)
        return -1;
    *n = (size_t)many;
    return read_all(fd, *marks, *n * MARK);
}

enum stream_got stream_get(int fd, uint8_t in[STREAM_PIECE], size_t *n, struct stream_end *e)
{
    uint8_t head[HEAD], end[END];

    *n = 0;
    if (read_all(fd, head, HEAD) != 0)
        return STREAM_BROKE;
    uint64_t bytes = get_number(head, HEAD);
    if (bytes == same)
        return read_all(fd, in, MARK) == 0 ? STREAM_SAME : STREAM_BROKE;
    if (bytes > STREAM_PIECE)
        return STREAM_BROKE;
    if (bytes > 0) {
        *n = (size_t)bytes;
        return read_all(fd, in, *n) == 0 ? STREAM_BYTES : STREAM_BROKE;
    }
    if (read_all(fd, end, END) != 0)
        return STREAM_BROKE;
    *e = (struct stream_end){
        (unsigned)get_number(end, 4), (unsigned)get_number(end + 4, 4), (size_t)get_number(end + 8, 2), {0}};
    return e->nwords <= STREAM_WORDS && read_all(fd, (uint8_t *)e->words, e->nwords) == 0 ? STREAM_ENDED
                                                                                          : STREAM_BROKE;
}
