/* countersign.yaml: what is taken, and what is refused with file:line:col (B51, F26, E39). */
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

static void touch(const char *name, char *out, size_t cap)
{
    snprintf(out, cap, "%s/%s", dir, name);
    FILE *f = fopen(out, "w");
    assert_non_null(f);
    fclose(f);
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
    assert_int_equal(c->log_level, LOG_INFO);
    assert_int_equal(c->log_form, LOG_AUTO);
    assert_string_equal(c->log_trace, "");
    assert_int_equal(c->master.from, SOURCE_NONE);
    assert_int_equal(c->uid_base, 0);
    config_free(&c);
}

static void values_are_taken(void **state)
{
    struct err e;
    char want[128], floors[128], lists[128];
    touch("f.yaml", floors, sizeof(floors));
    touch("lists.pem", lists, sizeof(lists));
    struct config *c = load(
        "version: 1\npolicy: [a.yaml, /b.yaml]\nfloors: f.yaml\nstore_lost: allow-reads\n"
        "listeners:\n  - { name: x, http: 127.0.0.1:3128, identity: token }\n"
        "  - { name: z, unix: y.sock, identity: { sandbox: y1 } }\n"
        "desk: { http: \"127.0.0.1:9\" }\nhold: { inline_wait: 2s, expires: 1h, pending: 3 }\n"
        "body: { max: 1MiB }\nlimits: { sandboxes: 7, connections: 9, checkpoints: 3GiB }\ncrl: lists.pem\nlog: { "
        "level: debug, trace: ci-7, format: text }\n"
        "dns: { servers: [10.0.0.2, 10.0.0.3:5353, \"fd00::2\", \"[fd00::3]:54\"] }\n"
        "uid_base: 65536\ne2b: { http: \"127.0.0.1:0\", lanes: { acme: web, globex: docs } }\n",
        &e);
    if (c == NULL)
        fail_msg("%s", e.text);
    assert_int_equal(c->uid_base, 65536);
    assert_string_equal(c->dock_lanes, "acme web\nglobex docs\n");
    assert_int_equal(c->sandboxes_max, 7);
    assert_int_equal(c->connections_max, 9);
    assert_int_equal(c->checkpoints_max, UINT64_C(3) << 30);
    snprintf(want, sizeof(want), "%s/a.yaml", dir);
    assert_string_equal(c->policy[0], want);
    assert_string_equal(c->policy[1], "/b.yaml");
    assert_int_equal(c->nlisteners, 2);
    assert_int_equal(c->listener[1].kind, CONFIG_UNIX);
    assert_string_equal(c->listener[1].sandbox, "y1");
    snprintf(want, sizeof(want), "%s/y.sock", dir);
    assert_string_equal(c->listener[1].address, want);
    assert_int_equal(c->inline_wait_ms, 2000);
    snprintf(want, sizeof(want), "%s/lists.pem", dir);
    assert_string_equal(c->crl, want);
    assert_string_equal(c->dns_servers, "10.0.0.2:53,10.0.0.3:5353,[fd00::2]:53,[fd00::3]:54");
    assert_int_equal(c->log_level, LOG_DEBUG);
    assert_int_equal(c->log_form, LOG_TEXT);
    assert_string_equal(c->log_trace, "ci-7");
    assert_int_equal(c->pending_max, 3);
    assert_int_equal(c->body_max, 1024 * 1024);
    assert_true(c->store_lost_allow_reads);
    unlink(floors);
    unlink(lists);
    config_free(&c);
}

