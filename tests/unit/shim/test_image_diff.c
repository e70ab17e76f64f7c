/* Diffs of images, inside of their sandbox: what is taken for an address, a manifest and a configuration, whoever
 * wrote them, and that all they say otherwise is said. Attack G14. */
#include "tests/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox-shim/inside/diff/shim_image.h"

#define D64    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST "sha256:" D64
#define OCI    "application/vnd.oci.image."

static void addresses_of_images(void **state)
{
    static const struct {
        const char *url, *name, *reference;
        bool by_digest;
    } rows[] = {
        {"https://r.test/v2/app/manifests/1.0", "app", "1.0", false},
        {"https://r.test:5000/v2/acme/a_b.c-d/manifests/latest", "acme/a_b.c-d", "latest", false},
        {"https://r.test/v2/app/manifests/" DIGEST, "app", DIGEST, true},
        {"https://r.test/v2/app/manifests/manifests/1", "app/manifests", "1", false},
        {"https://r.test/v2/app/manifests/", NULL, NULL, false},
        {"https://r.test/v2/manifests/1", NULL, NULL, false},
        {"https://r.test/v2//manifests/1", NULL, NULL, false},
        {"https://r.test/v2/App/manifests/1", NULL, NULL, false},
        {"https://r.test/v2/a//b/manifests/1", NULL, NULL, false},
        {"https://r.test/v2/../app/manifests/1", NULL, NULL, false},
        {"https://r.test/v2/a%2fb/manifests/1", NULL, NULL, false},
        {"https://r.test/v2/app/manifests/a%2e", NULL, NULL, false},
        {"https://r.test/v2/app/manifests/a/b", NULL, NULL, false},
        {"https://r.test/v2/app/manifests/sha256:" D64 "0", NULL, NULL, false},
        {"https://r.test/v2/app/manifests/sha512:" D64, NULL, NULL, false},
        {"https://r.test/proxy/v2/app/manifests/1", NULL, NULL, false},
        {"https://r.test/v2/app/blobs/1", NULL, NULL, false},
        {"https://r.test", NULL, NULL, false},
    };
    struct place p;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool good = image_place(rows[i].url, &p);
        if (good != (rows[i].name != NULL))
            fail_msg("row %zu: %s", i, rows[i].url);
        if (!good)
            continue;
        assert_string_equal(p.name, rows[i].name);
        assert_string_equal(p.reference, rows[i].reference);
        assert_int_equal(p.by_digest, rows[i].by_digest);
        assert_int_equal(strlen(p.base), strlen(rows[i].url) - strlen("/manifests/") - strlen(p.reference));
    }
}

#define PART(type)  "{\"mediaType\":\"" type "\",\"digest\":\"" DIGEST "\",\"size\":7}"
#define CONFIG      "\"config\":" PART(OCI "config.v1+json")
#define LAYERS      "\"layers\":[" PART("l") "]"
#define IMAGES      "\"manifests\":[" PART("m") "]"
#define TYPED(kind) "\"mediaType\":\"" OCI kind ".v1+json\""
#define TWO         "\"schemaVersion\":2"
#define OF(kind)    OCI kind ".v1+json"

