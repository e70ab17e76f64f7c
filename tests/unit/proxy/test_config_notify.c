/* notify: of countersign.yaml: what is taken, and what is refused in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy/parent/config/config.h"

static char dir[] = "/tmp/countersign-config-XXXXXX", path[64];

static struct config *load(const char *text, struct err *e)
{
    struct config_args a = {.config = path, .state_dir = "/tmp/state", .data_dir = "/tmp/data"};
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return config_load(&a, e);
}

static int set_up(void **state)
{
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/c.yaml", dir);
    return 0;
}

static int tear_down(void **state)
{
    unlink(path);
    return rmdir(dir);
}

#define HOOK  "name: ops, webhook: \"https://hooks.example/x\", secret: ops-key"
#define ALICE "[{ slack: T012AB3C4/U9ZX8Y7, operator: alice }]"
#define MAIL  "from: a@b.example, to: c@d.example"

static void who_is_told_is_read(void **state)
{
    struct err e;
    struct config *c = load("version: 1\nnotify:\n- { " HOOK ", events: [waiting, frozen], tenants: [acme] }\n"
                            "- { name: m, mail: { relay: \"smtps://x.example\", " MAIL ", user: u, password: p } }\n"
                            "- { name: s, slack: url, give_up: 1h, budget: 20, signing: key, people: " ALICE " }\n",
                            &e);
    assert_non_null(c);
    assert_int_equal(c->nnotify, 3);
    assert_int_equal(c->notify[0].events, TELL_WAITING | TELL_FROZEN);
    assert_string_equal(c->notify[0].tenant[0], "acme");
    assert_int_equal(c->notify[0].give_up_ms, 24 * 3600 * 1000);
    assert_true(c->notify[1].tls_required && c->notify[1].events == TELL_WAITING && c->notify[1].nto == 1);
    assert_string_equal(c->notify[2].secret, "url");
    assert_int_equal(c->notify[2].give_up_ms, 3600 * 1000);
    assert_int_equal(c->notify[2].budget, 20);
    assert_int_equal(c->notify[0].budget, 0);
    assert_true(c->notify[0].signing[0] == '\0' && c->notify[2].npeople == 1);
    assert_string_equal(c->notify[2].signing, "key");
    assert_string_equal(c->notify[2].people[0].who, "T012AB3C4/U9ZX8Y7");
    assert_string_equal(c->notify[2].people[0].name, "alice");
    config_free(&c);
}

static void what_is_not_understood_is_refused(void **state)
{
    static const struct {
        const char *rows, *said;
    } bad[] = {
        {"[{ webhook: \"https://x.example/\", secret: k }]", "name"},
        {"[{ name: Ops, webhook: \"https://x.example/\", secret: k }]", "a name here"},
        {"[{ name: a }]", "exactly one"},
        {"[{ name: a, webhook: \"https://x.example/\" }]", "exactly one"},
        {"[{ name: a, slack: k, secret: k }]", "exactly one"},
        {"[{ name: a, slack: k, webhook: \"https://x.example/\", secret: k }]", "exactly one"},
        {"[{ name: a, webhook: \"http://x.example/\", secret: k }]", "loopback"},
        {"[{ name: a, webhook: \"http://127.example.com/\", secret: k }]", "loopback"},
        {"[{ name: a, webhook: \"https://u@x.example/\", secret: k }]", "no URL"},
        {"[{ name: a, webhook: \"smtp://x.example\", secret: k }]", "no URL"},
        {"[{ name: a, webhook: \"https://x.example/\", secret: a/b }]", "stored secret"},
        {"[{ " HOOK " }, { " HOOK " }]", "of this name"},
        {"[{ " HOOK ", events: [never] }]", "events"},
        {"[{ " HOOK ", allow_private: [10.0.0.1/8] }]", "a range"},
        {"[{ " HOOK ", ca: nothing.pem }]", "cannot be read"},
        {"[{ " HOOK ", give_up: 1s }]", "give_up"},
        {"[{ " HOOK ", budget: 0 }]", "budget"},
        {"[{ name: a, mail: { relay: \"https://x.example\", " MAIL " } }]", "a relay"},
        {"[{ name: a, mail: { relay: \"smtp://x.example\", from: a, to: c@d.example } }]", "a mail address"},
        {"[{ name: a, mail: { relay: \"smtp://x.example\", " MAIL ", user: u } }]", "go together"},
        {"[{ name: a, mail: { relay: \"smtp://x.example\", " MAIL ", user: u, password: p, starttls: offered } }]",
         "over TLS"},
        {"[{ name: a, slack: k, signing: s }]", "people: of 1 to"},
        {"[{ name: a, slack: k, people: " ALICE " }]", "go together"},
        {"[{ " HOOK ", signing: s, people: " ALICE " }]", "go together"},
        {"[{ name: a, slack: k, signing: s/t, people: " ALICE " }]", "stored secret"},
        {"[{ name: a, slack: k, signing: s, people: [{ slack: alice, operator: alice }] }]", "TEAM/USER"},
        {"[{ name: a, slack: k, signing: s, people: [{ slack: T1/alice, operator: alice }] }]", "TEAM/USER"},
        {"[{ name: a, slack: k, signing: s, people: [{ slack: U1/T1, operator: alice }] }]", "TEAM/USER"},
        {"[{ name: a, slack: k, signing: s, people: [{ slack: T1/U1, operator: \"uid 0\" }] }]",
         "no operator's name"},
        {"[{ name: a, slack: k, signing: s, people: [{ slack: T1/U1, operator: a }, { slack: T1/U1, operator: b }] "
         "}]",
         "named already"},
    };
    struct err e;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[400];
        snprintf(text, sizeof(text), "version: 1\nnotify: %s\n", bad[i].rows);
        assert_null(load(text, &e));
        if (strstr(e.text, bad[i].said) == NULL)
            fail_msg("%s: %s", bad[i].rows, e.text);
    }
}

/* As the store keeps it across upgrades: of what is said, not of what lies around it. */
static void another_is_who_is_said_otherwise(void **state)
{
    static const char row[] =
        "version: 1\nnotify:\n- { name: ops, webhook: \"https://hooks.example/x\", secret: ops-key";
    static const char *const more[] = {"",
                                       ", events: [waiting, frozen]",
                                       ", tenants: [acme]",
                                       ", tenants: [acme, b]",
                                       ", tenants: [acmeb]",
                                       ", give_up: 1h",
                                       ", allow_private: [10.0.0.0/8]"};
    struct digest seen[sizeof(more) / sizeof(more[0])], again;
    struct err e;
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), "%s%s }\n", row, more[i]);
        struct config *c = load(text, &e);
        assert_non_null(c);
        assert_int_equal(config_notify_digest(&c->notify[0], &seen[i]), 0);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(seen[k].b, seen[i].b, DIGEST_BYTES);
        memset(c->notify[0].url + strlen(c->notify[0].url) + 1, 'x', 8);
        memset(c->notify[0].tenant[TELL_TENANTS_MAX - 1], 'x', 8);
        assert_int_equal(config_notify_digest(&c->notify[0], &again), 0);
        assert_memory_equal(again.b, seen[i].b, DIGEST_BYTES);
        config_free(&c);
    }
}

