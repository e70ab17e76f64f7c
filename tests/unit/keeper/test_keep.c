/* The keeper's folder and its sealed store: D15 D24 D36 C29, and what a damaged one gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/crypto/seal.h"
#include "common/msg.h"
#include "proxy/keeper/files.h"
#include "proxy/keeper/keep.h"
#include "proxy/keeper/value.h"

static char folder[64];
static int dir = -1;
static struct err e;

static int make_folder(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/cs-keep-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? -1 : 0;
}

static int clear_folder(void **state)
{
    DIR *d = fdopendir(dup(dir));
    rewinddir(d);
    for (struct dirent *f; (f = readdir(d)) != NULL;)
        if (f->d_name[0] != '.')
            (void)unlinkat(dir, f->d_name, 0);
    closedir(d);
    close(dir);
    return rmdir(folder);
}

static void set(struct vault *v, struct span name, struct span value, int expect)
{
    struct secret *s = secret_new(value);
    assert_int_equal(vault_set(v, name, s, 0, 1000, &e), expect);
    secret_free(&s);
}

static void expect_now(const struct vault *v, struct span name, struct span value)
{
    struct secret *s = vault_get(v, name);
    assert_true(span_eq(secret_bytes(s), value));
    secret_free(&s);
}

static void expect_previous(const struct vault *v, struct span name, size_t i, struct span value)
{
    struct secret *s = vault_previous(v, name, i);
    assert_true(span_eq(secret_bytes(s), value));
    secret_free(&s);
}

static void c29_a_first_start_makes_all_and_the_second_finds_it(void **state)
{
    static const char *const files[] = {"master.key", "ca.key", "ca.crt", "secrets.sealed"};
    struct keep a, b;
    struct stat st;
    assert_int_equal(keep_open(&a, dir, NULL, time(NULL), &e), 0);
    assert_true(a.first);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fstatat(dir, files[i], &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(st.st_mode, S_IFREG | 0600);
    }
    assert_int_equal(faccessat(dir, "first-start", F_OK, 0), -1);
    set(a.vault, SPAN("github"), SPAN("canary-0123456789"), 0);
    assert_int_equal(keep_open(&b, dir, NULL, time(NULL), &e), 0);
    assert_false(b.first);
    assert_true(span_eq(ca_der(a.ca), ca_der(b.ca)));
    assert_true(span_eq(secret_bytes(a.master), secret_bytes(b.master)));
    expect_now(b.vault, SPAN("github"), SPAN("canary-0123456789"));
    struct secret *ka = keep_data_key(&a), *kb = keep_data_key(&b);
    assert_true(span_eq(secret_bytes(ka), secret_bytes(kb)));
    assert_false(span_eq(secret_bytes(ka), secret_bytes(a.master)));
    secret_free(&ka);
    secret_free(&kb);
    keep_close(&a);
    keep_close(&b);
}

static void a_master_key_from_elsewhere_is_never_in_the_folder(void **state)
{
    struct keep k;
    struct secret *key = secret_new(SPAN("0123456789abcdefghijklmnopqrstuv")),
                  *other = secret_new(SPAN("another one, of as many bytes.."));
    assert_int_equal(keep_open(&k, dir, key, time(NULL), &e), 0);
    assert_true(k.first);
    assert_true(span_eq(secret_bytes(k.master), secret_bytes(key)));
    set(k.vault, SPAN("github"), SPAN("canary-0123456789"), 0);
    keep_close(&k);
    assert_int_equal(faccessat(dir, "master.key", F_OK, 0), -1);
    assert_int_equal(keep_open(&k, dir, key, time(NULL), &e), 0);
    assert_false(k.first);
    expect_now(k.vault, SPAN("github"), SPAN("canary-0123456789"));
    keep_close(&k);
    assert_int_equal(keep_open(&k, dir, other, time(NULL), &e), -1);
    assert_non_null(strstr(e.text, "sealed under another master key"));
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), -1);
    assert_non_null(strstr(e.text, "keeper/master.key is missing"));
    assert_non_null(strstr(e.text, "master_key:"));
    assert_int_equal(unlinkat(dir, "ca.crt", 0), 0);
    assert_int_equal(keep_open(&k, dir, key, time(NULL), &e), -1);
    assert_non_null(strstr(e.text, "keeper/ca.crt is missing"));
    secret_free(&key);
    secret_free(&other);
}

static void two_master_keys_are_one_too_many(void **state)
{
    struct keep k;
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    struct secret *key = secret_new(secret_bytes(k.master));
    set(k.vault, SPAN("github"), SPAN("canary-0123456789"), 0);
    keep_close(&k);
    assert_int_equal(keep_open(&k, dir, key, time(NULL), &e), -1); /* even the same one */
    assert_non_null(strstr(e.text, "copy its 32 bytes"));
    assert_int_equal(faccessat(dir, "master.key", F_OK, 0), 0);
    assert_int_equal(unlinkat(dir, "master.key", 0), 0);
    assert_int_equal(keep_open(&k, dir, key, time(NULL), &e), 0);
    expect_now(k.vault, SPAN("github"), SPAN("canary-0123456789"));
    keep_close(&k);
    /* of a start that was cut short nothing is kept, its key neither */
    assert_int_equal(files_create(dir, "first-start", SPAN_NONE, &e), 0);
    assert_int_equal(files_create(dir, "master.key", SPAN("half"), &e), 0);
    assert_int_equal(keep_open(&k, dir, key, time(NULL), &e), 0);
    assert_true(k.first);
    assert_int_equal(faccessat(dir, "master.key", F_OK, 0), -1);
    keep_close(&k);
    secret_free(&key);
}