static void put(const char *name, const char *text)
{
    char to[128];
    snprintf(to, sizeof(to), "%s/%s", dir, name);
    FILE *f = fopen(to, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void take_away(const char *name)
{
    char at[128];
    snprintf(at, sizeof(at), "%s/%s", dir, name);
    unlink(at);
}

#define TASK "version: 1\nkind: count\ncommand: [wc, -w]\ntimeout: 30s\ninput: any.json\noutput: any.json\n"

static void sandboxes_that_wait_are_read(void **state)
{
    static const struct {
        const char *rows, *said;
    } bad[] = {
        {"[{ image: host }]", "size"},
        {"[{ size: 0 }]", "size"},
        {"[{ size: 65 }]", "size"},
        {"[{ size: 1, memory: 1MiB }]", "memory"},
        {"[{ size: 1, image: ../x }]", "an image's name"},
        {"[{ size: 1 }, { size: 2, image: host }]", "another pool"},
        {"[{ size: 33 }, { size: 32, pids: 9 }]", "at most 64"},
    };
    struct err e;
    struct config *c =
        load("version: 1\npool: [{ size: 4 }, { image: node, size: 60, memory: 2GiB, pids: 9 }]\n", &e);
    assert_non_null(c);
    assert_int_equal(c->nready, 2);
    assert_string_equal(c->ready[0].image, "");
    assert_int_equal(c->ready[0].size, 4);
    assert_int_equal(c->ready[0].memory, 0);
    assert_string_equal(c->ready[1].image, "node");
    assert_int_equal(c->ready[1].memory, UINT64_C(2) << 30);
    assert_int_equal(c->ready[1].pids, 9);
    config_free(&c);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char text[200];
        snprintf(text, sizeof(text), "version: 1\npool: %s\n", bad[i].rows);
        if (load(text, &e) != NULL || strstr(e.text, bad[i].said) == NULL)
            fail_msg("%s: %s", bad[i].rows, e.text);
    }
}

static void egress_is_of_each_and_of_tenants(void **state)
{
    struct err e;
    struct config *c =
        load("version: 1\negress: { bytes: 100MiB, requests: 1000, tenants: [{ tenant: acme, bytes: 1GiB, "
             "per: 24h }, { tenant: b, requests: 5, per: 1m }] }\n",
             &e);
    assert_non_null(c);
    assert_true(c->egress[EGRESS_REQUESTS] == 1000 && c->egress[EGRESS_BYTES] == 100 * 1048576);
    assert_string_equal(c->egress_tenants, "acme 0 1073741824 86400000\nb 5 0 60000\n");
    config_free(&c);
    c = load("version: 1\n", &e);
    assert_true(c != NULL && c->egress[EGRESS_REQUESTS] == 0 && c->egress[EGRESS_BYTES] == 0 &&
                c->egress_tenants[0] == '\0');
    config_free(&c);
    static const char *const bad[] = {
        "{ bytes: 1 }",
        "{ requests: 0 }",
        "{ tenants: [{ tenant: a, per: 1h }] }",
        "{ tenants: [{ tenant: a, bytes: 1MiB }] }",
        "{ tenants: [{ tenant: \"a b\", bytes: 1MiB, per: 1h }] }",
        "{ tenants: [{ tenant: a, bytes: 1MiB, per: 1h }, { tenant: a, requests: 1, per: 1h }] }"};
    char text[300];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (void)snprintf(text, sizeof(text), "version: 1\negress: %s\n", bad[i]);
        assert_null(load(text, &e));
        assert_non_null(strstr(e.text, "c.yaml:2:"));
    }
}