/* CVE-2021-41190: what is one thing to a registry is another to who pulls. */
static void manifests_that_all_take_for_the_same(void **state)
{
    static const struct {
        const char *text, *type;
        bool good, list;
    } rows[] = {
        {"{" TWO "," CONFIG "," LAYERS "}", OF("manifest"), true, false},
        {"{" TWO "," TYPED("manifest") "," CONFIG "," LAYERS "}", OF("manifest"), true, false},
        {"{" TWO "," TYPED("manifest") "," CONFIG "," LAYERS "}", NULL, true, false},
        {"{" TWO "," CONFIG ",\"layers\":[]}", "application/vnd.docker.distribution.manifest.v2+json", true, false},
        {"{" TWO "," IMAGES "}", OF("index"), true, true},
        {"{" TWO "," TYPED("index") "," IMAGES ",\"annotations\":{}}", OF("index"), true, true},
        {"{" TWO "," CONFIG "," LAYERS "}", OF("index"), false, false},
        {"{" TWO "," IMAGES "}", OF("manifest"), false, false},
        {"{" TWO "," TYPED("index") "," CONFIG "," LAYERS "}", OF("manifest"), false, false},
        {"{" TWO "," TYPED("manifest") "," CONFIG "," LAYERS "}",
         "application/vnd.docker.distribution.manifest.v2+json", false, false},
        {"{" TWO "," CONFIG "," LAYERS "}", "application/json", false, false},
        {"{" TWO "," CONFIG "," LAYERS "}", OF("manifest") "; charset=utf-8", false, false},
        {"{" TWO "," CONFIG "," LAYERS "," IMAGES "}", OF("manifest"), false, false},
        {"{" TWO "," CONFIG "," IMAGES "}", OF("index"), false, false},
        {"{" TWO "," CONFIG "," LAYERS ",\"Layers\":[]}", OF("manifest"), false, false},
        {"{" TWO "," CONFIG "," LAYERS "," LAYERS "}", OF("manifest"), false, false},
        {"{" TWO "," CONFIG "," LAYERS ",\"layer\\u0073\":[]}", OF("manifest"), false, false},
        {"{" TWO "," CONFIG "," LAYERS ",\"fsLayers\":[]}", OF("manifest"), false, false},
        {"{\"schemaVersion\":1," CONFIG "," LAYERS "}", OF("manifest"), false, false},
        {"{\"schemaVersion\":2.0," CONFIG "," LAYERS "}", OF("manifest"), false, false},
        {"{" CONFIG "," LAYERS "}", OF("manifest"), false, false},
        {"{" TWO "," CONFIG "}", OF("manifest"), false, false},
        {"{" TWO "," LAYERS "}", OF("manifest"), false, false},
        {"{" TWO "," CONFIG ",\"layers\":[{}]}", OF("manifest"), false, false},
        {"{" TWO "," CONFIG ",\"layers\":[{\"mediaType\":\"l\",\"digest\":\"sha256:x\",\"size\":7}]}", OF("manifest"),
         false, false},
        {"{" TWO "," CONFIG ",\"layers\":[{\"mediaType\":\"l\",\"digest\":\"" DIGEST "\",\"size\":7e1}]}",
         OF("manifest"), false, false},
        {"{" TWO "," CONFIG ",\"layers\":[{\"mediaType\":\"l\",\"digest\":\"" DIGEST "\",\"Digest\":\"" DIGEST
         "\",\"size\":7}]}",
         OF("manifest"), false, false},
        {"{" TWO "," CONFIG "," LAYERS "} {}", OF("manifest"), false, false},
        {"", OF("manifest"), false, false},
    };
    struct manifest m;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *error = manifest_read(rows[i].text, strlen(rows[i].text), rows[i].type, &m);
        if ((error == NULL) != rows[i].good || (!error && m.list != rows[i].list))
            fail_msg("row %zu: %s", i, error ? error : "taken");
        manifest_drop(&m);
    }
}