static size_t slurp(const char *name, char *to, size_t cap)
{
    int fd = openat(dir, name, O_RDONLY);
    ssize_t n = read(fd, to, cap);
    close(fd);
    return n < 0 ? 0 : (size_t)n;
}

static void nothing_secret_lies_open_in_the_folder(void **state)
{
    struct keep k;
    char bytes[65536];
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    set(k.vault, SPAN("github"), SPAN("canary-0123456789"), 0);
    struct secret *der = ca_key_der(k.ca);
    struct span key = secret_bytes(der);
    for (int i = 0; i < 3; i++) {
        size_t n = slurp((const char *[]){"ca.key", "ca.crt", "secrets.sealed"}[i], bytes, sizeof(bytes));
        assert_true(n > 0);
        assert_int_equal(span_find(span_of(bytes, n), SPAN("canary-0123456789")), n);
        for (size_t at = 0; at + 32 <= key.n; at++) /* no 32 bytes of the key, however it was written */
            if (memmem(bytes, n, key.p + at, 32) != NULL)
                assert_int_equal(i, 1); /* only the certificate repeats its public part */
    }
    secret_free(&der);
    keep_close(&k);
}

static void a_missing_file_is_never_made_anew(void **state)
{
    static const char *const files[] = {"master.key", "ca.key", "ca.crt", "secrets.sealed"};
    struct keep k;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
        keep_close(&k);
        assert_int_equal(unlinkat(dir, files[i], 0), 0);
        assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), -1);
        assert_non_null(strstr(e.text, files[i]));
        assert_int_equal(faccessat(dir, files[i], F_OK, 0), -1);
        for (int j = 0; j < 4; j++)
            (void)unlinkat(dir, files[j], 0);
    }
}

static void a_damaged_file_is_refused(void **state)
{
    static const char *const files[] = {"master.key", "ca.key", "secrets.sealed"};
    struct keep k;
    char bytes[65536];
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    set(k.vault, SPAN("a"), SPAN("value one"), 0);
    set(k.vault, SPAN("b"), SPAN("value two"), 0);
    keep_close(&k);
    for (int i = 0; i < 3; i++) {
        size_t n = slurp(files[i], bytes, sizeof(bytes));
        for (size_t at = 0; at < n; at++) {
            bytes[at] ^= 0x10;
            assert_int_equal(files_replace(dir, files[i], span_of(bytes, n), &e), 0);
            assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), -1);
            bytes[at] ^= 0x10;
        }
        assert_int_equal(files_replace(dir, files[i], span_of(bytes, n - 1), &e), 0);
        assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), -1);
        assert_int_equal(files_replace(dir, files[i], SPAN(""), &e), 0);
        assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), -1);
        assert_int_equal(files_replace(dir, files[i], span_of(bytes, n), &e), 0);
    }
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    keep_close(&k);
}

