#include "proxy/keeper/master.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crypto/seal.h"
#include "common/id.h"
#include "proxy/keeper/sources/sources.h"

enum { ANSWER_MAX = 4096, HEX_KEY = 2 * SEAL_KEY };

enum source_kind master_from(struct span name)
{
    static const enum source_kind known[] = {SOURCE_FILE, SOURCE_SYSTEMD, SOURCE_EXEC};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (span_eq(name, span_str(policy_source_name(known[i]))))
            return known[i];
    return SOURCE_NONE;
}

/* All there is, at most cap bytes. */
static ssize_t read_all(int fd, uint8_t *to, size_t cap)
{
    size_t n = 0;
    ssize_t got = 1;
    while (n < cap && got > 0) {
        got = read(fd, to + n, cap - n);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            n += (size_t)got;
    }
    return got < 0 && errno != EAGAIN ? -1 : (ssize_t)n;
}

static bool from_hex(struct span digits, uint8_t key[SEAL_KEY])
{
    for (size_t i = 0; i < SEAL_KEY; i++) {
        int hi = hex_digit(digits.p[2 * i]), lo = hex_digit(digits.p[2 * i + 1]);
        if (hi < 0 || lo < 0)
            return false;
        key[i] = (uint8_t)(hi << 4 | lo);
    }
    return true;
}

static struct secret *key_of(struct span text, struct err *e)
{
    struct span digits = text.n == HEX_KEY + 1 && text.p[HEX_KEY] == '\n' ? span_first(text, HEX_KEY) : text;
    struct secret *key = secret_room(SEAL_KEY);
    bool is_key = key != NULL && (text.n == SEAL_KEY || (digits.n == HEX_KEY && from_hex(digits, secret_fill(key))));
    if (is_key && text.n == SEAL_KEY)
        memcpy(secret_fill(key), text.p, SEAL_KEY);
    if (!is_key)
        secret_free(&key);
    if (!is_key)
        err_set(e,
                "the %zu bytes that are there are no key, which is 32 bytes, or 64 hex digits: openssl rand -hex 32",
                text.n);
    return key;
}

struct secret *master_read(enum source_kind from, int fd, unsigned owner, struct err *e)
{
    struct stat st;
    struct secret *key = NULL, *room = secret_room(ANSWER_MAX + 1); /* one more, to see that it is too long */
    if (room == NULL) {
        err_set(e, "out of memory");
        return NULL;
    }
    if (from != SOURCE_EXEC && fstat(fd, &st) != 0) {
        err_errno(e, "its file cannot be looked at");
        goto out;
    }
    if (from != SOURCE_EXEC && sources_file_ok(from, owner, &st, e) != 0)
        goto out;
    ssize_t n = read_all(fd, secret_fill(room), ANSWER_MAX + 1);
    if (n < 0)
        err_errno(e, "it cannot be read");
    else if (n > ANSWER_MAX)
        err_set(e, "what is there is longer than %d bytes", ANSWER_MAX);
    else
        key = key_of(span_of(secret_fill(room), (size_t)n), e);
out:
    secret_free(&room);
    return key;
}
