#include "sandbox-shim/checkpoint/seen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"

enum { HEAD_MAX = 64, FILE_MAX = SEEN_BYTES_MAX + HEAD_MAX + FORM_MAC };

void seen_key(const struct shelf *shelf, uint8_t key[STREAM_MARK])
{
    uint8_t mac[FORM_MAC];

    shelf_mac(shelf, 'm', SPAN_NONE, SPAN_NONE, mac);
    memcpy(key, mac, STREAM_MARK);
}

/* --- of before -------------------------------------------------------------------------- */

static bool has_all(const struct pieces *pieces, struct span names)
{
    for (size_t i = 0; i < names.n; i += FORM_MAC)
        if (pieces_find(pieces, names.p + i) == NULL)
            return false;
    return true;
}

static int get_file(struct msg_in *m, struct seen_file *f)
{
    struct span mark = span_first(m->rest, STREAM_MARK);

    m->rest = span_from(m->rest, mark.n);
    f->size = msg_get_u64(m);
    uint64_t n = form_pieces(f->size);
    if (mark.n != STREAM_MARK || m->bad || n > m->rest.n / FORM_MAC)
        return -1;
    memcpy(f->mark, mark.p, STREAM_MARK);
    f->again = false;
    f->pieces = span_first(m->rest, (size_t)n * FORM_MAC);
    m->rest = span_from(m->rest, f->pieces.n);
    return 0;
}

static int by_mark(const void *a, const void *b)
{
    return memcmp(((const struct seen_file *)a)->mark, ((const struct seen_file *)b)->mark, STREAM_MARK);
}

static int take_files(struct seen *s, struct msg_in *m, const struct pieces *pieces)
{
    size_t n = msg_get_u32(m);
    struct seen_file f;

    if (m->bad || n == 0 || n > STREAM_MARKS_MAX)
        return 0;
    s->all = calloc(n, sizeof(*s->all));
    s->marks = calloc(n, STREAM_MARK);
    if (s->all == NULL || s->marks == NULL)
        return -1;
    for (; n > 0 && get_file(m, &f) == 0; n--)
        if (has_all(pieces, f.pieces))
            s->all[s->n++] = f;
    qsort(s->all, s->n, sizeof(*s->all), by_mark);
    size_t once = 0;
    for (size_t i = 0; i < s->n; i++)
        if (once == 0 || by_mark(&s->all[once - 1], &s->all[i]) != 0)
            s->all[once++] = s->all[i];
    s->n = once;
    for (size_t i = 0; i < s->n; i++)
        memcpy(s->marks + i * STREAM_MARK, s->all[i].mark, STREAM_MARK);
    return 0;
}

/* What it says, without its MAC; empty: nothing that can be believed. */
static struct span read_file(struct seen *s, const struct shelf *shelf)
{
    uint8_t mac[FORM_MAC];
    int fd = openat(shelf->dir, SHELF_SEEN, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd >= 0 ? file_read_fd(fd, &s->file) : -1;

    if (fd >= 0)
        close(fd);
    if (rc != 0 || s->file.n < FORM_MAC)
        return SPAN_NONE;
    struct span all = span_first(dynbuf_span(&s->file), s->file.n - FORM_MAC);
    shelf_mac(shelf, 's', all, SPAN_NONE, mac);
    bool ok = span_eq_consttime(span_of(mac, FORM_MAC), span_from(dynbuf_span(&s->file), all.n)) &&
              span_starts(all, FORM_SEEN);
    return ok ? span_from(all, FORM_MAGIC) : SPAN_NONE;
}

int seen_begin(struct seen *s, const struct shelf *shelf, const struct pieces *pieces)
{
    *s = (struct seen){.n = 0};
    dynbuf_init(&s->file, FILE_MAX);
    dynbuf_init(&s->next, SEEN_BYTES_MAX);
    struct msg_in m = msg_in(read_file(s, shelf));

    return take_files(s, &m, pieces);
}

void seen_end(struct seen *s)
{
    dynbuf_free(&s->file);
    dynbuf_free(&s->next);
    free(s->all);
    free(s->marks);
    *s = (struct seen){.n = 0};
}

struct seen_file *seen_find(const struct seen *s, const uint8_t mark[STREAM_MARK])
{
    struct seen_file f;

    memcpy(f.mark, mark, STREAM_MARK);
    return s->n > 0 ? bsearch(&f, s->all, s->n, sizeof(*s->all), by_mark) : NULL;
}

/* --- of the next ------------------------------------------------------------------------ */

void seen_add(struct seen *s, struct seen_file *f)
{
    if (f->again || s->nnext >= STREAM_MARKS_MAX ||
        s->next.n + STREAM_MARK + sizeof(f->size) + f->pieces.n > SEEN_BYTES_MAX)
        return;
    f->again = true;
    (void)dynbuf_add(&s->next, span_of(f->mark, STREAM_MARK));
    msg_put_u64(&s->next, f->size);
    (void)dynbuf_add(&s->next, f->pieces);
    s->nnext++;
}

static int write_file(const struct shelf *shelf, const char *tmp, struct span bytes)
{
    int fd = openat(shelf->dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd >= 0 ? file_write_fd(fd, bytes) : -1;

    if (fd >= 0)
        close(fd);
    if (rc == 0)
        rc = renameat(shelf->dir, tmp, shelf->dir, SHELF_SEEN);
    if (rc != 0 && fd >= 0)
        (void)unlinkat(shelf->dir, tmp, 0);
    return rc;
}

void seen_write(struct seen *s, const struct shelf *shelf)
{
    char text[ID_TEXT + 1], tmp[4 + ID_TEXT + 1];
    uint8_t mac[FORM_MAC];
    struct dynbuf b;
    struct id fresh;
    int rc = -1;

    for (size_t i = 0; i < s->n; i++)
        seen_add(s, &s->all[i]);
    dynbuf_init(&b, FILE_MAX);
    (void)dynbuf_add(&b, FORM_SEEN);
    msg_put_u32(&b, (uint32_t)s->nnext);
    (void)dynbuf_add(&b, dynbuf_span(&s->next));
    if (dynbuf_ok(&s->next) && dynbuf_ok(&b) && id_new(&fresh) == 0) {
        id_text(&fresh, text);
        (void)snprintf(tmp, sizeof(tmp), "tmp-%s", text);
        shelf_mac(shelf, 's', dynbuf_span(&b), SPAN_NONE, mac);
        rc = dynbuf_add(&b, span_of(mac, FORM_MAC)) == 0 ? write_file(shelf, tmp, dynbuf_span(&b)) : -1;
    }
    if (rc != 0)
        log_warn("the next checkpoint takes longer: which files this one has cannot be written");
    dynbuf_free(&b);
}