static void kinds_of_tasks_are_read_with_their_schemas(void **state)
{
    static const struct {
        const char *task, *schema, *said;
    } bad[] = {
        {TASK, "{\"type\":\"objekt\"}", "t.yaml:5:8"},
        {TASK, "{\"a\":{}}", "at /a: is not known here"},
        {TASK, "{", "this schema cannot be used, at its top"},
        {"version: 1\nkind: A\ncommand: [wc]\ntimeout: 30s\ninput: any.json\noutput: any.json\n", "{}",
         "a name here"},
        {"version: 1\nkind: a\ncommand: []\ntimeout: 30s\ninput: any.json\noutput: any.json\n", "{}", "t.yaml:3"},
        {"version: 1\nkind: a\ncommand: [wc]\ntimeout: 2d\ninput: any.json\noutput: any.json\n", "{}", "t.yaml:4"},
        {"version: 1\nkind: a\ncommand: [wc]\ninput: any.json\noutput: any.json\n", "{}", "timeout"},
        {"version: 1\nkind: a\ncommand: [wc]\ntimeout: 30s\noutput: any.json\n", "{}", "input"},
        {"version: 1\nkind: a\ncommand: [wc]\ntimeout: 30s\ninput: none.json\noutput: any.json\n", "{}", "none.json"},
        {TASK "lanes: [x]\n", "{}", "lanes"},
        {TASK "limits: { memory: 1MiB }\n", "{}", "memory"},
        {TASK "retries: 6\n", "{}", "retries"},
        {TASK "lane: A\n", "{}", "a name here"},
        {TASK "residency: ../eu\n", "{}", "a name here"},
        {TASK "tenants: [acme, acme]\n", "{}", "there once"},
        {TASK "tenants: ['a b']\n", "{}", "a tenant's name"},
    };
    struct wire_task t;
    struct err e;
    put("t.yaml", TASK "limits: { memory: 64MiB, hold: strict, egress: { requests: 9 } }\nimage: debian\n");
    put("any.json", "{\"type\":\"integer\"}");
    struct config *c = load("version: 1\ntasks: t.yaml\n", &e);
    if (c == NULL)
        fail_msg("%s", e.text);
    assert_int_equal(c->ntasks, 1);
    struct msg_in m = msg_in(dynbuf_span(&c->task[0]));
    assert_int_equal(wire_get_task(&m, &t), 0);
    assert_true(span_eq(t.kind, SPAN("count")) && span_eq(t.image, SPAN("debian")) && t.limits == TASK_STRICT &&
                t.egress_requests == 9 && t.egress_bytes == 0);
    assert_true(t.nwords == 2 && span_eq(t.word[1], SPAN("-w")) && t.timeout_ms == 30000 && t.memory == 64 << 20);
    assert_true(span_eq(t.input, SPAN("{\"type\":\"integer\"}")) && span_eq(t.output, t.input));
    config_free(&c);
    assert_null(load("version: 1\ntasks: [t.yaml, t.yaml]\n", &e));
    assert_non_null(strstr(e.text, "another file has this kind"));
    c = load("version: 1\ntasks: []\n", &e);
    assert_true(c != NULL && c->ntasks == 0);
    config_free(&c);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        put("t.yaml", bad[i].task);
        put("any.json", bad[i].schema);
        if (load("version: 1\ntasks: [t.yaml]\n", &e) != NULL || strstr(e.text, bad[i].said) == NULL)
            fail_msg("%zu: %s", i, e.text);
    }
    take_away("t.yaml");
    assert_null(load("version: 1\ntasks: [t.yaml]\n", &e));
    take_away("any.json");
}

static void a_kind_of_task_is_everybodys_or_some_tenants_own(void **state)
{
    struct wire_task t;
    struct err e;
    put("t.yaml", TASK);
    put("any.json", "{}");
    put("a.yaml", TASK "tenants: [acme, beta]\nlane: build\nresidency: eu\nretries: 5\n");
    put("b.yaml", TASK "tenants: beta\n");
    assert_null(load("version: 1\ntasks: [a.yaml, b.yaml]\n", &e));
    assert_non_null(strstr(e.text, "for the same tenants"));
    struct config *c = load("version: 1\ntasks: [t.yaml, a.yaml]\n", &e); /* everybody's, and some tenants' own */
    assert_true(c != NULL && c->ntasks == 2);
    struct msg_in m = msg_in(dynbuf_span(&c->task[1]));
    assert_int_equal(wire_get_task(&m, &t), 0);
    assert_true(t.ntenants == 2 && task_is_of(&t, SPAN("beta")) && !task_is_of(&t, SPAN("bet")) && t.retries == 5);
    assert_true(span_eq(t.lane, SPAN("build")) && span_eq(t.residency, SPAN("eu")));
    config_free(&c);
    take_away("a.yaml");
    take_away("b.yaml");
    take_away("t.yaml");
    take_away("any.json");
}

