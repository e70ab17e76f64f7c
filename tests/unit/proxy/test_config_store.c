/* store: and only: of the broker: a database is said without its password, which is in a file that nobody else reads;
 * otlp: a collector, without a key; budgets: how much, of whom, for how long. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/duty/duty.h"
#include "proxy/parent/config/config.h"
#include "tests/kit.h"

static char dir[] = "/tmp/cs-config-XXXXXX";

static void put(const char *name, const char *text, mode_t mode)
{
    char to[128];
    snprintf(to, sizeof(to), "%s/%s", dir, name);
    FILE *f = fopen(to, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(to, mode), 0);
}

#define LONG "a-label-of-thirty-two-letters-xx."

/* listens: with a listener for tokens, through which models are asked. */
static struct config *load_as(bool listens, const char *broker, struct err *e)
{
    char text[1024], path[128];
    struct config_args a = {.config = path, .state_dir = "/tmp/state", .data_dir = "/tmp/data"};
    snprintf(
        text, sizeof(text),
        "version: 1\nlisteners: [{ name: x, http: 127.0.0.1:3128, identity: %s }]\nbroker: { models: m.yaml, %s }\n",
        listens ? "token" : "{ sandbox: box }", broker);
    snprintf(path, sizeof(path), "%s/countersign.yaml", dir);
    put("countersign.yaml", text, 0600);
    return config_load(&a, e);
}

/* What a test has put there; of the folder its name may be made anew. */
static void clean(void)
{
    static const char *const files[] = {"m.yaml", "word", "open", "link", "countersign.yaml"};
    char path[128];
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
    memset(dir + strlen(dir) - 6, 'X', 6);
}

static struct config *load(const char *store, struct err *e)
{
    char broker[768];
    snprintf(broker, sizeof(broker), "http: \"127.0.0.1:0\", %s", store);
    return load_as(true, broker, e);
}

static void a_database_and_its_password(void **state)
{
    static const struct {
        const char *store, *said;
    } bad[] = {
        {"store: \"postgresql://me:word@127.0.0.1/b\"", "store_password:"},
        {"store: \"postgresql://me@192.0.2.7/b\"", "TLS"},
        {"store_password: word", "goes with"},
        {"otlp: collector.example/v1/traces", "otlp: is"},
        {"otlp: \"https://collector.example\"", "otlp: is"},
        {"otlp: \"https://me:key@collector.example/v1/traces\"", "otlp: is"},
        {"otlp: \"https://collector.example/v1/traces?key=1\"", "otlp: is"},
        {"otlp: \"https://collector.example/v1/tra ces\"", "otlp: is"},
        {"otlp: \"https://[::1]:4318/v1/traces\"", "otlp: is"}, /* the broker asks nobody like this */
        {"otlp: \"https:///v1/traces\"", "otlp: is"},
        {"otlp: \"https://collector.example:0/v1/traces\"", "otlp: is"},
        {"otlp: \"https://collector.example:99999/v1/traces\"", "otlp: is"},
        {"otlp: \"https://collector.example:/v1/traces\"", "otlp: is"},
        {"otlp: \"https://collector.example:4318:1/v1/traces\"", "otlp: is"},
        {"otlp: \"https://" LONG LONG LONG LONG LONG LONG LONG LONG "/v1/traces\"", "otlp: is"},
        {"otlp_metrics: \"https://collector.example\"", "otlp_metrics: is"},
        {"store: \"postgresql://me@127.0.0.1/b\", store_password: none", "cannot be read"},
        {"store: \"postgresql://me@127.0.0.1/b\", store_password: open", "its owner alone"},
        {"store: \"postgresql://me@127.0.0.1/b\", store_password: link", "its owner alone"},
    };
    char link[128];
    struct err e;
    assert_non_null(mkdtemp(dir));
    put("m.yaml", "", 0600);
    put("word", "secret\n", 0600);
    put("open", "secret\n", 0640);
    snprintf(link, sizeof(link), "%s/link", dir);
    assert_int_equal(symlink("word", link), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct config *c = load(bad[i].store, &e);
        if (c != NULL || strstr(e.text, bad[i].said) == NULL)
            fail_msg("%s: %s", bad[i].store, c != NULL ? "taken" : e.text);
    }
    struct config *c = load("store: \"postgresql://me@127.0.0.1/b\", store_password: word", &e);
    if (c == NULL)
        fail_msg("%s", e.text);
    assert_string_equal(c->broker.store, "postgresql://me@127.0.0.1/b");
    assert_non_null(strstr(c->broker.password, "/word"));
    config_free(&c);
    c = load("otlp_metrics: \"https://collector.example/v1/metrics\"", &e);
    assert_true(c != NULL && c->broker.otlp[0] == '\0');
    assert_string_equal(c->broker.otlp_metrics, "https://collector.example/v1/metrics");
    config_free(&c);
    c = load("store: \"sqlite:broker.db\"", &e);
    assert_true(c != NULL && c->broker.store[0] == '\0');
    config_free(&c);
    clean();
}