/* Who else may press a button makes it no other, so that what waits is still told; and there is an end to them. */
static void so_many_people_may_press_a_button(void **state)
{
    struct digest first, is;
    struct err e;
    for (size_t n = 1; n <= TELL_PEOPLE_MAX + 1; n++) {
        char text[4096];
        size_t at = (size_t)snprintf(text, sizeof(text),
                                     "version: 1\nnotify:\n- { name: s, slack: url, signing: key, people: [");
        for (size_t i = 0; i < n; i++)
            at += (size_t)snprintf(text + at, sizeof(text) - at, "{ slack: T1/U%zu, operator: alice },", i);
        (void)snprintf(text + at, sizeof(text) - at, "] }\n");
        struct config *c = load(text, &e);
        assert_int_equal(c != NULL, n <= TELL_PEOPLE_MAX);
        if (c == NULL) {
            assert_non_null(strstr(e.text, "people: of 1 to"));
            break;
        }
        assert_int_equal(c->notify[0].npeople, n);
        assert_int_equal(config_notify_digest(&c->notify[0], n == 1 ? &first : &is), 0);
        assert_true(n == 1 || memcmp(first.b, is.b, DIGEST_BYTES) == 0);
        config_free(&c);
    }
}

/* That a later version knows signing: makes a row that has none no other: this is what its digest was before. */
static void a_row_without_signing_is_what_it_was(void **state)
{
    static const char was[] = "name 4\nteamkind 2\nsecret 8\nteam-urlevents 1\ngive-up 86400000\n";
    static const char *const more[] = {"", ", signing: key, people: [{ slack: T1/U1, operator: alice }]"};
    struct digest want, is;
    struct err e;
    digest_of(span_str(was), &want);
    for (size_t i = 0; i < 2; i++) {
        char text[256];
        (void)snprintf(text, sizeof(text), "version: 1\nnotify: [{ name: team, slack: team-url%s }]\n", more[i]);
        struct config *c = load(text, &e);
        assert_non_null(c);
        assert_int_equal(config_notify_digest(&c->notify[0], &is), 0);
        assert_true((memcmp(want.b, is.b, DIGEST_BYTES) == 0) == (i == 0));
        config_free(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_told_is_read), cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(another_is_who_is_said_otherwise), cmocka_unit_test(so_many_people_may_press_a_button),
        cmocka_unit_test(a_row_without_signing_is_what_it_was)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
