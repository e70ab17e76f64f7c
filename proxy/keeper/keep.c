#include "proxy/keeper/keep.h"

#include "common/crypto/seal.h"
#include "proxy/keeper/files.h"

#define MARK "first-start"

/* The first of them is not there when the key is kept elsewhere. */
static const char *const names[] = {"master.key", "ca.key", "ca.crt", "secrets.sealed"};
enum { NAMES = sizeof(names) / sizeof(names[0]), CA_KEY_MAX = 1024 };

static const struct span ca_purpose = SPAN("countersign ca 1");

/* The files there are, from the first on that there should be; or -1. */
static int count(int dir, size_t first, const char **missing, struct err *e)
{
    int n = 0;
    for (size_t i = first; i < NAMES; i++) {
        int there = files_exist(dir, names[i], e);
        if (there < 0)
            return -1;
        if (there == 0)
            *missing = names[i];
        n += there;
    }
    return n;
}

static int begin_again(int dir, struct err *e)
{
    for (size_t i = 0; i < NAMES; i++)
        if (files_remove(dir, names[i], e) != 0)
            return -1;
    return files_remove(dir, MARK, e);
}

static int write_ca(const struct keep *k, int dir, struct err *e)
{
    int r = -1;
    struct dynbuf pem;
    uint8_t sealed[CA_KEY_MAX];
    dynbuf_init(&pem, CA_PEM_MAX);
    struct secret *der = ca_key_der(k->ca), *key = seal_key_derive(k->master, ca_purpose);
    size_t n = secret_bytes(der).n;
    if (n == 0 || n + SEAL_EXTRA > sizeof(sealed) || key == NULL ||
        seal_bytes(key, SPAN("ca.key"), secret_bytes(der), sealed) != 0 || ca_pem(k->ca, &pem) != 0) {
        err_set(e, "cannot seal the CA key");
        goto out;
    }
    if (files_create(dir, "ca.key", span_of(sealed, n + SEAL_EXTRA), e) == 0)
        r = files_create(dir, "ca.crt", dynbuf_span(&pem), e);
out:
    secret_free(&der);
    secret_free(&key);
    dynbuf_free(&pem);
    return r;
}

static int make(struct keep *k, int dir, const struct secret *master, int64_t now, struct err *e)
{
    k->first = true;
    if (files_create(dir, MARK, SPAN_NONE, e) != 0)
        return -1;
    if ((k->master = master ? secret_new(secret_bytes(master)) : seal_key_new()) == NULL)
        return err_set(e, "no randomness for a master key, or no memory");
    if (master == NULL && files_create(dir, "master.key", secret_bytes(k->master), e) != 0)
        return -1;
    if ((k->ca = ca_new(now, e)) == NULL || write_ca(k, dir, e) != 0 ||
        (k->vault = vault_open(dir, k->master, true, e)) == NULL)
        return -1;
    return files_remove(dir, MARK, e);
}

static int load_master(struct keep *k, int dir, const struct secret *master, struct err *e)
{
    if (master != NULL)
        return (k->master = secret_new(secret_bytes(master))) ? 0 : err_set(e, "out of memory");
    struct dynbuf b;
    dynbuf_init(&b, SEAL_KEY + 1); /* one more, to see that it is too long */
    int r = files_read(dir, "master.key", &b, e);
    if (r == 0)
        err_set(e, "keeper/master.key is missing; restore it from a backup");
    else if (r > 0 && b.n != SEAL_KEY)
        r = err_set(e, "keeper/master.key is damaged: it has %zu bytes and not %d; restore it from a backup", b.n,
                    SEAL_KEY);
    else if (r > 0 && (k->master = secret_new(dynbuf_span(&b))) == NULL)
        r = err_set(e, "out of memory");
    dynbuf_wipe(&b);
    return r > 0 ? 0 : -1;
}

static int load_ca(struct keep *k, int dir, int64_t now, struct err *e)
{
    struct dynbuf sealed, pem;
    struct secret *key = NULL, *der = NULL;
    dynbuf_init(&sealed, CA_KEY_MAX);
    dynbuf_init(&pem, CA_PEM_MAX);
    int r = -1;
    if (files_read(dir, "ca.key", &sealed, e) <= 0 || files_read(dir, "ca.crt", &pem, e) <= 0)
        goto out;
    if ((key = seal_key_derive(k->master, ca_purpose)) == NULL ||
        (der = seal_open_secret(key, SPAN("ca.key"), dynbuf_span(&sealed))) == NULL) {
        err_set(e, "keeper/ca.key is damaged, or was sealed under another master key; restore both from one backup");
        goto out;
    }
    r = (k->ca = ca_load(der, dynbuf_span(&pem), now, e)) ? 0 : -1;
out:
    secret_free(&der);
    secret_free(&key);
    dynbuf_free(&sealed);
    dynbuf_free(&pem);
    return r;
}

/* Which of the two would be used is not guessed: what was sealed under the other one could not be opened. */
static int only_one(int dir, struct err *e)
{
    int there = files_exist(dir, names[0], e);
    return there > 0
               ? err_set(e, "keeper/master.key is there, and master_key: in countersign.yaml says that the key is "
                            "elsewhere; with the gateway stopped, copy its 32 bytes to where they are to be "
                            "found and remove the file, or take master_key: away")
               : there;
}

int keep_open(struct keep *k, int dir, const struct secret *master, int64_t now, struct err *e)
{
    const char *missing = NULL;
    *k = (struct keep){.first = false};
    size_t first = master != NULL; /* of the names */
    int n, marked;
    if (files_check_dir(dir, e) != 0 || (marked = files_exist(dir, MARK, e)) < 0)
        return -1;
    if (marked && begin_again(dir, e) != 0)
        return -1;
    if ((master != NULL && only_one(dir, e) != 0) || (n = count(dir, first, &missing, e)) < 0)
        return -1;
    int r;
    if (n == 0)
        r = make(k, dir, master, now, e);
    else if (n < NAMES - (int)first)
        r = err_set(e,
                    "keeper/%s is missing while others of its kind are there; restore it from a backup (nothing is "
                    "made anew while old keys exist)%s",
                    missing,
                    missing == names[0] ? ", or, where it is kept elsewhere, start with the configuration whose "
                                          "master_key: says so"
                                        : "");
    else if ((r = load_master(k, dir, master, e)) == 0 && (r = load_ca(k, dir, now, e)) == 0)
        r = (k->vault = vault_open(dir, k->master, false, e)) ? 0 : -1;
    if (r != 0)
        keep_close(k);
    return r;
}

void keep_close(struct keep *k)
{
    vault_free(&k->vault);
    ca_free(&k->ca);
    secret_free(&k->master);
}

struct secret *keep_data_key(const struct keep *k)
{
    return seal_key_derive(k->master, SPAN("countersign bodies 1"));
}