static void budgets_of_tenants(void **state)
{
    static const struct {
        const char *text, *said;
    } bad[] = {
        {"budgets: [{ tenant: acme, per: day }]", "one of tokens: and cost:"},
        {"budgets: [{ tenant: acme, tokens: 1 }]", "per"},
        {"budgets: [{ tokens: 1, per: day }]", "tenant"},
        {"budgets: [{ tenant: acme, tokens: 1, per: week }]", "per"},
        {"budgets: [{ tenant: \"a b\", tokens: 1, per: day }]", "a tenant's name"},
        {"budgets: [{ tenant: " LONG LONG ", tokens: 1, per: day }]", "a tenant's name"},
        {"budgets: [{ tenant: acme, tokens: 8796093022209, per: day }]", "tokens"},
        {"budgets: [{ tenant: acme, tokens: -1, per: day }]", "tokens"},
        {"budgets: [{ tenant: acme, cost: 8796093.022209, per: day }]", "at most six decimals"},
        {"budgets: [{ tenant: acme, cost: 1.0000001, per: day }]", "at most six decimals"},
        {"budgets: [{ tenant: acme, cost: 1., per: day }]", "at most six decimals"},
        {"budgets: [{ tenant: acme, cost: 1e3, per: day }]", "at most six decimals"},
        {"budgets: [{ tenant: a, cost: 1, per: day }, { tenant: a, tokens: 1, per: day }]", "for a day already"},
    };
    struct err e;
    assert_non_null(mkdtemp(dir));
    put("m.yaml", "", 0600);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct config *c = load(bad[i].text, &e);
        if (c != NULL || strstr(e.text, bad[i].said) == NULL)
            fail_msg("%s: %s", bad[i].text, c != NULL ? "taken" : e.text);
    }
    struct config *c = load("workers: 1", &e);
    if (c == NULL)
        fail_msg("%s", e.text);
    assert_string_equal(c->broker.budgets, "");
    config_free(&c);
    c = load(
        "budgets: [{ tenant: a.b, tokens: 2000000, cost: 12.50, per: day }, { tenant: a.b, cost: 0, per: month },"
        " { tenant: \"*\", tokens: 0, per: day }]",
        &e);
    if (c == NULL)
        fail_msg("%s", e.text);
    assert_string_equal(c->broker.budgets, "a.b day 2000000 12500000\na.b month - 0\n* day 0 -\n");
    config_free(&c);
    clean();
}

/* What runs here, and what of the rest would be said in vain. */
static void one_part_of_the_broker_alone(void **state)
{
#define STORE  "store: \"postgresql://me@127.0.0.1/b\""
#define SERVES STORE ", only: [stream], http: \"127.0.0.1:0\""
    static const struct {
        const char *broker, *said;
    } bad[] = {
        {STORE ", only: [turn], http: \"127.0.0.1:0\"", "http: with only: [turn]"},
        {STORE ", only: [turn], people: [bob]", "people: with only: [turn]"},
        {SERVES ", workers: 3", "workers: with only: [stream]"},
        {SERVES ", image: debian", "image: with only: [stream]"},
        {SERVES ", lanes: { default: web }", "lanes: with only: [stream]"},
        {SERVES ", otlp: \"https://collector.example/v1/traces\"", "otlp: with only: [stream]"},
        {SERVES ", otlp_metrics: \"https://collector.example/v1/metrics\"", "otlp_metrics: with only: [stream]"},
        {STORE ", only: [stream]", "needs the key \"http\""},
        {STORE ", only: [stream], http: \"0.0.0.0:80\"", "loopback"},
        {STORE ", only: [stream, turn]", "needs the key \"http\""},
        {STORE ", only: [], http: \"127.0.0.1:0\"", "an empty list"},
        {STORE ", only: [turn, turn]", "twice"},
        {STORE ", only: [model]", "model is no process of its own"},
        {STORE ", only: [\"tool:command\"]", "tool:command is no process of its own"},
        {STORE ", only: [planner]", "neither stream nor turn"},
        {"only: [turn]", "only: goes with store: postgresql"},
        {"store: \"sqlite:broker.db\", only: [stream], http: \"127.0.0.1:0\"", "only: goes with store: postgresql"},
    };
    struct err e;
    struct config *c;
    memcpy(dir, "/tmp/cs-config-XXXXXX", sizeof(dir));
    assert_non_null(mkdtemp(dir));
    put("m.yaml", "", 0644);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if ((c = load_as(true, bad[i].broker, &e)) != NULL || strstr(e.text, bad[i].said) == NULL)
            fail_msg("%s: %s", bad[i].broker, c != NULL ? "taken" : e.text);
    if ((c = load_as(true, STORE ", only: turn", &e)) == NULL)
        fail_msg("%s", e.text);
    assert_true(c->broker.duties == DUTY_TURN && c->broker.workers == 4 && c->broker.address[0] == '\0');
    config_free(&c);
    assert_null(load_as(false, STORE ", only: turn", &e)); /* its models are asked through the gateway */
    if ((c = load_as(false, SERVES, &e)) == NULL)
        fail_msg("%s", e.text);
    assert_true(c->broker.duties == DUTY_STREAM && c->broker.workers == 0 && c->broker.address[0] != '\0');
    config_free(&c);
    if ((c = load_as(true, "only: [stream, turn], http: \"127.0.0.1:0\"", &e)) == NULL)
        fail_msg("%s", e.text);
    assert_true(c->broker.duties == DUTY_ALL && c->broker.workers == 4);
    config_free(&c);
    char path[128];
    static const char *const files[] = {"m.yaml", "countersign.yaml"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_database_and_its_password),
                                       cmocka_unit_test(budgets_of_tenants),

                                       cmocka_unit_test(one_part_of_the_broker_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