/* Who has conversations has a way to its models, and nobody else reaches them without a key. */
static void conversations_have_a_way_to_their_models(void **state)
{
#define WAY    "version: 1\nlisteners: [{ name: x, http: 127.0.0.1:3128, identity: token }]\n"
#define BROKER "broker: { http: \"127.0.0.1:0\", models: m.yaml"
    static const struct {
        const char *text, *said;
    } bad[] = {
        {WAY "broker: { models: m.yaml }\n", "http"},
        {WAY "broker: { http: \"127.0.0.1:0\" }\n", "models"},
        {WAY "broker: { http: \"127.0.0.1:0\", models: none.yaml }\n", "cannot be read"},
        {WAY "broker: { http: \"0.0.0.0:80\", models: m.yaml }\n", "loopback"},
        {WAY BROKER ", store: \"mysql://x\" }\n", "sqlite:broker.db"},
        {WAY BROKER ", image: ../x }\n", "an image's name"},
        {WAY BROKER ", workers: 0 }\n", "workers"},
        {WAY BROKER ", lanes: { acme: [a, b] } }\n", "lane"},
        {WAY BROKER ", people: [alice, \"a b\"] }\n", "each is the name"},
        {"version: 1\nlisteners: [{ name: x, http: 127.0.0.1:3128, identity: { sandbox: box } }]\n" BROKER " }\n",
         "identity: token"},
    };
    struct err e;
    put("m.yaml", "");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct config *c = load(bad[i].text, &e);
        if (c != NULL || strstr(e.text, bad[i].said) == NULL)
            fail_msg("%s: %s", bad[i].text, c != NULL ? "taken" : e.text);
    }
    struct config *c = load(WAY BROKER ", workers: 2, lanes: { acme: web }, people: [alice, a:b/c] }\n", &e);
    assert_true(c != NULL && c->broker.workers == 2 && strcmp(c->broker.lanes, "acme web\n") == 0);
    assert_string_equal(c->broker.people, "alice\na:b/c\n");
    config_free(&c);
    c = load(WAY, &e); /* off, unless it is there */
    assert_true(c != NULL && c->broker.models[0] == '\0' && c->broker.address[0] == '\0');
    config_free(&c);
    take_away("m.yaml");
#undef WAY
#undef BROKER
}

static void mounts_and_devices_are_somebodys(void **state)
{
    static const struct {
        const char *text, *said;
    } bad[] = {
        {"mounts: [{ name: r, path: /usr }]\n", "tenants"},
        {"mounts: [{ name: r, path: /usr, size: 16MiB, tenants: [a] }]\n", "either path:"},
        {"mounts: [{ name: r, tenants: [a] }]\n", "either path:"},
        {"mounts: [{ name: r, size: 1MiB, tenants: [a] }]\n", "size"},
        {"mounts: [{ name: r, path: /usr, share: tenant, tenants: [a] }]\n", "either path:"},
        {"mounts: [{ name: R, path: /usr, tenants: [a] }]\n", "a name here"},
        {"mounts: [{ name: r, path: /usr/../etc, tenants: [a] }]\n", "without . and .."},
        {"mounts: [{ name: r, path: /no/where, tenants: [a] }]\n", "cannot be found"},
        {"mounts: [{ name: r, path: /bin, tenants: [a] }]\n", "leads elsewhere"},
        {"mounts: [{ name: r, path: /usr, tenants: [a], dock: /etc/r }]\n", "below /mnt"},
        {"mounts: [{ name: r, path: /usr, tenants: [a] }, { name: r, path: /var, tenants: [a] }]\n", "another mount"},
        {"mounts: [{ name: r, path: /tmp, tenants: [a] }]\n", "overlaps the state directory"},
        {"devices: [{ name: g, nodes: [/dev/null] }]\n", "tenants"},
        {"devices: [{ name: g, nodes: [/etc/passwd], tenants: [a] }]\n", "below /dev"},
        {"devices: [{ name: g, nodes: [/dev/../etc/x], tenants: [a] }]\n", "below /dev"},
        {"devices: [{ name: g, nodes: [/dev/null], tenants: [a] }, { name: g, nodes: [/dev/null], tenants: [a] }]\n",
         "another pool"},
        {"tasks: [t.yaml]\n", "has none of this name"},
    };
    struct wire_task t;
    struct err e;
    char text[1024];
    put("any.json", "{}");
    put("t.yaml", TASK "mounts: { r: /mnt/r }\ndevices: [g, g]\n");
    struct config *c =
        load("version: 1\nmounts: [{ name: r, path: /usr, tenants: [a, b], dock: /mnt/r }, { name: k, size: 1GiB, "
             "tenants: [a] }]\ndevices: [{ name: g, nodes: [/dev/null], tenants: [a], most: 1 }]\ntasks: "
             "[t.yaml]\n",
             &e);
    if (c == NULL)
        fail_msg("%s", e.text);
    assert_string_equal(c->dock_mounts, "a r /mnt/r\nb r /mnt/r\n");
    assert_true(c->mount[1].of_session && c->mount[1].size == UINT64_C(1) << 30 && c->mount[1].path[0] == '\0');
    struct msg_in m = msg_in(dynbuf_span(&c->task[0]));
    assert_int_equal(wire_get_task(&m, &t), 0);
    assert_true(t.nmounts == 1 && t.ndevices == 1 && t.device[0].count == 2);
    config_free(&c);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (void)snprintf(text, sizeof(text), "version: 1\n%s", bad[i].text);
        if (load(text, &e) != NULL || strstr(e.text, bad[i].said) == NULL)
            fail_msg("%s: %s", bad[i].text, e.text);
    }
    take_away("t.yaml");
    take_away("any.json");
}

