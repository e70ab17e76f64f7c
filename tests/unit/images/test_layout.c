/* OCI layouts that are honest, and that lie: what is taken of one is what its digests say, or nothing is. */
#include "tests/kit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "sandbox-shim/images/layout.h"

#define MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define INDEX    "application/vnd.oci.image.index.v1+json"
#define CONFIG   "application/vnd.oci.image.config.v1+json"
#define LAYER    "application/vnd.oci.image.layer.v1.tar"
enum { TEXT = 8192 };

static char top[] = "/tmp/test_layout.XXXXXX";
static int dir = -1;
static struct arena arena;
static struct layout got;
static struct err e;

static void put(const char *name, struct span bytes)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(file_write_fd(fd, bytes), 0);
    close(fd);
}

static void in(const char *command)
{
    char line[1024];
    (void)snprintf(line, sizeof(line), "cd %s && { %s; }", top, command);
    if (system(line) != 0)
        fail_msg("%s", command);
}

static int begin(void **state)
{
    memcpy(top + strlen(top) - 6, "XXXXXX", 6);
    if (!mkdtemp(top))
        return -1;
    in("mkdir -p blobs/sha256");
    dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put("oci-layout", SPAN("{\"imageLayoutVersion\":\"1.0.0\"}"));
    arena_init(&arena, 16 * 1024 * 1024);
    return 0;
}

static int finish(void **state)
{
    char line[64];
    arena_free(&arena);
    close(dir);
    (void)snprintf(line, sizeof(line), "rm -rf %s", top);
    return system(line);
}

/* A blob with these bytes, and what names it. */
static const char *blob(const char *media, const char *bytes, char out[TEXT])
{
    struct digest d;
    char hex[2 * DIGEST_BYTES + 1], name[128];
    digest_of(span_str(bytes), &d);
    hex_text(span_of(d.b, DIGEST_BYTES), hex);
    (void)snprintf(name, sizeof(name), "blobs/sha256/%s", hex);
    put(name, span_str(bytes));
    (void)snprintf(out, TEXT, "{\"mediaType\":\"%s\",\"digest\":\"sha256:%s\",\"size\":%zu", media, hex,
                   strlen(bytes));
    return out; /* it can have more; the brace is missing */
}

static const char *hex_of(const char *descriptor)
{
    static char hex[2 * DIGEST_BYTES + 1];
    const char *at = strstr(descriptor, "sha256:");
    (void)snprintf(hex, sizeof(hex), "%.64s", at ? at + 7 : "");
    return hex;
}

/* The descriptor of an image with one layer; `run` goes into its configuration, `more` into its manifest. */
static const char *image(const char *machine, const char *run, const char *layer_media, const char *more,
                         char out[TEXT])
{
    static char layer[TEXT], config[TEXT], text[12 * TEXT], manifest[16 * TEXT];
    blob(layer_media, "a layer", layer);
    (void)snprintf(
        text, sizeof(text),
        "{\"os\":\"linux\",\"architecture\":\"%s\",\"config\":%s,\"rootfs\":{\"type\":\"layers\",\"diff_ids\":"
        "[\"sha256:%s\"]}}",
        machine, run, hex_of(layer));
    blob(CONFIG, text, config);
    (void)snprintf(manifest, sizeof(manifest), "{\"schemaVersion\":2%s,\"config\":%s},\"layers\":[%s}]}", more,
                   config, layer);
    return blob(MANIFEST, manifest, out);
}

static const char *ours(void)
{
    static char machine[16];
    (void)snprintf(machine, sizeof(machine), "%.*s", SPAN_FMT(layout_machine()));
    return machine;
}

static void index_of(const char *one, const char *more)
{
    static char text[8 * TEXT];
    (void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"manifests\":[%s%s]}", one, more);
    put("index.json", span_str(text));
}

static int take(const char *ref)
{
    int rc = layout_read(&got, dir, ref, &arena, &e);
    layout_free(&got);
    return rc;
}

static void refused(const char *words)
{
    e.text[0] = '\0';
    assert_int_equal(take(NULL), -1);
    if (!strstr(e.text, words))
        fail_msg("%s: %s", words, e.text);
}

