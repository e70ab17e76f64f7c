/* The one form of postgresql:// that is taken. */
#include "common/postgres/where.h"
#include "tests/kit.h"

static struct pg_where w;
static struct err e;

static int read_url(const char *url)
{
    return pg_where_read(span_str(url), &w, &e);
}

static void ways_there(void **state)
{
    assert_int_equal(read_url("postgresql://me@127.0.0.1/broker"), 0);
    assert_string_equal(w.user, "me");
    assert_string_equal(w.address, "127.0.0.1");
    assert_string_equal(w.database, "broker");
    assert_int_equal(w.port, 5432);
    assert_int_equal(read_url("postgresql://me@[::1]:5433/broker"), 0);
    assert_string_equal(w.address, "::1");
    assert_int_equal(w.port, 5433);
    assert_int_equal(read_url("postgresql://me@%2Frun%2Fpostgresql:5434/b"), 0);
    assert_string_equal(w.folder, "/run/postgresql");
    assert_string_equal(w.address, "");
    assert_int_equal(w.port, 5434);
    assert_int_equal(
        read_url("postgresql://me@db.example/b?hostaddr=192.0.2.7&sslmode=verify-full&sslrootcert=/etc/ca.pem"), 0);
    assert_string_equal(w.name, "db.example");
    assert_string_equal(w.address, "192.0.2.7");
    assert_string_equal(w.roots, "/etc/ca.pem");
    assert_int_equal(read_url("postgresql://me@192.0.2.7/b?sslmode=verify-full&sslrootcert=/etc/ca.pem"), 0);
}

/* What is not understood is refused, and nothing leaves the machine that somebody between could read or be. */
static void what_is_refused(void **state)
{
    static const struct {
        const char *url, *words;
    } rows[] = {
        {"postgres://me@127.0.0.1/b", "does not begin"},
        {"postgresql://127.0.0.1/b", "no user"},
        {"postgresql://me:secret@127.0.0.1/b", "password has no place"},
        {"postgresql://me@127.0.0.1", "no database"},
        {"postgresql://me@127.0.0.1/", "no database"},
        {"postgresql://@127.0.0.1/b", "no user"},
        {"postgresql://me@/b", "no host"},
        {"postgresql://me@127.0.0.1:0/b", "port"},
        {"postgresql://me@127.0.0.1:65536/b", "port"},
        {"postgresql://me@127.0.0.1:/b", "port"},
        {"postgresql://me@[::1/b", "not closed"},
        {"postgresql://me@[::1]x/b", "not closed"},
        {"postgresql://me@localhost/b", "hostaddr="},
        {"postgresql://me@db.example/b?hostaddr=other.example", "hostaddr="},
        {"postgresql://me@192.0.2.7/b", "TLS"},
        {"postgresql://me@128.0.0.1/b", "TLS"},
        {"postgresql://me@192.0.2.7/b?sslmode=require", "verify-full"},
        {"postgresql://me@192.0.2.7/b?sslmode=verify-full", "go together"},
        {"postgresql://me@192.0.2.7/b?sslrootcert=/etc/ca.pem", "go together"},
        {"postgresql://me@192.0.2.7/b?sslmode=verify-full&sslrootcert=ca.pem", "from / on"},
        {"postgresql://me@%2Frun/b?hostaddr=127.0.0.1", "Unix socket"},
        {"postgresql://me@127.0.0.1/b?options=-cx=y", "may have"},
        {"postgresql://me@127.0.0.1/b?password=x", "may have"},
        {"postgresql://me@127.0.0.1/b%00x", "no place"},
        {"postgresql://me%27@127.0.0.1/b", "no place"},
        {"postgresql://me%2@127.0.0.1/b", "no place"},
        {"postgresql://me@127.0.0.1/a\nb", "no place"},
        {"postgresql://0123456789012345678901234567890123456789012345678901234567890123@127.0.0.1/b", "too long"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (read_url(rows[i].url) == 0)
            fail_msg("%s was taken", rows[i].url);
        if (strstr(e.text, rows[i].words) == NULL)
            fail_msg("%s: %s", rows[i].url, e.text);
        assert_null(strstr(e.text, "secret"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ways_there), cmocka_unit_test(what_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
