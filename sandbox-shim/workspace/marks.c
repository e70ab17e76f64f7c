#include "sandbox-shim/workspace/marks.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- those that are there ------------------------------------------------------------- */

static size_t slot_of(const struct marks *m, const uint8_t mark[STREAM_MARK])
{
    uint32_t at; /* marks are as good as random */

    memcpy(&at, mark, sizeof(at));
    for (size_t i = at & (m->nslots - 1);; i = (i + 1) & (m->nslots - 1))
        if (!m->taken[i] || memcmp(m->slot[i], mark, STREAM_MARK) == 0)
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
        size_t to = slot_of(m, m->given + i * STREAM_MARK);
        memcpy(m->slot[to], m->given + i * STREAM_MARK, STREAM_MARK);
        m->taken[to] = true;
    }
    return 0;
}

/* --- one file ---------------------------------------------------------------------------- */

/* Without them nothing can be told of any file. */
static void must(bool ok)
{
    if (!ok)
        abort();
}

/* One nonce for all: what is asked of a mark is that nobody who neither knows the key nor sees a mark finds two files
 * with one, and that is so. */
static void mark_begin(struct marks *m)
{
    static const uint8_t nonce[12];

    must(EVP_EncryptInit_ex(m->gcm, NULL, NULL, NULL, nonce) == 1);
    m->told = 0;
}

static void bytes(void *arg, const uint8_t *p, size_t n)
{
    struct marks *m = arg;
    int out;

    m->told += n;
    must(EVP_EncryptUpdate(m->gcm, NULL, &out, p, (int)n) == 1);
}

static void mark_end(struct marks *m, uint8_t mark[STREAM_MARK])
{
    uint8_t none[EVP_MAX_BLOCK_LENGTH];
    int out;

    must(EVP_EncryptFinal_ex(m->gcm, none, &out) == 1 &&
         EVP_CIPHER_CTX_ctrl(m->gcm, EVP_CTRL_AEAD_GET_TAG, STREAM_MARK, mark) == 1);
}

/* It may become longer or shorter meanwhile: then it is another one. */
static int same(void *arg, int fd, const struct stat *st)
{
    struct marks *m = arg;
    uint8_t mark[STREAM_MARK];
    ssize_t n = 0;

    mark_begin(m);
    if (m->n == 0 || st->st_size < MARKS_LEAST)
        return 0;
    while (m->told <= (uint64_t)st->st_size && (n = read(fd, m->in, sizeof(m->in))) > 0)
        bytes(m, m->in, (size_t)n);
    bool whole = n == 0 && m->told == (uint64_t)st->st_size;
    mark_end(m, mark);
    if (whole && m->taken[slot_of(m, mark)])
        return stream_mark_put(m->to, STREAM_SAME, mark) == 0 ? 1 : -1;
    mark_begin(m);
    return lseek(fd, 0, SEEK_SET) == 0 ? 0 : -1;
}

static int told(void *arg)
{
    struct marks *m = arg;
    uint8_t mark[STREAM_MARK];

    mark_end(m, mark);
    return m->told >= MARKS_LEAST ? stream_mark_put(m->to, STREAM_SEEN, mark) : 0;
}

/* --- all of them ------------------------------------------------------------------------- */

int marks_begin(struct marks *m, int from, struct stream *to)
{
    uint8_t key[STREAM_MARK];

    *m = (struct marks){.known = {.same = same, .bytes = bytes, .told = told, .arg = m}, .to = to};
    if (stream_marks_get(from, key, &m->given, &m->n) != 0 || keep(m) != 0)
        return -1;
    m->gcm = EVP_CIPHER_CTX_new();
    bool ok = m->gcm != NULL && EVP_EncryptInit_ex(m->gcm, EVP_aes_128_gcm(), NULL, key, NULL) == 1;
    OPENSSL_cleanse(key, sizeof(key));
    return ok ? 0 : -1;
}

void marks_end(struct marks *m)
{
    EVP_CIPHER_CTX_free(m->gcm);
    free(m->given);
    free(m->slot);
    free(m->taken);
    *m = (struct marks){.n = 0};
}