static void c29_modes_links_and_other_kinds_are_refused(void **state)
{
    static const char *const files[] = {"master.key", "ca.key", "ca.crt", "secrets.sealed"};
    struct keep k;
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    keep_close(&k);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fchmodat(dir, files[i], 0640, 0), 0);
        assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), -1);
        assert_non_null(strstr(e.text, "0640"));
        assert_int_equal(fchmodat(dir, files[i], 0600, 0), 0);
        assert_int_equal(renameat(dir, files[i], dir, "aside"), 0);
        assert_int_equal(symlinkat("aside", dir, files[i]), 0);
        assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), -1);
        assert_int_equal(unlinkat(dir, files[i], 0), 0);
        assert_int_equal(mkfifoat(dir, files[i], 0600), 0);
        assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), -1);
        assert_int_equal(renameat(dir, "aside", dir, files[i]), 0);
    }
    assert_int_equal(fchmod(dir, 0750), 0);
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), -1);
    assert_int_equal(fchmod(dir, 0700), 0);
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    keep_close(&k);
}

static void c29_a_link_in_wait_is_not_followed_at_creation(void **state)
{
    struct keep k;
    struct stat st;
    char target[80];
    snprintf(target, sizeof(target), "%s.elsewhere", folder);
    assert_int_equal(symlinkat(target, dir, "master.key.new"), 0);
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    assert_int_equal(stat(target, &st), -1);
    keep_close(&k);
}

static void a_first_start_cut_short_is_begun_again(void **state)
{
    struct keep k;
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    keep_close(&k);
    assert_int_equal(files_create(dir, "first-start", SPAN_NONE, &e), 0);
    assert_int_equal(unlinkat(dir, "ca.crt", 0), 0);
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    assert_true(k.first);
    keep_close(&k);
}

static void d36_rotation_keeps_what_was(void **state)
{
    struct keep k;
    char value[16];
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    for (int i = 0; i < VAULT_PREVIOUS + 3; i++)
        set(k.vault, SPAN("t"), span_of(value, (size_t)snprintf(value, sizeof(value), "value %d", i)), 0);
    for (int again = 0; again < 2; again++) { /* in memory, and after a restart */
        expect_now(k.vault, SPAN("t"), SPAN("value 5"));
        expect_previous(k.vault, SPAN("t"), 0, SPAN("value 4"));
        expect_previous(k.vault, SPAN("t"), 2, SPAN("value 2"));
        assert_null(vault_previous(k.vault, SPAN("t"), 3));
        keep_close(&k);
        assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    }
    assert_int_equal(vault_remove(k.vault, SPAN("t"), &e), 1);
    assert_int_equal(vault_remove(k.vault, SPAN("t"), &e), 0);
    assert_null(vault_get(k.vault, SPAN("t")));
    expect_previous(k.vault, SPAN("t"), 0, SPAN("value 5")); /* until the restart */
    set(k.vault, SPAN("t"), SPAN("value 9"), 0);
    expect_now(k.vault, SPAN("t"), SPAN("value 9"));
    keep_close(&k);
}

static void d36_earlier_values_are_kept_for_a_time_that_was_set(void **state)
{
    struct keep k;
    uint64_t until;
    struct span t = SPAN("t"), u = SPAN("u");
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    set(k.vault, t, SPAN("value one"), 0);
    set(k.vault, t, SPAN("value two"), 0);
    set(k.vault, u, SPAN("other one"), 0);
    set(k.vault, u, SPAN("other two"), 0);
    assert_int_equal(vault_earlier_until(k.vault, t, 5000, 1000, &e), 1);
    assert_int_equal(vault_earlier_until(k.vault, u, 9000, 1000, &e), 1);
    assert_int_equal(vault_earlier_until(k.vault, SPAN("none"), 5000, 1000, &e), 0);
    keep_close(&k);
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0); /* the moment is on disk */
    assert_int_equal(vault_earlier(k.vault, t, &until), 1);
    assert_int_equal(until, 5000);
    assert_int_equal(vault_expire(k.vault, 4999, &e), 0);
    expect_previous(k.vault, t, 0, SPAN("value one"));
    assert_int_equal(vault_expire(k.vault, 5000, &e), 0);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(vault_earlier(k.vault, t, &until), 0);
        assert_int_equal(until, 0);
        assert_null(vault_previous(k.vault, t, 0));
        expect_now(k.vault, t, SPAN("value two"));
        expect_previous(k.vault, u, 0, SPAN("other one"));
        keep_close(&k);
        assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    }
    set(k.vault, u, SPAN("other three"), 0); /* says nothing of a time: kept until newer ones are there */
    assert_int_equal(vault_expire(k.vault, 9000, &e), 0);
    expect_previous(k.vault, u, 1, SPAN("other one"));
    assert_int_equal(vault_earlier_until(k.vault, u, 9000, 9000, &e), 1); /* at once */
    assert_null(vault_previous(k.vault, u, 0));
    expect_now(k.vault, u, SPAN("other three"));
    keep_close(&k);
}