static void the_master_key_is_in_one_of_three_places(void **state)
{
    struct err e;
    char want[128];
    struct config *c = load("version: 1\nmaster_key: { file: keys/m.key }\n", &e);
    assert_non_null(c);
    assert_int_equal(c->master.from, SOURCE_FILE);
    snprintf(want, sizeof(want), "%s/keys/m.key", dir);
    assert_string_equal(c->master.where, want);
    config_free(&c);
    c = load("version: 1\nmaster_key: { systemd: m.key }\n", &e);
    assert_non_null(c);
    assert_int_equal(c->master.from, SOURCE_SYSTEMD);
    assert_string_equal(c->master.where, "m.key");
    config_free(&c);
    c = load("version: 1\nmaster_key: { exec: [/bin/op, read, 'a b'] }\n", &e);
    assert_non_null(c);
    assert_int_equal(c->master.from, SOURCE_EXEC);
    assert_string_equal(c->master.argv[0], "/bin/op");
    assert_string_equal(c->master.argv[2], "a b");
    assert_string_equal(c->master.argv[3], "");
    config_free(&c);
    char text[1024] = "version: 1\nmaster_key: { exec: [/bin/op";
    for (int i = 1; i < CONFIG_ARGS; i++)
        strcat(text, ", x");
    size_t n = strlen(text);
    strcat(text, "] }\n");
    c = load(text, &e);
    assert_non_null(c);
    config_free(&c);
    strcpy(text + n, ", x] }\n");
    assert_null(load(text, &e));
    assert_non_null(strstr(e.text, "at most 31 arguments"));
}

#define TLS_CLIENTS "tls: { certificate: c.pem, key: k.pem, clients: ca.pem }"
#define L(one)      "version: 1\nlisteners:\n  - { " one " }\n"
#define TWO(second) L("name: a, http: \"127.0.0.1:1\", identity: token") "  - { " second " }\n"