static void what_is_honest_is_taken(void **state)
{
    char m[TEXT];
    image(ours(),
          "{\"Env\":[\"A=b\",\"LD_PRELOAD=/x\",\"PATH=/p\"],\"User\":\"root\",\"Cmd\":[],\"Volumes\":{\"/v\":{}}}",
          LAYER "+zstd", "", m);
    index_of(m, "}");
    assert_int_equal(layout_read(&got, dir, NULL, &arena, &e), 0);
    assert_int_equal(got.nlayers, 1);
    assert_int_equal(got.layer[0].coding, CODING_ZSTD);
    assert_int_equal(got.layer[0].blob.size, 7);
    assert_true(span_eq(dynbuf_span(&got.env), SPAN("A=b\0PATH=/p\0")));
    assert_true(got.nvariables == 1 && span_eq(got.variables[0], SPAN("LD_PRELOAD")));
    assert_true(got.nignored == 2 && span_eq(got.ignored[0], SPAN("User")) &&
                span_eq(got.ignored[1], SPAN("Volumes")));
    struct digest d;
    assert_int_equal(hex_parse(span_str(hex_of(m)), d.b, DIGEST_BYTES), 0);
    assert_memory_equal(&got.digest, &d, sizeof(d));
    layout_free(&got);
}

static void of_several_the_one_that_is_meant_is_taken(void **state)
{
    static char one[TEXT], two[TEXT], both[3 * TEXT], text[4 * TEXT], inner[TEXT];
    image(ours(), "{}", LAYER, "", one);
    image("s390x", "{}", LAYER, "", two);
    (void)snprintf(text, sizeof(text),
                   "{\"schemaVersion\":2,\"manifests\":[%s,\"platform\":{\"os\":\"linux\",\"architecture\":\"s390x\"}"
                   "},%s,\"platform\":{\"os\":\"linux\",\"architecture\":\"%s\"}}]}",
                   two, one, ours());
    blob(INDEX, text, inner);
    (void)snprintf(both, sizeof(both),
                   ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"v1\"}},%s,\"annotations\":{\"org."
                   "opencontainers.image.ref.name\":\"v2\"}}",
                   two);
    index_of(inner, both);
    refused("it holds 2 images: --ref");
    assert_int_equal(take("v1"), 0);
    assert_int_equal(take("v2"), -1); /* another machine's */
    assert_non_null(strstr(e.text, "it is an image for s390x"));
    assert_int_equal(take("v3"), -1);
    assert_non_null(strstr(e.text, "calls no image `v3`"));
    for (int i = 0; i < 4; i++) { /* indexes in indexes */
        (void)snprintf(text, sizeof(text), "{\"schemaVersion\":2,\"manifests\":[%s}]}", inner);
        blob(INDEX, text, inner);
    }
    index_of(inner, "}");
    refused("nested too deeply");
}