static void a_time_that_cannot_be_written_down_changes_nothing(void **state)
{
    struct keep k;
    uint64_t until;
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    set(k.vault, SPAN("t"), SPAN("value one"), 0);
    set(k.vault, SPAN("t"), SPAN("value two"), 0);
    assert_int_equal(mkdirat(dir, "secrets.sealed.new", 0700), 0);
    assert_int_equal(vault_earlier_until(k.vault, SPAN("t"), 5000, 1000, &e), -1);
    assert_int_equal(vault_earlier_until(k.vault, SPAN("t"), 1000, 1000, &e), -1);
    assert_int_equal(vault_earlier(k.vault, SPAN("t"), &until), 1);
    assert_int_equal(until, 0);
    expect_previous(k.vault, SPAN("t"), 0, SPAN("value one"));
    assert_int_equal(unlinkat(dir, "secrets.sealed.new", AT_REMOVEDIR), 0);
    keep_close(&k);
}

/* One change of the store: the value is set, and how long the earlier ones are kept, or neither is. */
static void a_value_and_its_time_are_written_at_once(void **state)
{
    struct keep k;
    uint64_t until;
    struct span t = SPAN("t");
    struct secret *two = secret_new(SPAN("value two"));
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    assert_int_equal(vault_set(k.vault, t, two, 5000, 1000, &e), 0);
    assert_int_equal(vault_earlier(k.vault, t, &until), 0);
    assert_int_equal(until, 0); /* there is none before it */
    set(k.vault, t, SPAN("value one"), 0);
    assert_int_equal(mkdirat(dir, "secrets.sealed.new", 0700), 0);
    assert_int_equal(vault_set(k.vault, t, two, 5000, 1000, &e), -1);
    expect_now(k.vault, t, SPAN("value one"));
    assert_int_equal(vault_earlier(k.vault, t, &until), 1);
    assert_int_equal(until, 0);
    assert_int_equal(unlinkat(dir, "secrets.sealed.new", AT_REMOVEDIR), 0);
    assert_int_equal(vault_set(k.vault, t, two, 5000, 1000, &e), 0);
    for (int again = 0; again < 2; again++) {
        expect_now(k.vault, t, SPAN("value two"));
        assert_int_equal(vault_earlier(k.vault, t, &until), 2);
        assert_int_equal(until, 5000);
        keep_close(&k);
        assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    }
    assert_int_equal(vault_expire(k.vault, 5000, &e), 0);
    assert_null(vault_previous(k.vault, t, 0));
    keep_close(&k);
    secret_free(&two);
}

/* As versions before 0.5.0 wrote it. */
static void a_store_without_times_is_read(void **state)
{
    struct keep k;
    struct dynbuf b;
    uint64_t until;
    uint8_t sealed[2][64];
    const struct span name = SPAN("t"), plain[] = {SPAN("value two"), SPAN("value one")};
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    struct secret *key = seal_key_derive(k.master, SPAN("countersign secrets 1"));
    dynbuf_init(&b, 4096);
    dynbuf_add(&b, SPAN("countersign secrets 1\n"));
    msg_put_u32(&b, 1);
    msg_put_span(&b, name);
    msg_put_u64(&b, 10);
    msg_put_u64(&b, 20);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(seal_bytes(key, name, plain[i], sealed[i]), 0);
        msg_put_span(&b, span_of(sealed[i], plain[i].n + SEAL_EXTRA));
        if (i == 0)
            msg_put_u8(&b, 1);
    }
    uint8_t *tag = dynbuf_room(&b, SEAL_EXTRA);
    assert_int_equal(seal_bytes(key, dynbuf_span(&b), SPAN_NONE, tag), 0);
    dynbuf_grew(&b, SEAL_EXTRA);
    assert_int_equal(files_replace(dir, "secrets.sealed", dynbuf_span(&b), &e), 0);
    keep_close(&k);
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    expect_now(k.vault, name, plain[0]);
    assert_int_equal(vault_earlier(k.vault, name, &until), 1);
    assert_int_equal(until, 0);
    keep_close(&k);
    secret_free(&key);
    dynbuf_free(&b);
}