static void only_so_many_parts(void **state)
{
    static char text[IMAGE_PARTS_MAX * 160 + 1024];
    struct manifest m;

    (void)state;
    for (size_t most = IMAGE_PARTS_MAX; most <= IMAGE_PARTS_MAX + 1; most++) {
        size_t n = (size_t)snprintf(text, sizeof(text), "{" TWO "," CONFIG ",\"layers\":[");
        for (size_t i = 0; i < most; i++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s" PART("l"), i ? "," : "");
        n += (size_t)snprintf(text + n, sizeof(text) - n, "]}");
        assert_int_equal(manifest_read(text, n, OF("manifest"), &m) == NULL, most == IMAGE_PARTS_MAX);
        manifest_drop(&m);
    }
}

/* --- what they say ------------------------------------------------------------------------ */

static struct value of(const char *text)
{
    return json_whole(text, strlen(text));
}

static bool take(enum side side, const char *manifest, const char *config)
{
    struct manifest m;

    assert_null(manifest_read(manifest, strlen(manifest), NULL, &m));
    bool good = facts_take(side, &m, of(config), (struct value){.n = 0});
    manifest_drop(&m);
    return good;
}

/* As it is written into the answer. */
static const char *put(void)
{
    static char text[2 * IMAGE_SAID_MAX];
    char name[] = "/tmp/facts.XXXXXX";
    int fd = mkstemp(name);

    assert_true(fd >= 0);
    out_begin(name);
    facts_put();
    assert_int_equal(out_end(), 0);
    FILE *f = fopen(name, "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    (void)fclose(f);
    close(fd);
    unlink(name);
    return text;
}

#define IMAGE "{" TWO "," CONFIG "," LAYERS "}"

static void all_that_differs_is_said(void **state)
{
    static const struct {
        const char *old, *new, *says;
    } rows[] = {
        {"{\"config\":{\"User\":\"1\"}}", "{\"config\":{\"User\":\"0\"}}",
         "{\"in\":\"run\",\"name\":\"User\",\"how\":\"M\",\"old\":\"1\",\"new\":\"0\"}"},
        {"{\"config\":{\"Env\":[\"A=1\",\"B=2\"]}}", "{\"config\":{\"Env\":[\"B=2\",\"A=x=y\"]}}",
         "{\"in\":\"environment\",\"name\":\"A\",\"how\":\"M\",\"old\":\"A=1\",\"new\":\"A=x=y\"}"},
        {"{\"config\":null}", "{\"config\":{\"Entrypoint\":[\"/x\"]}}",
         "{\"in\":\"run\",\"name\":\"Entrypoint\",\"how\":\"A\",\"new\":\"[\\\"/x\\\"]\"}"},
        {"{\"config\":{\"Labels\":{\"a\":\"1\"}}}", "{\"config\":{\"Labels\":{\"A\":\"1\",\"a\":\"1\"}}}",
         "{\"in\":\"label\",\"name\":\"A\",\"how\":\"A\",\"new\":\"1\"}"},
        {"{\"config\":{\"ExposedPorts\":{\"1/tcp\":{}}}}", "{\"config\":{}}",
         "{\"in\":\"port\",\"name\":\"1/tcp\",\"how\":\"D\",\"old\":\"{}\"}"},
        {"{}", "{\"config\":{\"Volumes\":{\"/a\":{}}}}",
         "{\"in\":\"volume\",\"name\":\"/a\",\"how\":\"A\",\"new\":\"{}\"}"},
        {"{\"os\":\"linux\"}", "{\"os\":\"windows\"}",
         "{\"in\":\"image\",\"name\":\"os\",\"how\":\"M\",\"old\":\"linux\",\"new\":\"windows\"}"},
        {"{}", "{\"anything\":{\"b\":1}}",
         "{\"in\":\"image\",\"name\":\"anything\",\"how\":\"A\",\"new\":\"{\\\"b\\\":1}\"}"},
        {"{}", "{\"author\":\"null\"}",
         "{\"in\":\"image\",\"name\":\"author\",\"how\":\"A\",\"new\":\"\\\"null\\\"\"}"},
        {"{\"history\":[1]}", "{\"rootfs\":{}}", NULL}, /* by what it was made, and layers by another digest */
    };
    char want[512];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        facts_forget(OLD);
        facts_forget(NEW);
        assert_true(take(OLD, IMAGE, rows[i].old) && take(NEW, IMAGE, rows[i].new));
        (void)snprintf(want, sizeof(want), ",\"facts\":[%s],\"facts_total\":%d", rows[i].says ? rows[i].says : "",
                       rows[i].says != NULL);
        if (strcmp(put(), want) != 0)
            fail_msg("row %zu: %s", i, put());
    }
}

static void what_a_manifest_says_beside_its_parts(void **state)
{
    (void)state;
    facts_forget(OLD);
    facts_forget(NEW);
    assert_true(take(OLD, IMAGE, "{}"));
    assert_true(
        take(NEW, "{" TWO "," CONFIG "," LAYERS ",\"subject\":{\"a\":1},\"annotations\":{\"k\":\"v\"}}", "{}"));
    const char *said = put();
    assert_non_null(
        strstr(said, "{\"in\":\"manifest\",\"name\":\"subject\",\"how\":\"A\",\"new\":\"{\\\"a\\\":1}\"}"));
    assert_non_null(strstr(said, "{\"in\":\"annotation\",\"name\":\"k\",\"how\":\"A\",\"new\":\"v\"}"));
    assert_non_null(strstr(said, "\"facts_total\":2"));
}

static void what_programs_could_read_in_two_ways(void **state)
{
    static const char *const rows[] = {
        "{\"config\":{\"User\":\"1\",\"user\":\"0\"}}",
        "{\"config\":{\"User\":\"1\",\"User\":\"0\"}}",
        "{\"config\":{},\"Config\":{}}",
        "{\"config\":{\"env\":[\"A=1\"],\"Env\":[]}}",
        "{\"config\":{\"Env\":[\"A=1\",\"A=2\"]}}",
        "{\"config\":{\"Env\":[1]}}",
        "{\"config\":{\"Env\":{}}}",
        "{\"config\":{\"Labels\":{\"a\":\"1\",\"a\":\"2\"}}}",
        "{\"config\":{\"Labels\":[]}}",
        "{\"config\":[]}",
        "{\"os\":\"linux\",\"OS\":\"windows\"}",
        "{\"rootfs\":{},\"rootfs\":{}}",
        "{\"config\":{\"Healthcheck\":{\"Test\":[\"NONE\"],\"test\":[\"CMD\"]}}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        facts_forget(OLD);
        facts_forget(NEW);
        if (take(NEW, IMAGE, rows[i]))
            fail_msg("row %zu: %s", i, rows[i]);
    }
}

static void too_long_is_said_to_be_cut(void **state)
{
    static char config[IMAGE_FACT_MAX + 256];
    size_t n = (size_t)snprintf(config, sizeof(config), "{\"config\":{\"User\":\"");

    (void)state;
    facts_forget(OLD);
    facts_forget(NEW);
    assert_true(take(OLD, IMAGE, "{}"));
    memset(config + n, 'x', IMAGE_FACT_MAX + 1);
    (void)snprintf(config + n + IMAGE_FACT_MAX + 1, 8, "\"}}");
    assert_true(take(NEW, IMAGE, config));
    assert_non_null(strstr(put(), ",\"cut\":true}"));
}

/* As long as it is, and not as long as its bytes would be. */
static void bytes_that_are_no_text_hide_nothing(void **state)
{
    static char config[4096];
    struct manifest m;
    size_t n = (size_t)snprintf(config, sizeof(config), "{" TWO "," CONFIG "," LAYERS ",\"a\":\"");

    (void)state;
    memset(config + n, 0xff, 600);
    n += 600 + (size_t)snprintf(config + n + 600, 8, "\"}");
    assert_non_null(manifest_read(config, n, NULL, &m));
    manifest_drop(&m);
    assert_true(text_is_utf8("\xc3\xa9", 2) && text_is_utf8("", 0) && !text_is_utf8("\xff", 1) &&
                !text_is_utf8("\xc3", 1));
}

/* --- layers ------------------------------------------------------------------------------- */

#define L(digit)                                                                                                     \
    "{\"mediaType\":\"l\",\"digest\":\"sha256:" digit                                                                \
    "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"size\":7}"
#define ID(digit) "\"sha256:" digit "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\""
#define OLD_IDS   "[" ID("a") "," ID("b") "," ID("c") "]"

/* slot: of two that are there at once. */
static struct manifest with(size_t slot, const char *layers, const char *ids)
{
    static char text[2][2048], config[2][1024];
    struct manifest m;

    (void)snprintf(text[slot], sizeof(text[0]), "{" TWO "," CONFIG ",\"layers\":[%s]}", layers);
    (void)snprintf(config[slot], sizeof(config[0]), "{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":%s}}", ids);
    assert_null(manifest_read(text[slot], strlen(text[slot]), NULL, &m));
    if (!manifest_layers(&m, of(config[slot])))
        manifest_drop(&m);
    return m;
}

