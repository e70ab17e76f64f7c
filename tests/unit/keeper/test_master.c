/* The master key from elsewhere: what is a key, in which file, and that no word repeats what was read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/keeper/master.h"

#define RAW "0123456789abcdefghijklmnopqrstuv"
#define HEX "303132333435363738396162636465666768696A6b6c6d6e6f70717273747576"

static struct err e;

/* A file of this mode with these bytes, open to be read, and gone. */
static int file_with(struct span s, unsigned mode)
{
    char path[] = "/tmp/cs-master-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, s.p, s.n), (ssize_t)s.n);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(unlink(path), 0);
    return fd;
}

static struct secret *read_file(struct span s, unsigned mode, enum source_kind kind)
{
    int fd = file_with(s, mode);
    struct secret *key = master_read(kind, fd, (unsigned)geteuid(), &e);
    close(fd);
    return key;
}

static void expect_key(struct span s, bool is_key)
{
    struct secret *key = read_file(s, 0600, SOURCE_FILE);
    assert_true(is_key == (key != NULL));
    if (is_key)
        assert_true(span_eq(secret_bytes(key), SPAN(RAW)));
    else
        assert_non_null(strstr(e.text, "openssl rand -hex 32"));
    assert_null(strstr(e.text, "3031"));
    assert_null(strstr(e.text, "0123"));
    secret_free(&key);
}

static void a_key_is_32_bytes_or_64_hex_digits(void **state)
{
    expect_key(SPAN(RAW), true);
    expect_key(SPAN(HEX), true);
    expect_key(SPAN(HEX "\n"), true);
    expect_key(SPAN_NONE, false);
    expect_key(SPAN("\n"), false);
    expect_key(span_first(SPAN(RAW), 31), false);
    expect_key(SPAN(RAW "\n"), false);
    expect_key(span_first(SPAN(HEX), 63), false);
    expect_key(SPAN(HEX "\n\n"), false);
    expect_key(SPAN(HEX "\r\n"), false);
    expect_key(SPAN(HEX "0"), false);
    expect_key(SPAN("0x"
                    "303132333435363738396162636465666768696A6b6c6d6e6f707172737475"),
               false);
    expect_key(SPAN(" 03132333435363738396162636465666768696A6b6c6d6e6f70717273747576"), false);
}

static void a_file_is_one_that_nobody_else_may_read(void **state)
{
    static const unsigned bad[] = {0640, 0604, 0660, 0601};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_null(read_file(SPAN(RAW), bad[i], SOURCE_FILE));
        assert_non_null(strstr(e.text, "chmod 600"));
    }
    struct secret *key = read_file(SPAN(RAW), 0440, SOURCE_SYSTEMD); /* the group's bits are an access list's mask */
    assert_non_null(key);
    secret_free(&key);
    assert_null(read_file(SPAN(RAW), 0444, SOURCE_SYSTEMD));
    int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_null(master_read(SOURCE_FILE, fd, (unsigned)geteuid(), &e));
    assert_non_null(strstr(e.text, "regular file"));
    close(fd);
    assert_null(master_read(SOURCE_FILE, -1, 0, &e));
}

static void another_users_file_is_refused(void **state)
{
    int fd = file_with(SPAN(RAW), 0600);
    if (geteuid() != 0)
        skip();
    assert_int_equal(fchown(fd, 4711, 4711), 0);
    assert_null(master_read(SOURCE_FILE, fd, 0, &e));
    assert_non_null(strstr(e.text, "4711"));
    struct secret *key = master_read(SOURCE_FILE, fd, 4711, &e);
    assert_non_null(key);
    secret_free(&key);
    close(fd);
}

/* What a program left in its pipe. hold: somebody still has the other end. */
static struct secret *read_pipe(struct span s, bool hold)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(write(fds[1], s.p, s.n), (ssize_t)s.n);
    if (!hold)
        close(fds[1]);
    struct secret *key = master_read(SOURCE_EXEC, fds[0], 0, &e);
    if (hold)
        close(fds[1]);
    close(fds[0]);
    return key;
}

static void what_a_program_left_is_read_to_its_end(void **state)
{
    static char big[4097];
    for (int hold = 0; hold < 2; hold++) {
        struct secret *key = read_pipe(SPAN(HEX "\n"), hold);
        assert_true(key != NULL && span_eq(secret_bytes(key), SPAN(RAW)));
        secret_free(&key);
        assert_null(read_pipe(SPAN_NONE, hold));
    }
    memset(big, 'a', sizeof(big));
    assert_null(read_pipe(span_of(big, 4096), false));
    assert_non_null(strstr(e.text, "4096 bytes that are there"));
    assert_null(read_pipe(span_of(big, 4097), false));
    assert_non_null(strstr(e.text, "longer than 4096"));
}

static void three_ways_have_names(void **state)
{
    assert_int_equal(master_from(SPAN("file")), SOURCE_FILE);
    assert_int_equal(master_from(SPAN("systemd")), SOURCE_SYSTEMD);
    assert_int_equal(master_from(SPAN("exec")), SOURCE_EXEC);
    assert_int_equal(master_from(SPAN("env")), SOURCE_NONE);
    assert_int_equal(master_from(SPAN("none")), SOURCE_NONE);
    assert_int_equal(master_from(SPAN("")), SOURCE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_32_bytes_or_64_hex_digits),
        cmocka_unit_test(a_file_is_one_that_nobody_else_may_read),
        cmocka_unit_test(another_users_file_is_refused),
        cmocka_unit_test(what_a_program_left_is_read_to_its_end),
        cmocka_unit_test(three_ways_have_names),
    };
    return cmocka_run_group_tests_name("master", tests, NULL, NULL);
}