static void a_change_that_fails_changes_nothing(void **state)
{
    struct keep k;
    struct span name;
    uint64_t created, changed;
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    set(k.vault, SPAN("a"), SPAN("old value"), 0);
    assert_int_equal(mkdirat(dir, "secrets.sealed.new", 0700), 0); /* in the way of the file that would be written */
    set(k.vault, SPAN("a"), SPAN("new value"), -1);
    set(k.vault, SPAN("b"), SPAN("new value"), -1);
    assert_int_equal(vault_remove(k.vault, SPAN("a"), &e), -1);
    expect_now(k.vault, SPAN("a"), SPAN("old value"));
    assert_null(vault_get(k.vault, SPAN("b")));
    assert_true(vault_at(k.vault, 0, &name, &created, &changed));
    assert_false(vault_at(k.vault, 1, &name, &created, &changed));
    assert_int_equal(vault_used(k.vault, SPAN("a")), 0);
    vault_use(k.vault, SPAN("a"), 7);
    vault_use(k.vault, SPAN("none of that name"), 8);
    assert_int_equal(vault_used(k.vault, SPAN("a")), 7);
    assert_int_equal(unlinkat(dir, "secrets.sealed.new", AT_REMOVEDIR), 0);
    set(k.vault, SPAN("b"), SPAN("new value"), 0);
    expect_now(k.vault, SPAN("b"), SPAN("new value"));
    keep_close(&k);
}

static void the_store_has_a_limit(void **state)
{
    struct keep k;
    char name[160];
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    for (int i = 0; i < VAULT_MAX; i++)
        set(k.vault, span_of(name, (size_t)snprintf(name, sizeof(name), "n%d", i)), SPAN("value"), 0);
    set(k.vault, SPAN("one-more"), SPAN("value"), -1);
    assert_int_equal(vault_remove(k.vault, SPAN("n7"), &e), 1);
    set(k.vault, SPAN("one-more"), SPAN("value"), 0);
    expect_now(k.vault, SPAN("one-more"), SPAN("value"));
    keep_close(&k);
    assert_int_equal(keep_open(&k, dir, NULL, time(NULL), &e), 0);
    expect_now(k.vault, SPAN("n255"), SPAN("value"));
    keep_close(&k);
    memset(name, 'n', sizeof(name));
    assert_true(vault_name_ok(span_of(name, VAULT_NAME_MAX)));
    assert_false(vault_name_ok(span_of(name, VAULT_NAME_MAX + 1)));
    assert_false(vault_name_ok(SPAN("")));
    assert_false(vault_name_ok(SPAN("../x")));
    assert_false(vault_name_ok(SPAN("a/b")));
    assert_false(vault_name_ok(SPAN("-x")));
    assert_false(vault_name_ok(SPAN("a\0b")));
}

static void d15_values_that_would_break_a_header_are_refused(void **state)
{
    static const struct span bad[] = {
        SPAN(""),
        SPAN("7 bytes"),
        SPAN("long\renough"),
        SPAN("long\nenough"),
        SPAN("long\0enough"),
        SPAN("longenough\n"),
        SPAN(" longenough"),
        SPAN("longenough "),
        SPAN("long\tenough"),
        SPAN("longenough\x7f"),
        SPAN("\x1b[0mlongenough"),
    };
    static char big[64 * 1024];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(value_check(bad[i], &e), -1);
    memset(big, 'S', sizeof(big));
    assert_int_equal(value_check(span_of(big, VALUE_MAX), &e), 0);
    assert_int_equal(value_check(span_of(big, VALUE_MAX + 1), &e), -1);
    assert_int_equal(value_check(span_of(big, sizeof(big)), &e), -1);
    assert_null(strstr(e.text, "SS")); /* the words never repeat the value */
    assert_true(span_eq(value_trim(SPAN("a\n")), SPAN("a")));
    assert_true(span_eq(value_trim(SPAN("a\r\n")), SPAN("a")));
    assert_true(span_eq(value_trim(SPAN("a\n\n")), SPAN("a\n")));
    assert_int_equal(value_check(SPAN("8 bytes!"), &e), 0);
    assert_int_equal(value_check(value_trim(SPAN("longenough\n\n")), &e), -1);
    assert_int_equal(value_check(value_trim(SPAN("\n")), &e), -1);
}

static void expect_rendered(struct credential c, struct span v, struct span want)
{
    struct secret *s = value_render(&c, v, &e);
    assert_true(want.p ? s != NULL && span_eq(secret_bytes(s), want) : s == NULL);
    secret_free(&s);
}

/* A key to sign with may have lines and may be alone; what is shown as a certificate has both, and no field has
 * lines. */