static void layers_as_they_were_and_otherwise(void **state)
{
    static const struct {
        const char *layers, *ids, *was, *is;
    } rows[] = {
        {L("0") "," L("1") "," L("2"), OLD_IDS, "sss", "sss"},
        {L("0") "," L("2") "," L("1"), "[" ID("a") "," ID("c") "," ID("b") "]", "sms", "ssm"},
        {L("0") "," L("1"), "[" ID("a") "," ID("b") "]", "ssD", "ss"},
        {L("3") "," L("0") "," L("1") "," L("2"), "[" ID("d") "," ID("a") "," ID("b") "," ID("c") "]", "sss", "Asss"},
        {L("0") "," L("1") "," L("2") "," L("0"), "[" ID("a") "," ID("b") "," ID("c") "," ID("a") "]", "sss", "sssA"},
        {L("0") "," L("1") "," L("2"), "[" ID("a") "," ID("b") "," ID("d") "]", "ssD",
         "ssA"}, /* unpacked to another */
        {L("0") "," L("1"), OLD_IDS, NULL, NULL},
        {L("0"), "[1]", NULL, NULL},
        {L("0"), "{}", NULL, NULL},
    };
    struct manifest old = with(OLD, L("0") "," L("1") "," L("2"), OLD_IDS);
    char was[IMAGE_PARTS_MAX + 1], is[IMAGE_PARTS_MAX + 1];

    (void)state;
    assert_int_equal(old.n, 3);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct manifest m = with(NEW, rows[i].layers, rows[i].ids);
        if ((m.n == 0) != (rows[i].is == NULL))
            fail_msg("row %zu", i);
        parts_compare(&old, &m, was, is);
        was[old.n] = is[m.n] = '\0';
        if (rows[i].is && (strcmp(was, rows[i].was) != 0 || strcmp(is, rows[i].is) != 0))
            fail_msg("row %zu: %s %s", i, was, is);
        manifest_drop(&m);
    }
    manifest_drop(&old);
}

