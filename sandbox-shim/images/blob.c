#include "sandbox-shim/images/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"

enum { HEX = 2 * DIGEST_BYTES, SAID = 12 /* digits of a digest that are said */ };

int blob_digest(struct span text, struct digest *to)
{
    struct span hex = span_from(text, sizeof("sha256:") - 1);

    if (!span_starts(text, SPAN("sha256:")) || hex.n != HEX)
        return -1;
    for (size_t i = 0; i < hex.n; i++)
        if (hex.p[i] >= 'A' && hex.p[i] <= 'F')
            return -1;
    return hex_parse(hex, to->b, DIGEST_BYTES);
}

/* A layout is the operator's own, and may be reached by links; but what stands in it is a file, or not read. */
static int file_open(int layout, const char *name, uint64_t *size, struct err *e)
{
    struct stat st;
    int fd = openat(layout, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return err_set(e, "%s is missing", name);
    if (fd < 0)
        return err_errno(e, "%s cannot be opened", name);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return err_set(e, "%s is no regular file", name);
    }
    *size = (uint64_t)st.st_size;
    return fd;
}

int blob_open(struct blob *b, int layout, const struct blob_name *is, struct err *e)
{
    char name[sizeof("blobs/sha256/") + HEX];
    uint64_t size = 0;

    *b = (struct blob){.fd = -1, .left = is->size, .is = *is};
    memcpy(name, "blobs/sha256/", sizeof("blobs/sha256/"));
    hex_text(span_of(is->digest.b, DIGEST_BYTES), name + sizeof("blobs/sha256/") - 1);
    b->fd = file_open(layout, name, &size, e);
    if (b->fd < 0)
        return -1;
    if (size != is->size) {
        blob_close(b);
        return err_set(e, "blob sha256:%.*s... has %llu bytes, and %llu are said of it", SAID,
                       name + sizeof(name) - 1 - HEX, (unsigned long long)size, (unsigned long long)is->size);
    }
    b->hash = digest_begin();
    return 0;
}

/* Once: behind the last byte. */
static int look(struct blob *b, struct err *e)
{
    char hex[HEX + 1];
    struct digest got;

    if (!b->hash)
        return 0;
    digest_end(b->hash, &got);
    b->hash = NULL;
    if (memcmp(got.b, b->is.digest.b, DIGEST_BYTES) == 0)
        return 0;
    hex_text(span_of(b->is.digest.b, DIGEST_BYTES), hex);
    return err_set(e, "blob sha256:%.*s... is not what its digest says", SAID, hex);
}

int blob_read(struct blob *b, uint8_t *to, size_t room, size_t *n, struct err *e)
{
    ssize_t got = -1;

    *n = 0;
    if (b->left == 0)
        return look(b, e);
    do
        got = read(b->fd, to, b->left < room ? (size_t)b->left : room);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return err_errno(e, "a blob cannot be read");
    if (got == 0)
        return err_set(e, "a blob became shorter while it was read");
    digest_add(b->hash, span_of(to, (size_t)got));
    b->left -= (uint64_t)got;
    *n = (size_t)got;
    return b->left == 0 ? look(b, e) : 0;
}

void blob_close(struct blob *b)
{
    struct digest nobody;

    if (b->hash)
        digest_end(b->hash, &nobody);
    b->hash = NULL;
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
}

int blob_document(int layout, const struct blob_name *is, struct dynbuf *to, struct err *e)
{
    struct blob b = {.fd = -1};
    size_t n = 0;
    int rc = -1;

    dynbuf_init(to, BLOB_DOCUMENT_MAX);
    if (is->size == 0 || is->size > BLOB_DOCUMENT_MAX)
        return err_set(e, "a document of %llu bytes is in it: at most %d are read", (unsigned long long)is->size,
                       BLOB_DOCUMENT_MAX);
    uint8_t *room = dynbuf_room(to, (size_t)is->size);
    if (!room)
        return err_set(e, "there is no memory for its documents");
    if (blob_open(&b, layout, is, e) != 0)
        return -1;
    do {
        rc = blob_read(&b, room + to->n, (size_t)is->size - to->n, &n, e);
        dynbuf_grew(to, rc == 0 ? n : 0);
        room = to->p;
    } while (rc == 0 && b.left > 0);
    blob_close(&b);
    return rc;
}

int blob_plain(int layout, const char *name, struct dynbuf *to, struct err *e)
{
    uint64_t size = 0;
    int fd = file_open(layout, name, &size, e);

    dynbuf_init(to, BLOB_DOCUMENT_MAX);
    if (fd < 0)
        return -1;
    int rc = file_read_fd(fd, to);
    if (rc != 0)
        (void)err_errno(e, "%s cannot be read", name);
    close(fd);
    return rc;
}
