/* A tar stream is taken apart the same however it is cut, nothing outside of what came is read, no name in it leads
 * out of where it is unpacked, and each member that came is written and read again as it was. */
#include "sandbox-shim/inside/shim_tar.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

/* Parts between slashes, none of them empty, `.` or `..`. */
static bool stays(const char *name)
{
    while (*name) {
        size_t n = strcspn(name, "/");
        if (n == 0 || (n == 1 && *name == '.') || (n == 2 && memcmp(name, "..", 2) == 0))
            return false;
        name += n;
        if (*name == '/' && *++name == '\0')
            return false;
    }
    return true;
}

static void again(const struct tar_member *m)
{
    static uint8_t head[TAR_HEAD_MAX];
    static struct tar t;
    size_t used, n = m->type == TAR_OTHER ? 0 : tar_head(head, m);

    if (m->type == TAR_OTHER)
        return;
    MUST_HOLD(n > 0 && n % TAR_BLOCK == 0);
    memset(&t, 0, sizeof(t));
    MUST_HOLD(tar_step(&t, head, n, &used) == TAR_MEMBER && used == n);
    MUST_HOLD(t.member.type == m->type && t.member.mode == m->mode && t.member.size == m->size);
    MUST_HOLD(t.member.mtime == m->mtime && strcmp(t.member.name, m->name) == 0);
    MUST_HOLD(strcmp(t.member.target, m->target) == 0);
    reached = true;
}

/* What all of it says, in pieces of so many bytes; a number that another cut must say too. */
static uint64_t take(struct span in, size_t piece, bool first)
{
    static struct tar t;
    uint64_t sum = 0, data = 0;

    memset(&t, 0, sizeof(t));
    for (size_t at = 0; at < in.n;) {
        size_t n = in.n - at < piece ? in.n - at : piece, used;
        uint8_t *copy = fuzz_copy(span_first(span_from(in, at), n));
        enum tar_got got = tar_step(&t, copy, n, &used);
        MUST_HOLD(used <= n && (got != TAR_MORE || used == n) && (used > 0 || got == TAR_BAD || got == TAR_END));
        if (got == TAR_MEMBER) {
            MUST_HOLD(data == 0);
            MUST_HOLD(stays(t.member.name) && t.member.mode <= 07777);
            MUST_HOLD(t.member.type != TAR_HARD_LINK || (t.member.target[0] && stays(t.member.target)));
            MUST_HOLD(t.member.type == TAR_FILE || t.member.size == 0);
            for (const char *c = t.member.name; *c; c++)
                sum = sum * 31 + (uint8_t)*c;
            sum = sum * 31 + t.member.type;
            data = t.member.size;
            if (first)
                again(&t.member);
        }
        if (got == TAR_DATA) {
            MUST_HOLD(t.ndata > 0 && t.data >= copy && t.data + t.ndata <= copy + n && t.ndata <= data);
            for (size_t i = 0; i < t.ndata; i++)
                sum = sum * 31 + t.data[i];
            data -= t.ndata;
        }
        free(copy);
        if (got == TAR_BAD || got == TAR_END) {
            MUST_HOLD((got == TAR_BAD) == (t.why != NULL));
            return sum * 31 + got;
        }
        at += used;
    }
    return sum * 31 + 7;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span in = span_of(data, n);
    uint64_t whole = take(in, n ? n : 1, true);

    MUST_HOLD(take(in, 1, false) == whole);
    MUST_HOLD(take(in, 513, false) == whole);
    return 0;
}