/* Names of maps are data: another case is another one, and as many as there are. */
static void maps_and_what_is_none(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"{\"container_config\":{\"Labels\":{\"a\":\"1\",\"A\":\"2\"}}}", true},
        {"{\"container_config\":{\"Labels\":{\"a\":\"1\",\"a\":\"2\"}}}", false},
        {"{\"container_config\":{\"Labels\":{\"a\":\"1\",\"\\u0061\":\"2\"}}}", false},
        {"{\"container_config\":{\"Cmd\":[],\"cmd\":[]}}", false},
        {"{\"container_config\":{\"Labels\":{\"a\":{\"b\":1,\"B\":2}}}}", false},
        {"{\"a\":[{\"b\":1,\"b\":2}]}", false},
        {"{\"U\xc5\xbf"
         "er\":\"0\",\"User\":\"1\"}",
         false},
        {"{\"U\xc5\xbf"
         "er\":\"0\",\"U\xc5\xbf"
         "ER\":\"1\"}",
         false},
        {"{\"a\":1,\"b\":{\"c\":[1,2]}}", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (json_once(of(rows[i].text)) != rows[i].good)
            fail_msg("row %zu", i);
}

/* Of a signature, a chart and the like: what it is is shown as it is, JSON or not, and what has layers is an image.
 */
static void of_something_else(void **state)
{
    static const char manifest[] = "{" TWO ",\"config\":" PART("application/vnd.x") "," LAYERS "}";
    static const char raw[] = "{ \"a\\u";
    struct value bytes = {raw, sizeof(raw) - 1};
    struct manifest m;

    (void)state;
    facts_forget(OLD);
    facts_forget(NEW);
    assert_null(manifest_read(manifest, strlen(manifest), NULL, &m));
    assert_true(manifest_layers(&m, of("{\"a\":1}")));
    assert_false(manifest_layers(&m, of("{\"rootfs\":{}}")));
    assert_true(facts_take(NEW, &m, of(""), bytes));
    assert_non_null(strstr(put(), "\"name\":\"all of it\",\"how\":\"A\",\"new\":\"{ \\\"a\\\\u\""));
    manifest_drop(&m);
}

static void by_what_a_layer_was_made(void **state)
{
    static const char all[] =
        "{\"history\":[{\"created_by\":\"one\"},{\"created_by\":\"CMD\",\"empty_layer\":true},"
        "{\"created_by\":\"two\"}],\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[" ID("a") "," ID("b") "]}}";
    static const char two[] = "{" TWO "," CONFIG ",\"layers\":[" L("0") "," L("1") "]}";
    static const char short_of[] =
        "{\"history\":[{}],\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[" ID("a") "," ID("b") "]}}";
    struct manifest m;

    (void)state;
    assert_null(manifest_read(two, strlen(two), NULL, &m));
    assert_true(manifest_layers(&m, of(all)));
    assert_int_equal(m.part[0].step.n, 5);
    assert_memory_equal(m.part[1].step.p, "\"two\"", 5);
    assert_true(manifest_layers(&m, of(short_of))); /* as many as there are layers, or it is not said */
    assert_int_equal(m.part[0].step.n, 0);
    manifest_drop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_of_images),
        cmocka_unit_test(manifests_that_all_take_for_the_same),
        cmocka_unit_test(only_so_many_parts),
        cmocka_unit_test(all_that_differs_is_said),
        cmocka_unit_test(what_a_manifest_says_beside_its_parts),
        cmocka_unit_test(what_programs_could_read_in_two_ways),
        cmocka_unit_test(too_long_is_said_to_be_cut),
        cmocka_unit_test(bytes_that_are_no_text_hide_nothing),
        cmocka_unit_test(layers_as_they_were_and_otherwise),
        cmocka_unit_test(maps_and_what_is_none),
        cmocka_unit_test(of_something_else),
        cmocka_unit_test(by_what_a_layer_was_made),
    };

    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    facts_forget(OLD);
    facts_forget(NEW);
    return failed;
}
