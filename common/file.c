#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { STEP = 64 * 1024 };

int file_read_fd(int fd, struct dynbuf *b)
{
    for (;;) {
        uint8_t past; /* of a full buffer: is there more? */
        size_t left = b->max - b->n, n = left < STEP ? left : STEP;
        uint8_t *to = n > 0 ? dynbuf_room(b, n) : &past;
        if (to == NULL) {
            errno = ENOMEM;
            return -1;
        }
        ssize_t got = read(fd, to, n > 0 ? n : 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return (int)got;
        if (n == 0) {
            errno = EFBIG;
            return -1;
        }
        dynbuf_grew(b, (size_t)got);
    }
}

int file_read(const char *path, struct dynbuf *b)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int bad = file_read_fd(fd, b), why = errno;
    close(fd);
    errno = why;
    return bad;
}

int file_write_fd(int fd, struct span s)
{
    while (s.n > 0) {
        ssize_t n = write(fd, s.p, s.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        s = span_from(s, (size_t)n);
    }
    return 0;
}
