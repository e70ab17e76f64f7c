#include "sandbox-shim/workspace/marks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>

#include "common/id.h"

#define SECOND_NS INT64_C(1000000000)

/* --- those that are there ------------------------------------------------------------- */

static uint8_t *slot_of(const struct marks *m, const uint8_t mark[STREAM_MARK])
{
    uint32_t at; /* marks are as good as random */

    memcpy(&at, mark, sizeof(at));
    for (size_t i = at & (m->nslots - 1);; i = (i + 1) & (m->nslots - 1))
        if (!m->taken[i] || memcmp(m->slot[i], mark, STREAM_MARK) == 0)
            return m->slot[i];
}

static int keep(struct marks *m, size_t n)
{
    for (m->nslots = 64; m->nslots < 2 * n; m->nslots *= 2)
        ;
    m->slot = calloc(m->nslots, sizeof(*m->slot));
    m->taken = calloc(m->nslots, sizeof(*m->taken));
    if (m->slot == NULL || m->taken == NULL)
        return -1;
    for (size_t i = 0; i < n; i++) {
        uint8_t *to = slot_of(m, m->given + i * STREAM_MARK);
        memcpy(to, m->given + i * STREAM_MARK, STREAM_MARK);
        m->taken[(size_t)(to - m->slot[0]) / STREAM_MARK] = true;
    }
    return 0;
}

static bool is_there(const struct marks *m, const uint8_t mark[STREAM_MARK])
{
    return m->taken[(size_t)(slot_of(m, mark) - m->slot[0]) / STREAM_MARK];
}

/* --- one file ---------------------------------------------------------------------------- */

static int64_t ns(struct timespec t)
{
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static void mark_of(const struct stat *st, uint8_t out[STREAM_MARK])
{
    const int64_t is[] = {(int64_t)st->st_dev, (int64_t)st->st_ino, st->st_size,
                          ns(st->st_mtim),     ns(st->st_ctim),     ns(st->st_atim)};
    struct digest d;

    digest_of(span_of(is, sizeof(is)), &d);
    memcpy(out, d.b, STREAM_MARK);
}

/* Nobody has it open for writing, nor mapped so. */
static bool is_alone(int fd)
{
    bool alone = fcntl(fd, F_SETLEASE, F_RDLCK) == 0;

    if (alone)
        (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    return alone;
}

static bool can_be_marked(const struct marks *m, const struct stat *st)
{
    return m->any && st->st_dev == m->dev && st->st_size >= MARKS_LEAST;
}

static bool reading_shows(const struct stat *st)
{
    return ns(st->st_atim) <= ns(st->st_ctim) || ns(st->st_atim) <= ns(st->st_mtim);
}

static int same(void *arg, int fd, const struct stat *st)
{
    struct marks *m = arg;
    uint8_t mark[STREAM_MARK];
    struct timespec now;

    m->alone = false;
    if (!can_be_marked(m, st))
        return 0;
    mark_of(st, mark);
    if (is_there(m, mark))
        return stream_mark_put(m->to, STREAM_SAME, mark) == 0 ? 1 : -1;
    if (!reading_shows(st) || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return 0;
    int64_t latest = ns(now) - (int64_t)m->young_ms * (SECOND_NS / 1000);
    m->alone = ns(st->st_ctim) < latest && ns(st->st_atim) < latest && is_alone(fd);
    return 0;
}

static int told(void *arg, int fd, const struct stat *before)
{
    struct marks *m = arg;
    uint8_t was[STREAM_MARK], is[STREAM_MARK];
    struct stat st;

    if (!m->alone || !is_alone(fd) || fstat(fd, &st) != 0)
        return 0;
    mark_of(before, was);
    mark_of(&st, is);
    return memcmp(was, is, STREAM_MARK) == 0 ? stream_mark_put(m->to, STREAM_SEEN, is) : 0;
}

/* --- all of them ------------------------------------------------------------------------- */

int marks_begin(struct marks *m, int dir, int from, struct stream *to)
{
    struct statfs fs;
    struct stat st;
    size_t n;

    *m = (struct marks){.known = {.same = same, .told = told, .arg = m}, .to = to, .young_ms = MARKS_CLOCK_MS};
    if (stream_marks_get(from, &m->given, &n) != 0 || keep(m, n) != 0)
        return -1;
    m->any = fstatfs(dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC && !(fs.f_flags & ST_NOATIME) && fstat(dir, &st) == 0;
    m->dev = m->any ? st.st_dev : 0;
    return 0;
}

void marks_end(struct marks *m)
{
    free(m->given);
    free(m->slot);
    free(m->taken);
    *m = (struct marks){.any = false};
}