static void every_way_in_is_taken(void **state)
{
    struct err e;
    char want[128];
    struct config *c = load(
        L("name: web, http: \"0.0.0.0:3128\", identity: token, tls: { certificate: c.pem, key: /k.pem }, advertise: "
          "\"gw.internal:3128\", proxy_protocol: [10.0.0.1, \"fd00::/8\"]") "  - { name: e2b, socks5: "
                                                                            "\"127.0.0.1:1080\", identity: token }\n"
                                                                            "  - { name: own, http: \"127.0.0.1:0\", "
                                                                            "identity: { sandbox: own1 } }\n"
                                                                            "  - { name: vm, transparent: "
                                                                            "\"[::1]:15001\", identity: { sandbox: "
                                                                            "vm1 }, dns: \"[::1]:15053\" }\n"
                                                                            "  - { name: vms, transparent: "
                                                                            "\"127.0.0.1:0\", identity: { source: { "
                                                                            "10.0.0.5/32: vm1, 10.0.0.0/24: rest } } "
                                                                            "}\n"
                                                                            "  - { name: mtls, http: "
                                                                            "\"127.0.0.1:0\", identity: { "
                                                                            "certificate: { vm2.example: vm2 } "
                                                                            "}, " TLS_CLIENTS " }\n",
        &e);
    if (c == NULL)
        fail_msg("%s", e.text);
    assert_int_equal(c->nlisteners, 6);
    const struct config_listener *l = c->listener;
    snprintf(want, sizeof(want), "%s/c.pem", dir);
    assert_string_equal(l[0].certificate, want);
    assert_string_equal(l[0].key, "/k.pem");
    assert_int_equal(l[0].npeers, 2);
    assert_string_equal(l[0].peer[1], "fd00::/8");
    assert_string_equal(l[0].advertise, "gw.internal:3128");
    assert_true(config_unspecified(l[0].address) && !config_unspecified(l[1].address));
    assert_int_equal(l[1].kind, CONFIG_SOCKS5);
    assert_false(config_of_front(&l[0]) || config_of_front(&l[1]) || config_of_front(&l[4]) ||
                 config_of_front(&l[5]));
    assert_true(config_of_front(&l[2]) && config_of_front(&l[3]));
    assert_string_equal(l[3].dns, "[::1]:15053");
    assert_int_equal(l[4].identity, IDENTITY_SOURCE);
    assert_int_equal(l[4].nsources, 2);
    assert_string_equal(l[4].source[0].key, "10.0.0.5/32");
    assert_string_equal(l[4].source[1].sandbox, "rest");
    assert_int_equal(l[5].identity, IDENTITY_CERTIFICATE);
    assert_string_equal(l[5].source[0].key, "vm2.example");
    config_free(&c);
}

static void as_many_as_there_may_be(void **state)
{
    static char text[64 * 1024];
    struct err e;
    for (int past = 0; past < 2; past++) {
        size_t n = (size_t)snprintf(text, sizeof(text), "version: 1\nlisteners:\n");
        for (int i = 0; i < CONFIG_LISTENERS + past; i++)
            n += (size_t)snprintf(text + n, sizeof(text) - n,
                                  "  - { name: l%d, http: \"127.0.0.1:0\", identity: token }\n", i);
        struct config *c = load(text, &e);
        assert_true((c != NULL) == !past);
        config_free(&c);
        n = (size_t)snprintf(text, sizeof(text),
                             "version: 1\nlisteners: [{ name: a, http: \"127.0.0.1:0\", identity: { source: {");
        for (int i = 0; i < LISTENER_SOURCES_MAX + past; i++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s10.0.%d.%d: s%d", i ? ", " : " ", i / 200, i % 200,
                                  i);
        snprintf(text + n, sizeof(text) - n, " } } }]\n");
        c = load(text, &e);
        if ((c != NULL) == past)
            fail_msg("%d: %s", past, e.text);
        config_free(&c);
    }
}

