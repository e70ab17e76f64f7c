#include "sandbox-shim/checkpoint/seen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"

enum { HEAD_MAX = 64, FILE_MAX = SEEN_BYTES_MAX + HEAD_MAX + FORM_MAC };

void seen_key(const struct shelf *shelf, uint8_t key[MARK])
{
    uint8_t mac[FORM_MAC];

    shelf_mac(shelf, 'm', SPAN_NONE, SPAN_NONE, mac);
    memcpy(key, mac, MARK);
    explicit_bzero(mac, sizeof(mac));
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
    struct span key = span_first(m->rest, sizeof(f->key));

    m->rest = span_from(m->rest, key.n);
    f->size = msg_get_u64(m);
    uint64_t n = form_pieces(f->size);
    if (key.n != sizeof(f->key) || m->bad || n > m->rest.n / FORM_MAC)
        return -1;
    memcpy(f->key, key.p, key.n);
    f->again = false;
    f->pieces = span_first(m->rest, (size_t)n * FORM_MAC);
    m->rest = span_from(m->rest, f->pieces.n);
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct seen_file *f = a, *g = b;

    return memcmp(f->key, g->key, sizeof(f->key));
}

static bool is_ours(const struct seen *s, const struct seen_file *f)
{
    return memcmp(f->key, s->whose, sizeof(s->whose)) == 0;
}

static int take_files(struct seen *s, struct msg_in *m, const struct pieces *pieces)
{
    size_t n = msg_get_u32(m), once = 0;
    struct seen_file f;

    if (m->bad || n == 0 || n > STREAM_MARKS_MAX)
        return 0;
    s->all = calloc(n, sizeof(*s->all));
    s->marks = calloc(n, MARK);
    if (s->all == NULL || s->marks == NULL)
        return -1;
    for (; n > 0 && get_file(m, &f) == 0; n--)
        if (has_all(pieces, f.pieces))
            s->all[s->n++] = f;
    qsort(s->all, s->n, sizeof(*s->all), by_key);
    for (size_t i = 0; i < s->n; i++)
        if (once == 0 || by_key(&s->all[once - 1], &s->all[i]) != 0)
            s->all[once++] = s->all[i];
    s->n = once;
    for (size_t i = 0; i < s->n; i++)
        if (is_ours(s, &s->all[i]))
            memcpy(s->marks + s->nmarks++ * MARK, s->all[i].key + sizeof(s->whose), MARK);
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

int seen_begin(struct seen *s, const struct shelf *shelf, const struct pieces *pieces, struct span sandbox,
               uint64_t most)
{
    const uint64_t part = most / 8;
    struct digest d;

    *s = (struct seen){.n = 0};
    dynbuf_init(&s->file, FILE_MAX);
    dynbuf_init(&s->next, part < SEEN_BYTES_MAX ? (size_t)part : SEEN_BYTES_MAX);
    digest_of(sandbox, &d);
    memcpy(s->whose, d.b, sizeof(s->whose));
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

static void key_of(const struct seen *s, const uint8_t mark[MARK], struct seen_file *f)
{
    memcpy(f->key, s->whose, sizeof(s->whose));
    memcpy(f->key + sizeof(s->whose), mark, MARK);
}

struct seen_file *seen_find(const struct seen *s, const uint8_t mark[MARK])
{
    struct seen_file f;

    key_of(s, mark, &f);
    return s->n > 0 ? bsearch(&f, s->all, s->n, sizeof(*s->all), by_key) : NULL;
}

/* --- of the next ------------------------------------------------------------------------ */

void seen_again(struct seen *s, struct seen_file *f)
{
    if (f->again || s->nnext >= STREAM_MARKS_MAX ||
        sizeof(f->key) + sizeof(f->size) + f->pieces.n > s->next.max - s->next.n)
        return;
    f->again = true;
    (void)dynbuf_add(&s->next, span_of(f->key, sizeof(f->key)));
    msg_put_u64(&s->next, f->size);
    (void)dynbuf_add(&s->next, f->pieces);
    s->nnext++;
}

void seen_add(struct seen *s, const uint8_t mark[MARK], uint64_t size, struct span pieces)
{
    struct seen_file f = {.size = size, .pieces = pieces};

    key_of(s, mark, &f);
    seen_again(s, &f);
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
        seen_again(s, &s->all[i]);
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