static void keys_and_certificates_are_told_apart(void **state)
{
#define KEY_PEM  "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw\n-----END PRIVATE KEY-----\n"
#define CERT_PEM "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIB\n-----END CERTIFICATE-----\n"
    const struct credential shown = {.certificate = true}, field = {.format = SPAN("Bearer {}")};
    assert_int_equal(value_check(SPAN(KEY_PEM), &e), 0);
    assert_int_equal(value_check(SPAN(CERT_PEM), &e), -1);
    assert_int_equal(value_fits(&shown, SPAN(KEY_PEM CERT_PEM), &e), 0);
    assert_int_equal(value_fits(&shown, SPAN(KEY_PEM), &e), -1);
    assert_int_equal(value_fits(&shown, SPAN(CERT_PEM), &e), -1);
    assert_int_equal(value_fits(&shown, SPAN("a token in one line"), &e), -1);
    assert_int_equal(value_fits(&field, SPAN(KEY_PEM), &e), -1);
    expect_rendered(shown, SPAN(KEY_PEM), SPAN_NONE);
    expect_rendered(field, SPAN(KEY_PEM CERT_PEM), SPAN_NONE);
    expect_rendered(shown, SPAN(KEY_PEM CERT_PEM), SPAN(KEY_PEM CERT_PEM));
}

static void values_are_rendered_as_the_policy_says(void **state)
{
    struct credential c = {.format = SPAN("Bearer {}")};
    expect_rendered(c, SPAN("tok"), SPAN("Bearer tok"));
    expect_rendered(c, SPAN("{}"), SPAN("Bearer {}"));
    expect_rendered(c, SPAN("t\xc3\xb6k"), SPAN_NONE);
    c.format = SPAN_NONE;
    expect_rendered(c, SPAN("tok"), SPAN("tok"));
    c.format = SPAN("no place");
    expect_rendered(c, SPAN("tok"), SPAN_NONE);
    c.format = SPAN("{}{}");
    expect_rendered(c, SPAN("tok"), SPAN_NONE);
    c = (struct credential){.basic_user = SPAN("x-access-token"), .basic = true};
    expect_rendered(c, SPAN("pass"), SPAN("Basic eC1hY2Nlc3MtdG9rZW46cGFzcw=="));
    c.basic_user = SPAN("a:b");
    expect_rendered(c, SPAN("pass"), SPAN_NONE);
    c.basic_user = SPAN_NONE;
    expect_rendered(c, SPAN("user:password"), SPAN("Basic dXNlcjpwYXNzd29yZA=="));
    expect_rendered(c, SPAN("sk_live_1234:"), SPAN("Basic c2tfbGl2ZV8xMjM0Og=="));
    expect_rendered(c, SPAN("pass"), SPAN_NONE);
    expect_rendered(c, SPAN("user-of-many-letters:passwor"), SPAN_NONE); /* D45 */
    expect_rendered(c, SPAN("user:"), SPAN_NONE);
    assert_true(span_eq(value_header(&c), SPAN("Authorization")));
}

#define IN_A_FOLDER(f) cmocka_unit_test_setup_teardown(f, make_folder, clear_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(c29_a_first_start_makes_all_and_the_second_finds_it),
        IN_A_FOLDER(a_master_key_from_elsewhere_is_never_in_the_folder),
        IN_A_FOLDER(two_master_keys_are_one_too_many),
        IN_A_FOLDER(nothing_secret_lies_open_in_the_folder),
        IN_A_FOLDER(a_missing_file_is_never_made_anew),
        IN_A_FOLDER(a_damaged_file_is_refused),
        IN_A_FOLDER(c29_modes_links_and_other_kinds_are_refused),
        IN_A_FOLDER(c29_a_link_in_wait_is_not_followed_at_creation),
        IN_A_FOLDER(a_first_start_cut_short_is_begun_again),
        IN_A_FOLDER(d36_rotation_keeps_what_was),
        IN_A_FOLDER(d36_earlier_values_are_kept_for_a_time_that_was_set),
        IN_A_FOLDER(a_time_that_cannot_be_written_down_changes_nothing),
        IN_A_FOLDER(a_value_and_its_time_are_written_at_once),
        IN_A_FOLDER(a_store_without_times_is_read),
        IN_A_FOLDER(a_change_that_fails_changes_nothing),
        IN_A_FOLDER(the_store_has_a_limit),
        cmocka_unit_test(d15_values_that_would_break_a_header_are_refused),
        cmocka_unit_test(keys_and_certificates_are_told_apart),
        cmocka_unit_test(values_are_rendered_as_the_policy_says),
    };
    return cmocka_run_group_tests_name("keep", tests, NULL, NULL);
}