static void what_lies_is_refused(void **state)
{
    static char m[TEXT], text[TEXT], path[256];
    refused("index.json is missing");
    index_of("", "");
    refused("names no image");
    image(ours(), "{}", LAYER "+encrypted", "", m);
    index_of(m, "}");
    refused("tar+encrypted`, which is not known");
    image(ours(), "{}", LAYER, ",\"mediaType\":\"" INDEX "\"", m);
    index_of(m, "}");
    refused("do not agree");
    image("vax", "{}", LAYER, "", m);
    index_of(m, "}");
    refused("it is an image for vax");
    image(ours(), "{\"Env\":{}}", LAYER, "", m);
    index_of(m, "}");
    refused("Env is no list");
    image(ours(), "{\"Env\":[1]}", LAYER, "", m);
    index_of(m, "}");
    refused("a variable of its configuration is none");
    blob(MANIFEST, "[]", m);
    index_of(m, "}");
    refused("no JSON object");
    blob(MANIFEST, "{\"layers\":[]}", m);
    index_of(m, "}");
    refused("does not have 1 to 128 layers");
    size_t n = (size_t)snprintf(text, sizeof(text), "{\"layers\":[{}");
    for (int i = 0; i < LAYOUT_LAYERS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, ",{}");
    (void)snprintf(text + n, sizeof(text) - n, "]}");
    blob(MANIFEST, text, m);
    index_of(m, "}");
    refused("does not have 1 to 128 layers");
    blob("text/\\u001b[31m", "{}", m);
    index_of(m, "}");
    refused("text/\\u{1b}[31m`, which is not known");
    image(ours(), "{}", LAYER, "", m);
    for (size_t i = 0; i < 2; i++) { /* of another size, and of other bytes */
        (void)snprintf(path, sizeof(path), "printf %s >> blobs/sha256/%s", "x", hex_of(m));
        if (i == 1)
            (void)snprintf(path, sizeof(path), "cd blobs/sha256 && truncate -s -1 %s && sed -i 's/schema/Schema/' %s",
                           hex_of(m), hex_of(m));
        in(path);
        index_of(m, "}");
        refused(i == 0 ? "are said of it" : "is not what its digest says");
    }
    static const char *const digests[] = {"sha512:", "sha256:../../../../../etc/passwd", "",
                                          "sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"};
    for (size_t i = 0; i < sizeof(digests) / sizeof(digests[0]); i++) {
        (void)snprintf(text, sizeof(text), "{\"mediaType\":\"" MANIFEST "\",\"digest\":\"%s\",\"size\":2",
                       digests[i]);
        index_of(text, "}");
        refused("no sha256 digest");
    }
    put("oci-layout", SPAN("{\"imageLayoutVersion\":\"2.0.0\"}"));
    refused("a version that is not known");
    in("rm oci-layout && mkfifo oci-layout");
    refused("no regular file");
}

/* n variables of 1022 bytes with their NUL, and so many that are not taken. */
static int variables(int n, int bad)
{
    static char run[80 * 1024], m[TEXT];
    size_t at = (size_t)snprintf(run, sizeof(run), "{\"Env\":[\"A=1\"");
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(run + at, sizeof(run) - at, ",\"A=%01019d\"", i);
    for (int i = 0; i < bad; i++)
        at += (size_t)snprintf(run + at, sizeof(run) - at, ",\"LD_%d=\"", i);
    (void)snprintf(run + at, sizeof(run) - at, "]}");
    image(ours(), run, LAYER, "", m);
    index_of(m, "}");
    return layout_read(&got, dir, NULL, &arena, &e);
}

static void documents_are_bounded(void **state)
{
    assert_int_equal(variables(65, 0), -1);
    assert_non_null(strstr(e.text, "more than 65536 bytes of variables"));
    layout_free(&got);
    assert_int_equal(variables(64, LAYOUT_NOTED_MAX + 1), 0);
    assert_true(got.nvariables == LAYOUT_NOTED_MAX + 1 && span_eq(got.variables[0], SPAN("LD_0")));
    layout_free(&got);
    struct dynbuf big;
    char text[TEXT];
    dynbuf_init(&big, BLOB_DOCUMENT_MAX + 16);
    memset(dynbuf_room(&big, BLOB_DOCUMENT_MAX + 1), ' ', BLOB_DOCUMENT_MAX + 1);
    dynbuf_grew(&big, BLOB_DOCUMENT_MAX + 1);
    put("index.json", dynbuf_span(&big));
    refused("index.json cannot be read");
    put("index.json", span_first(dynbuf_span(&big), BLOB_DOCUMENT_MAX));
    refused("no JSON object");
    dynbuf_free(&big);
    (void)snprintf(text, sizeof(text), "{\"mediaType\":\"" MANIFEST "\",\"digest\":\"sha256:%064d\",\"size\":%d", 0,
                   BLOB_DOCUMENT_MAX + 1);
    index_of(text, "}");
    refused("at most 4194304 are read");
    (void)snprintf(text, sizeof(text),
                   "{\"mediaType\":\"" MANIFEST "\",\"digest\":\"sha256:%064d\",\"size\":9007199254740992", 0);
    index_of(text, "}");
    refused("how large a blob of it is");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(what_is_honest_is_taken),
        TEST(of_several_the_one_that_is_meant_is_taken),
        TEST(what_lies_is_refused),
        TEST(documents_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