static const struct {
    const char *text, *where; /* what the words must hold */
} refused[] = {
    {"version: 1\ncrl: gone.pem\n", "c.yaml:2:6: crl: "},
    {"version: 1\nfloors: gone.yaml\n", "gone.yaml cannot be read: No such file"},
    {"", "c.yaml"},
    {"version: 2\n", "c.yaml:1:"},
    {"state_dir: /x\n", "version"},
    {"version: 1\nlisterners: []\n", "c.yaml:2:1"},
    {"version: 1\nversion: 1\n", "c.yaml:2:"},
    {"version: 1\nmode: enfroce\n", "c.yaml:2:"},
    {"version: 1\nlog: { level: loud }\n", "c.yaml:2:"},
    {"version: 1\nlog: { trace: A/b }\n", "c.yaml:2:15: a sandbox's name"},
    {"version: 1\nstore_lost: yes\n", "c.yaml:2:"},
    {"version: 1\nhold: { inline_wait: 10 }\n", "c.yaml:2:"},
    {"version: 1\nhold: { inline_wait: -1s }\n", "c.yaml:2:"},
    {"version: 1\nhold: { inline_wait: 100h }\n", "c.yaml:2:"},
    {"version: 1\nhold: { pending: 0 }\n", "c.yaml:2:"},
    {"version: 1\nhold: { pending: 99999999999999999999 }\n", "c.yaml:2:"},
    {"version: 1\nbody: { max: 0 }\n", "c.yaml:2:"},
    {"version: 1\nlimits: { sandboxes: 0 }\n", "c.yaml:2:"},
    {"version: 1\nlimits: { connections: 4001 }\n", "c.yaml:2:"},
    {"version: 1\nuid_base: 999\n", "c.yaml:2:11: uid_base must be from 1000"},
    {"version: 1\nuid_base: 0\n", "c.yaml:2:11: uid_base must be from 1000"},
    {"version: 1\nuid_base: 64795\n", "c.yaml:2:11: uid_base: of the 740 user ids"},
    {"version: 1\nuid_base: 65535\n", "nobody's"},
    {"version: 1\nuid_base: 4294967295\n", "c.yaml:2:11: uid_base must be"},
    {"version: 1\nmaster_key: {}\n", "c.yaml:2:"},
    {"version: 1\nmaster_key: /etc/key\n", "c.yaml:2:"},
    {"version: 1\nmaster_key: { env: KEY }\n", "c.yaml:2:"},
    {"version: 1\nmaster_key: { file: a, systemd: b }\n", "exactly one of"},
    {"version: 1\nmaster_key: { systemd: ../b }\n", "c.yaml:2:24: a credential's name"},
    {"version: 1\nmaster_key: { exec: [op, read] }\n", "c.yaml:2:22: a program is named by its full path"},
    {"version: 1\nmaster_key: { exec: [] }\n", "c.yaml:2:"},
    {"version: 1\ndns: { servers: [] }\n", "c.yaml:2:"},
    {"version: 1\ndns: { servers: ns.example }\n", "c.yaml:2:17"},
    {"version: 1\ndns: { servers: [10.0.0.2, 10.0.0.2:0] }\n", "c.yaml:2:28"},
    {"version: 1\ndns: { servers: [10.0.0.2:99999] }\n", "c.yaml:2:18"},
    {"version: 1\ndns: { servers: [127.1] }\n", "c.yaml:2:18"},
    {"version: 1\ndns: { servers: [[10.0.0.2]] }\n", "c.yaml:2:18"},
    {"version: 1\ndns: { search: [x] }\n", "c.yaml:2:8"},
    {"version: 1\ndesk: { http: \"0.0.0.0:8088\", name: a.example }\n", "loopback"},
    {"version: 1\ndesk: { http: \"0.0.0.0:8088\" }\n", "loopback"},
    {"version: 1\ndesk: { http: \"192.168.1.5:8088\" }\n", "loopback"},
    {"version: 1\nstore: postgresql://x\n", "sqlite:ledger.db"},
    {"version: 1\nmetrics: { http: x }\n", "not available yet"},
    {"version: 1\nlisteners: [{ name: a, unix: a.sock, identity: token }]\n", "identity"},
    {"version: 1\nlisteners: [{ name: a, identity: token }]\n", "exactly one of"},
    {"version: 1\nlisteners: [{ name: a, http: \"127.0.0.1:1\" }]\n", "identity"},
    {L("name: a, http: \"127.0.0.1:1\", socks5: \"127.0.0.1:2\", identity: token"), "exactly one of"},
    {L("name: a, http: \"127.0.0.1\", identity: token"), "c.yaml:3:22: an address with its port"},
    {L("name: a, http: \"gateway:3128\", identity: token"), "an address with its port"},
    {L("name: a, http: \"127.0.0.1:65536\", identity: token"), "an address with its port"},
    {L("name: a, http: \"127.0.0.1:1\", identity: nobody"), "an identity is"},
    {L("name: a, http: \"127.0.0.1:1\", identity: {}"), "one of sandbox"},
    {L("name: a, http: \"127.0.0.1:1\", identity: { sandbox: b, source: { \"10.0.0.1\": c } }"), "one of sandbox"},
    {L("name: a, http: \"127.0.0.1:1\", identity: { sandbox: ../b }"), "a sandbox's name"},
    {L("name: a, http: \"127.0.0.1:1\", identity: { source: { \"10.0.0.1/8\": b } }"), "no bits set past"},
    {L("name: a, http: \"127.0.0.1:1\", identity: { source: { \"10.0.0.1\": B } }"), "a sandbox's name"},
    {L("name: a, http: \"127.0.0.1:1\", identity: { source: { \"10.0.0.1\": [b, c] } }"), "name of one sandbox"},
    {L("name: a, http: \"127.0.0.1:1\", identity: { source: { 10.0.0.1: b, 10.0.0.1/32: c } }"), "stands here twice"},
    {L("name: a, http: \"127.0.0.1:1\", identity: { source: {} }"), "empty"},
    {L("name: a, http: \"127.0.0.1:1\", identity: { certificate: { a.example: b } }"), "needs tls:"},
    {L("name: a, http: \"127.0.0.1:1\", identity: { certificate: { \"*.example\": b } }, " TLS_CLIENTS), "exactly"},
    {L("name: a, http: \"127.0.0.1:1\", identity: token, " TLS_CLIENTS), "clients: goes with"},
    {L("name: a, http: \"127.0.0.1:1\", identity: token, tls: { certificate: c.pem }"), "key"},
    {L("name: a, transparent: \"127.0.0.1:1\", identity: token"), "captured says nothing"},
    {L("name: a, transparent: \"127.0.0.1:1\", identity: { sandbox: b }, tls: { certificate: c, key: k }"),
     "remove tls"},
    {L("name: a, unix: a.sock, identity: { sandbox: b }, proxy_protocol: 10.0.0.1"), "remove proxy_protocol"},
    {L("name: a, http: \"127.0.0.1:1\", identity: token, proxy_protocol: somebody"), "an address or range"},
    {L("name: a, http: \"127.0.0.1:1\", identity: token, advertise: gw"), "host name or address with its port"},
    {L("name: a, http: \"127.0.0.1:1\", identity: token, advertise: \"gw:0\""), "host name or address with its port"},
    {L("name: a, http: \"127.0.0.1:1\", identity: token, dns: \"127.0.0.1:53\""), "dns: goes with"},
    {L("name: \"a b\", http: \"127.0.0.1:1\", identity: token"), "a listener's name"},
    {TWO("name: a, http: \"127.0.0.1:2\", identity: token"), "c.yaml:4:13: two listeners are called a"},
    {TWO("name: b, socks5: \"127.0.0.1:1\", identity: token"), "at this address already"},
    {TWO("name: b, transparent: \"127.0.0.1:2\", identity: { sandbox: b }, dns: \"127.0.0.1:1\""), "at this address"},
    {TWO("name: b, http: \"127.0.0.1:2\", identity: { sandbox: s }") "  - { name: c, unix: s, identity: { sandbox: s "
                                                                     "} }\n",
     "c.yaml:5:35: sandbox s has the listener b already"},
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
        if (strstr(e.text, refused[i].where) == NULL)
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
        cmocka_unit_test(sandboxes_that_wait_are_read),
        cmocka_unit_test(egress_is_of_each_and_of_tenants),
        cmocka_unit_test(kinds_of_tasks_are_read_with_their_schemas),
        cmocka_unit_test(a_kind_of_task_is_everybodys_or_some_tenants_own),
        cmocka_unit_test(conversations_have_a_way_to_their_models),
        cmocka_unit_test(mounts_and_devices_are_somebodys),
        cmocka_unit_test(the_master_key_is_in_one_of_three_places),
        cmocka_unit_test(every_way_in_is_taken),
        cmocka_unit_test(as_many_as_there_may_be),
        cmocka_unit_test(what_is_not_understood_is_refused_with_its_place),
        cmocka_unit_test(the_state_directory_is_absolute),
    };
    return cmocka_run_group_tests_name("config", tests, set_up, tear_down);
}
