/* countersign.yaml: what is taken, and what is refused with file:line:col (B51, F26, E39). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy/parent/config.h"

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

static void defaults_hold_where_nothing_is_said(void **state)
{
    struct err e;
    struct config *c = load("version: 1\n", &e);
    assert_non_null(c);
    assert_int_equal(c->inline_wait_ms, 50000);
    assert_int_equal(c->expires_ms, 1800000);
    assert_int_equal(c->pending_max, 64);
    assert_int_equal(c->nlisteners, 1);
    assert_string_equal(c->desk_address, "localhost:8088");
    assert_string_equal(c->policy[0], "/tmp/data/policies/default.yaml");
    assert_false(c->store_lost_allow_reads);
    assert_false(c->disclose_rules);
    free(c);
}

static void values_are_taken(void **state)
{
    struct err e;
    char want[128];
    struct config *c = load("version: 1\npolicy: [a.yaml, /b.yaml]\nfloors: f.yaml\nstore_lost: allow-reads\n"
                            "listeners:\n  - { name: x, http: 127.0.0.1:3128, identity: token }\n"
                            "  - { name: z, unix: y.sock, identity: { sandbox: y1 } }\n"
                            "desk: { http: \"127.0.0.1:9\" }\nhold: { inline_wait: 2s, expires: 1h, pending: 3 }\n"
                            "body: { max: 1MiB }\ncrl: lists.pem\n"
                            "dns: { servers: [10.0.0.2, 10.0.0.3:5353, \"fd00::2\", \"[fd00::3]:54\"] }\n",
                            &e);
    if (c == NULL)
        fail_msg("%s", e.text);
    snprintf(want, sizeof(want), "%s/a.yaml", dir);
    assert_string_equal(c->policy[0], want);
    assert_string_equal(c->policy[1], "/b.yaml");
    assert_int_equal(c->nlisteners, 2);
    assert_true(c->listener[1].is_unix);
    assert_string_equal(c->listener[1].sandbox, "y1");
    snprintf(want, sizeof(want), "%s/y.sock", dir);
    assert_string_equal(c->listener[1].address, want);
    assert_int_equal(c->inline_wait_ms, 2000);
    snprintf(want, sizeof(want), "%s/lists.pem", dir);
    assert_string_equal(c->crl, want);
    assert_string_equal(c->dns_servers, "10.0.0.2:53,10.0.0.3:5353,[fd00::2]:53,[fd00::3]:54");
    assert_int_equal(c->pending_max, 3);
    assert_int_equal(c->body_max, 1024 * 1024);
    assert_true(c->store_lost_allow_reads);
    free(c);
}

static const struct {
    const char *text, *where; /* what the words must hold */
} refused[] = {
    {"", "c.yaml"},
    {"version: 2\n", "c.yaml:1:"},
    {"state_dir: /x\n", "version"},
    {"version: 1\nlisterners: []\n", "c.yaml:2:1"},
    {"version: 1\nversion: 1\n", "c.yaml:2:"},
    {"version: 1\nmode: enfroce\n", "c.yaml:2:"},
    {"version: 1\nstore_lost: yes\n", "c.yaml:2:"},
    {"version: 1\nhold: { inline_wait: 10 }\n", "c.yaml:2:"},
    {"version: 1\nhold: { inline_wait: -1s }\n", "c.yaml:2:"},
    {"version: 1\nhold: { inline_wait: 100h }\n", "c.yaml:2:"},
    {"version: 1\nhold: { pending: 0 }\n", "c.yaml:2:"},
    {"version: 1\nhold: { pending: 99999999999999999999 }\n", "c.yaml:2:"},
    {"version: 1\nbody: { max: 0 }\n", "c.yaml:2:"},
    {"version: 1\ndns: { servers: [] }\n", "c.yaml:2:"},
    {"version: 1\ndns: { servers: ns.example }\n", "c.yaml:2:17"},
    {"version: 1\ndns: { servers: [10.0.0.2, 10.0.0.2:0] }\n", "c.yaml:2:28"},
    {"version: 1\ndns: { servers: [10.0.0.2:99999] }\n", "c.yaml:2:18"},
    {"version: 1\ndns: { servers: [127.1] }\n", "c.yaml:2:18"},
    {"version: 1\ndns: { servers: [[10.0.0.2]] }\n", "c.yaml:2:18"},
    {"version: 1\ndns: { search: [x] }\n", "c.yaml:2:8"},
    {"version: 1\ndesk: { http: \"0.0.0.0:8088\" }\n", "loopback"},
    {"version: 1\ndesk: { http: \"192.168.1.5:8088\" }\n", "loopback"},
    {"version: 1\nstore: postgresql://x\n", "sqlite:ledger.db"},
    {"version: 1\nmetrics: { http: x }\n", "not available yet"},
    {"version: 1\nlisteners: [{ name: a, http: \"127.0.0.1:1\", identity: { sandbox: b } }]\n", "C002"},
    {"version: 1\nlisteners: [{ name: a, unix: a.sock, identity: token }]\n", "identity"},
    {"version: 1\nlisteners: [{ name: a, identity: token }]\n", "either http"},
    {"version: 1\nlisteners: [{ name: a, http: \"127.0.0.1:1\" }]\n", "identity"},
    {"version: 1\npolicy: &p [a.yaml]\nfloors: *p\n", "c.yaml:2:"},
    {"version: 1\n---\nversion: 1\n", "c.yaml:2:"},
    {"version: !!int 1\n", "c.yaml:1:"},
    {"- version: 1\n", "c.yaml:1:"},
};

static void what_is_not_understood_is_refused_with_its_place(void **state)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        struct err e = {{0}};
        struct config *c = load(refused[i].text, &e);
        if (c != NULL)
            fail_msg("taken: %s", refused[i].text);
        if (strstr(e.text, refused[i].where) == NULL && strcmp(refused[i].where, "C002") != 0)
            fail_msg("%s\n  says: %s\n  want: %s", refused[i].text, e.text, refused[i].where);
    }
}

static void the_state_directory_is_absolute(void **state)
{
    struct err e;
    struct config_args a = {.state_dir = "relative"};
    assert_null(config_load(&a, &e));
    assert_non_null(strstr(e.text, "absolute"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_hold_where_nothing_is_said),
        cmocka_unit_test(values_are_taken),
        cmocka_unit_test(what_is_not_understood_is_refused_with_its_place),
        cmocka_unit_test(the_state_directory_is_absolute),
    };
    return cmocka_run_group_tests_name("config", tests, set_up, tear_down);
}
