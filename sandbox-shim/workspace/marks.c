#include "sandbox-shim/workspace/marks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- those that are there ------------------------------------------------------------- */

static size_t slot_of(const struct marks *m, const uint8_t mark[MARK])
{
    uint32_t at; /* marks are as good as random */

    memcpy(&at, mark, sizeof(at));
    for (size_t i = at & (m->nslots - 1);; i = (i + 1) & (m->nslots - 1))
        if (!m->taken[i] || memcmp(m->slot[i], mark, MARK) == 0)
            return i;
}

static int keep(struct marks *m)
{
    for (m->nslots = 64; m->nslots < 2 * m->n; m->nslots *= 2)
        ;
    m->slot = calloc(m->nslots, sizeof(*m->slot));
    m->taken = calloc(m->nslots, sizeof(*m->taken));
    if (m->slot == NULL || m->taken == NULL)
        return -1;
    for (size_t i = 0; i < m->n; i++) {
        size_t to = slot_of(m, m->given + i * MARK);
        memcpy(m->slot[to], m->given + i * MARK, MARK);
        m->taken[to] = true;
    }
    return 0;
}

/* --- one file ---------------------------------------------------------------------------- */

/* It may become longer or shorter meanwhile: then it is another one. */
static int same(void *arg, int fd, const struct stat *st)
{
    struct marks *m = arg;
    uint8_t mark[MARK];
    ssize_t n = 0;

    if (m->n == 0 || st->st_size < MARK_LEAST)
        return 0;
    mark_begin(&m->mark);
    while (m->mark.n <= (uint64_t)st->st_size && (n = read(fd, m->in, sizeof(m->in))) > 0)
        mark_add(&m->mark, m->in, (size_t)n);
    bool whole = n == 0 && m->mark.n == (uint64_t)st->st_size;
    mark_end(&m->mark, mark);
    if (whole && m->taken[slot_of(m, mark)])
        return stream_same_put(m->to, mark) == 0 ? 1 : -1;
    return lseek(fd, 0, SEEK_SET) == 0 ? 0 : -1;
}

/* --- all of them ------------------------------------------------------------------------- */

int marks_begin(struct marks *m, int from, struct stream *to)
{
    uint8_t key[MARK];

    *m = (struct marks){.known = {.same = same, .arg = m}, .to = to};
    if (stream_marks_get(from, key, &m->given, &m->n) != 0 || keep(m) != 0)
        return -1;
    int rc = mark_open(&m->mark, key);
    explicit_bzero(key, sizeof(key));
    return rc;
}

void marks_end(struct marks *m)
{
    mark_close(&m->mark);
    free(m->given);
    free(m->slot);
    free(m->taken);
    *m = (struct marks){.n = 0};
}
