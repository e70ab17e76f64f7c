/* Packages that npm, a registry or a file system takes for something else than what is shown. Attack G14. */
#include "tests/kit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox-shim/inside/diff/shim_package.h"
#include "sandbox-shim/inside/shim_tar.h"

static char folder[64], inside[80];

static const char *file_of(const char *bytes, size_t n)
{
    static char path[128];

    (void)snprintf(path, sizeof(path), "%s/file", folder);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

static uint8_t stream[64 * 1024];
static size_t nstream;

static void add(enum tar_type type, const char *name, unsigned mode, const char *content)
{
    static uint8_t head[TAR_HEAD_MAX];
    struct tar_member m = {.type = type, .mode = mode, .size = type == TAR_FILE ? strlen(content) : 0};

    (void)snprintf(m.name, sizeof(m.name), "%s", name);
    (void)snprintf(m.target, sizeof(m.target), "%s", type == TAR_FILE ? "" : content);
    size_t n = tar_head(head, &m);
    memcpy(stream + nstream, head, n);
    nstream += n;
    memcpy(stream + nstream, content, m.size);
    nstream += m.size + tar_pad(m.size);
}

static void begin(void)
{
    memset(stream, 0, sizeof(stream));
    nstream = 0;
}

static const char *unpacked(struct unpacked *u, size_t end)
{
    char path[160], command[1000];

    (void)snprintf(path, sizeof(path), "%s", file_of((const char *)stream, nstream + end));
    (void)snprintf(command, sizeof(command), "gzip -nc %s > %s.gz", path, path);
    assert_int_equal(system(command), 0);
    (void)strcat(path, ".gz");
    const char *error = package_unpack(path, inside, u);
    package_drop(u);
    return error;
}

static int folder_make(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/package-diff-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(inside, sizeof(inside), "%s/inside", folder);
    git_begin("https");
    return 0;
}

static int folder_remove(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static struct value of(const char *text)
{
    return json_whole(text, strlen(text));
}

/* "failed": all of it was taken, and there is no repository here to put it into. */
static void what_is_one_file_on_some_system_is_refused(void **state)
{
    static const struct {
        const char *one, *other, *error;
        enum tar_type type;
    } rows[] = {
        {"package/a", "package/A", "twice", TAR_FILE},
        {"package/a", "package/a", "twice", TAR_FILE},
        {"package/a", "other/a", "twice", TAR_FILE},
        {"package/a", "package/a.", "twice", TAR_FILE},
        {"package/D/a", "package/d. /A ", "twice", TAR_FILE},
        {"package/a", "package/A/b", "twice", TAR_FILE},
        {"package/a/b", "package/a", "twice", TAR_FILE},
        {"package/a", "package/a", "twice", TAR_FOLDER},
        {"package/package.json", "package/PACKAG~1.JSO", "odd", TAR_FILE},
        {"package/package.json", "package/PACKAG~1.JSO..", "odd", TAR_FILE},
        {"package/package.json", "package/PACKAG~1.JSO ", "odd", TAR_FILE},
        {"package/a", "package/LONGFO~1. ./b", "odd", TAR_FILE},
        {"package/a", "package/a:b", "odd", TAR_FILE},
        {"package/k", "package/\xe2\x84\xaa", "twice", TAR_FILE},
        {"package/\xc3\x89", "package/\xc3\xa9", "twice", TAR_FILE},
        {"package/\xd0\x96", "package/\xd0\xb6", "twice", TAR_FILE},
        {"package/stra\xc3\x9f"
         "e",
         "package/STRASSE", "twice", TAR_FILE},
        {"package/stra\xc3\x9f"
         "e",
         "package/strase", "failed", TAR_FILE},
        {"package/a\xe2\x80\x8d"
         "b",
         "package/ab", "twice", TAR_FILE},
        {"package/a\xe2\x80\x8d"
         "b",
         "package/a", "failed", TAR_FILE},
        {"package/a", "package/dist/async~vendors~1a2b3c4d.js", "failed", TAR_FILE},
        {"package/a", "package/a~1b.js", "failed", TAR_FILE},
        {"package/a", "package/x/LONGFO~1/b", "odd", TAR_FILE},
        {"package/a", "package/x~12345678.js", "failed", TAR_FILE},
        {"package/a", "package/.a", "failed", TAR_FILE},
        {"package/a/b", "package/a", "failed", TAR_FOLDER},
        {"package/a-b", "package/a/b", "failed", TAR_FILE},
        {"package/\xc3\xa9", "package/\xc3\xa8", "failed", TAR_FILE},
    };
    struct unpacked u;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin();
        add(TAR_FILE, rows[i].one, 0644, "x");
        add(rows[i].type, rows[i].other, 0644, rows[i].type == TAR_FILE ? "x" : "");
        const char *error = unpacked(&u, 1024);
        if (error != rows[i].error && (!error || !rows[i].error || strcmp(error, rows[i].error) != 0))
            fail_msg("row %zu: %s", i, error ? error : "taken");
    }
}

static void nothing_but_gzip_is_unpacked(void **state)
{
    (void)state;
    struct unpacked u;

    begin();
    add(TAR_FILE, "package/a", 0644, "x");
    char path[160], command[1000];
    (void)snprintf(path, sizeof(path), "%s", file_of((const char *)stream, nstream + 1024));
    (void)snprintf(command, sizeof(command),
                   "python3 -c \"import "
                   "zipfile,sys;z=zipfile.ZipFile(sys.argv[1]+'.zip','w',8);z.write(sys.argv[1],'a');z.close()\" %s "
                   "&& gzip -dc < %s.zip | cmp - %s",
                   path, path, path);
    assert_int_equal(system(command), 0); /* the program takes it */
    (void)strcat(path, ".zip");
    assert_string_equal(package_unpack(path, inside, &u), "damaged");
    package_drop(&u);
}

static const struct {
    const char *file, *request, *fact; /* NULL: none */
    bool good;
} otherwise[] = {
    {"{\"name\":\"p\"}", "{\"name\":\"p\"}", NULL, true},
    {"{\"name\":\"p\"}", "{\"name\":\"q\"}", "\"name\":\"name\"", true},
    {"{}", "{\"version\":\"1\"}", "\"name\":\"version\"", true},
    {"{}", "{\"dependencies\":{\"evil\":\"1\"}}", "dependencies: evil", true},
    {"{\"dependencies\":{\"a\":\"1\"}}", "{\"dependencies\":{\"a\":\"\\u0031\"}}", NULL, true},
    {"{\"dependencies\":{\"a\":\"1\"}}", "{\"dependencies\":{\"a\":\"2\"}}", "dependencies: a", true},
    {"{\"dependencies\":{\"a\":\"1\"}}", "{}", "dependencies: a", true},
    {"{\"optionalDependencies\":{\"a\":\"1\"}}",
     "{\"dependencies\":{\"a\":\"1\"},\"optionalDependencies\":{\"a\":\"1\"}}", NULL, true},
    {"{}", "{\"optionalDependencies\":{\"a\":\"1\"}}", "optionalDependencies: a", true},
    {"{}", "{\"peerDependencies\":{\"a\":\"1\"}}", "peerDependencies: a", true},
    {"{\"bin\":\"./c.js\"}", "{\"bin\":{\"p\":\"c.js\"}}", NULL, true},
    {"{\"bin\":\"./c.js\"}", "{\"bin\":{\"p\":\"d.js\"}}", "bin: p", true},
    {"{}", "{\"scripts\":{\"install\":\"evil\"}}", "scripts: install", true},
    {"{}", "{\"scripts\":{\"install\":\"node-gyp rebuild\"},\"gypfile\":true}", NULL, true},
    {"{\"gypfile\":false}", "{\"gypfile\":false,\"scripts\":{\"install\":\"node-gyp rebuild\"}}", "scripts: install",
     true},
    {"{\"scripts\":{\"preinstall\":\"x\"}}", "{\"scripts\":{\"preinstall\":\"x\",\"install\":\"node-gyp rebuild\"}}",
     "scripts: install", true},
    {"{}", "{\"scripts\":{\"start\":\"node server.js\"}}", NULL, true}, /* beside the package, not in it */
    {"{}", "{\"scripts\":{\"start\":\"node evil.js\"}}", "scripts: start", true},
    {"{\"scripts\":{\"start\":\"x\"}}", "{\"scripts\":{\"start\":\"node server.js\"}}", "scripts: start", true},
    {"{\"scripts\":{\"t\":\"./node_modules/.bin/mocha\"}}", "{\"scripts\":{\"t\":\"mocha\"}}", NULL, true},
    {"{\"scripts\":{\"t\":\"mocha\"}}", "{\"scripts\":{\"t\":\"./node_modules/.bin/mocha\"}}", "scripts: t", true},
    {"{\"scripts\":{\"install\":5,\"a\":\"b\"}}", "{\"scripts\":{\"a\":\"b\"}}", NULL, true},
    {"{}", "{\"scripts\":{\"install\":5}}", "scripts: install", true},
    {"{\"version\":\"1.0.1+b.5\"}", "{\"version\":\"1.0.1\"}", NULL, true},
    {"{\"version\":\"1.0.1\"}", "{\"version\":\"1.0.1+b.5\"}", "version", true},
    {"{\"dependencies\":{\"a\":\"u/r\"}}", "{\"dependencies\":{\"a\":\"github:u/r\"}}", NULL, true},
    {"{\"dependencies\":{\"a\":\"github:u/r\"}}", "{\"dependencies\":{\"a\":\"u/r\"}}", "dependencies: a", true},
    {"{\"bin\":{\"@acme/fa\":\"./b/../x\"}}", "{\"bin\":{\"fa\":\"x\"}}", NULL, true},
    {"{\"bin\":{\"a/x\":\"1\",\"b/x\":\"2\"}}", "{\"bin\":{\"x\":\"1\"}}", "bin: ", true}, /* one of two */
    {"{\"directories\":{\"bin\":\"./b\"}}", "{\"directories\":{\"bin\":\"./b\"},\"bin\":{\"t.js\":\"b/t.js\"}}", NULL,
     true},
    {"{\"directories\":{\"bin\":\"./b\"}}", "{\"directories\":{\"bin\":\"./b\"},\"bin\":{\"ls\":\"b/t.js\"}}",
     "bin: ls", true},
    {"{\"directories\":{\"bin\":\"./b\"}}", "{\"directories\":{\"bin\":\"./b\"},\"bin\":{\"n.js\":\"b/n.js\"}}",
     "bin: n.js", true},
    {"{\"bundleDependencies\":{\"q\":\"1\"}}", "{\"bundleDependencies\":[\"q\"]}", NULL, true},
    {"{\"dependencies\":[]}", "{\"dependencies\":{}}", NULL, true},
    {"\xef\xbb\xbf{\"os\":[\"linux\"]}", "{\"os\":[\"linux\"]}", NULL, true},
    {"{}", "{\"os\":[\"linux\"]}", "os", true},
    {"{\"os\":[\"linux\"]}", "{}", "os", true},
    {"{\"engines\":{\"node\":\"1\"}}", "{\"engines\":{\"node\":\"2\"}}", "engines", true},
    {"{\"scripts\":{\"install\":\"\"}}", "{\"scripts\":{\"install\":\"node-gyp rebuild\"}}", NULL, true},
    {"{\"scripts\":{\"install\":\"\"}}", "{\"scripts\":{\"install\":\"evil\"}}", "scripts: install", true},
    {"{\"dist\":{\"a\":1}}", "{\"dist\":{\"a\":1}}", NULL, true},
    {"{\"dist\":{\"a\":1}}", "{\"dist\":{\"a\":2}}", "dist: a", true},
    {"{\"deprecated\":false}", "{\"deprecated\":false}", NULL, true},
    {"{}", "{\"deprecated\":false}", "deprecated", true},
    {"{\"deprecated\":\"x\"}", "{\"deprecated\":false}", "deprecated", true},
    {"{}", "{\"integrity\":\"a\",\"shasum\":\"b\",\"dist\":{\"integrity\":\"a\",\"shasum\":\"b\"}}", NULL, true},
    {"{}", "{\"integrity\":\"a\",\"dist\":{\"integrity\":\"b\"}}", "integrity", true},
    {"{}", "{\"shasum\":\"a\"}", "shasum", true},
    {"{\"bundleDependencies\":[\"a\"]}", "{\"bundleDependencies\":[\"a\"],\"bundledDependencies\":[\"x\"]}",
     "bundledDependencies", true}, /* which a client may take instead */
    {"{\"bundleDependencies\":true,\"dependencies\":{\"a\":\"1\"}}",
     "{\"bundleDependencies\":[\"a\"],\"dependencies\":{\"a\":\"1\"}}", NULL, true},
    {"{\"bundleDependencies\":true,\"dependencies\":{\"a\":\"1\"}}", "{\"dependencies\":{\"a\":\"1\"}}",
     "bundleDependencies: all", true},
    {"{\"bundleDependencies\":true,\"dependencies\":{\"a\":\"1\",\"b\":\"1\"}}",
     "{\"bundleDependencies\":[\"a\"],\"dependencies\":{\"a\":\"1\",\"b\":\"1\"}}", "bundleDependencies: all", true},
    {"{\"bin\":{\"@acme/fa\":\"./x\"}}", "{\"bin\":{\"@acme/fa\":\"./x\"}}", NULL, true},
    {"{\"bin\":{\"@acme/fa\":\"./x\"}}", "{\"bin\":{\"@acme/fa\":\"./x\",\"fa\":\"y\"}}", "bin: fa", true},
    {"{\"deprecated\":\"x\"}", "{\"deprecated\":\"x\"}", "deprecated", true},
    {"{}", "{\"hasInstallScript\":true}", "hasInstallScript", true},
    {"{}", "{\"_hasShrinkwrap\":true}", "_hasShrinkwrap", true},
    {"{}", "{\"peerDependenciesMeta\":{\"a\":{\"optional\":true}}}", "peerDependenciesMeta", true},
    {"{}", "{\"dist\":{\"attestations\":{}}}", "dist: attestations", true},
    {"{\"x\":{\"a\":[1]}}", "{\"x\":{\"a\":[1]},\"readme\":\"r\",\"gitHead\":\"1\"}", NULL, true},
    {"{\"bundledDependencies\":[\"a\"]}", "{\"bundleDependencies\":[\"a\"]}", NULL, true},
    {"{}", "{\"bundleDependencies\":[\"a\"]}", "bundleDependencies: a", true},
    {"{}", "{\"bundleDependencies\":\"a\"}", NULL, false},
    {"{}", "{\"Dependencies\":{\"a\":\"1\"}}", NULL, false},
    {"{\"scripts\":\"x\"}", "{}", NULL, false},
    {"{\"bundleDependencies\":\"x\"}", "{}", NULL, false},
    {"{\"dependencies\":[\"x\"]}", "{}", NULL, false},
    {"{\"dependencies\":null}", "{}", NULL, false},
};

static void a_request_that_says_otherwise_is_a_fact(void **state)
{
    char path[160], out[4096], in_package[2][32] = {"b/t.js", "binding.gyp"};

    (void)snprintf(path, sizeof(path), "%s/out", folder);
    for (size_t i = 0; i < sizeof(otherwise) / sizeof(otherwise[0]); i++) {
        struct entry files[] = {{.name = in_package[0]}, {.name = in_package[1]}};
        struct unpacked u = {.entry = files, .n = 2, .manifest = (char *)(uintptr_t)otherwise[i].file};
        struct publish p = {.manifest = of(otherwise[i].request)};
        u.nmanifest = strlen(otherwise[i].file);
        out_begin(path);
        bool good = package_facts(&u, &u, "p", &p);
        assert_int_equal(out_end(), 0);
        FILE *f = fopen(path, "re");
        assert_non_null(f);
        out[fread(out, 1, sizeof(out) - 1, f)] = '\0';
        (void)fclose(f);
        bool said = strstr(out, "\"in\":\"request\"") != NULL;
        if (!good)
            assert_non_null(strstr(out, "\"unread\":\""));
        if (good != otherwise[i].good || said != (otherwise[i].fact != NULL) ||
            (said && !strstr(out, otherwise[i].fact)))
            fail_msg("row %zu: %s", i, out);
    }
}

static void a_flag_is_a_fact(void **state)
{
    static const char was[] = "{\"gypfile\":false}", is[] = "{\"bundleDependencies\":true}";
    struct unpacked old = {.manifest = (char *)(uintptr_t)was, .nmanifest = strlen(was)};
    struct unpacked new = {.manifest = (char *)(uintptr_t)is, .nmanifest = strlen(is)};
    char path[160], out[4096];

    (void)snprintf(path, sizeof(path), "%s/out", folder);
    out_begin(path);
    assert_true(package_facts(&old, &new, "p", NULL));
    assert_int_equal(out_end(), 0);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    out[fread(out, 1, sizeof(out) - 1, f)] = '\0';
    (void)fclose(f);
    assert_non_null(strstr(out, "{\"in\":\"gypfile\",\"name\":\"gypfile\",\"how\":\"D\""));
    assert_non_null(strstr(out, "\"all of its dependencies\",\"how\":\"A\""));
}

static void a_member_in_another_case_stands_twice(void **state)
{
    static const char *const more[] = {"Data", "DATA", "d\\u0061Ta"}, *const kelvin = "{\"\xe2\x84\xaa\xc5\xbf\":1}";
    char text[64];
    bool twice;

    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        (void)snprintf(text, sizeof(text), "{\"data\":1,\"%s\":2}", more[i]);
        twice = false;
        assert_int_equal(json_member(of(text), "data", &twice).n, 0);
        assert_true(twice);
    }
    twice = false;
    assert_int_equal(json_member(of("{\"Data\":2}"), "data", &twice).n, 0);
    assert_true(twice);
    twice = false;
    assert_int_equal(json_member(of(kelvin), "ks", &twice).n, 0);
    assert_true(twice);
}

static void a_package_goes_where_it_says(void **state)
{
    (void)state;
    assert_true(package_address("https://r.test:443/p", "p"));
    assert_true(package_address("https://r.test:443/in/@s%2fp", "@s/p"));
    assert_false(package_address("https://r.test:443/@acme/thing", "thing"));
    assert_false(package_address("https://r.test:443/%40acme/thing", "thing"));
    assert_false(package_address("https://r.test:443/x/thing", "x/thing"));
    assert_false(package_address("https://r.test:443/p%2fq", "p%2fq"));
    assert_false(package_address("https://r.test:443/other", "p"));
    assert_true(package_place("https://r.test:443/p", "p", "1", "http://r.test/p/-/p-1.tgz"));
    assert_true(package_place("https://r.test:443/@s%2fp", "@s/p", "1", "http://r.test/@s/p/-/@s/p-1.tgz"));
    assert_true(package_place("https://r.test:443/@s%2fp", "@s/p", "1", "https://r.test:443/@s/p/-/p-1.tgz"));
    assert_false(package_place("https://r.test:443/p", "p", "1", "https://evil.test/p/-/p-1.tgz"));
    assert_false(package_place("https://r.test:443/p", "p", "1", "https://r.test:444/p/-/p-1.tgz"));
    assert_false(package_place("https://r.test:443/p", "p", "1", "https://r.test/q/-/p-1.tgz"));
    assert_false(package_place("https://r.test:443/p", "p", "2", "https://r.test/p/-/p-1.tgz"));
    assert_false(package_place("https://r.test:443/p", "p", "1", "https://r.test/p/-/p-1.tgz?x"));
}

static void who_refused_is_told(void **state)
{
    static const char *const ours = "HTTP/1.1 403 Forbidden\r\nCountersign-Decision: refused\r\n\r\n";

    (void)state;
    assert_null(package_answer(200, ""));
    assert_string_equal(package_answer(403, ours), "denied");
    assert_string_equal(package_answer(401, ours), "denied");
    assert_string_equal(package_answer(403, "HTTP/1.1 403 Forbidden\r\n\r\n"), "forbidden");
    assert_string_equal(package_answer(401, "HTTP/1.1 401 x\r\n\r\n"), "unauthorized");
}

#define REQUEST(list)                                                                                                \
    "{\"name\":\"p\",\"versions\":{\"1.0.0\":{\"name\":\"p\",\"version\":\"1.0.0\"}},\"_attachments\":{" list "}}"
#define MORE                                                                                                         \
    "\"name\":\"p\",\"versions\":{\"1.0.0\":{\"name\":\"p\",\"version\":\"1.0.0\",\"_id\":\"p@1.0.0\"}},"            \
    "\"_attachments\":{" TGZ "}}"
#define TGZ "\"p-1.0.0.tgz\":{\"data\":\"aGVsbG8=\"}"

static void nothing_goes_along_with_a_package(void **state)
{
    static const struct {
        const char *body;
        bool good;
    } rows[] = {
        {REQUEST(TGZ), true},
        {REQUEST(TGZ ",\"p-1.0.0.sigstore\":{\"data\":\"{}\"}"), true},
        {REQUEST("\"p-1.0.0.sigstore\":{\"data\":\"{}\"}," TGZ), false}, /* the first is what is stored */
        {REQUEST(TGZ ",\"p-1.0.0.sigstore\":{\"data\":\"PK\"}"), false},
        {REQUEST(TGZ ",\"q-1.0.0.sigstore\":{\"data\":\"{}\"}"), false},
        {REQUEST("\"p-1.0.1.tgz\":{\"data\":\"aGVsbG8=\"}"), false},
        {REQUEST(TGZ ",\"P-1.0.0.TGZ\":{\"data\":\"aGVsbG8=\"}"), false},
        {REQUEST("\"p-1.0.0.tgz\":{\"data\":\"aGVsbG8=\",\"Data\":\"aGVsbG8=\"}"), false},
        {"{\"name\":\"p\",\"versions\":{\"1.0.0\":{\"name\":\"q\",\"version\":\"1.0.0\"}},\"_attachments\":{" TGZ
         "}}",
         false},
        {"{\"_id\":\"q\"," MORE, false},
        {"{\"_id\":\"p\",\"access\":null,\"readme\":\"\"," MORE, true},
    };
    struct publish p;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *error = publish_read(rows[i].body, strlen(rows[i].body), &p);
        if ((error == NULL) != rows[i].good)
            fail_msg("row %zu: %s", i, error ? error : "taken");
        free(p.tgz);
    }
}

static void what_stands_beside_the_version_is_a_fact(void **state)
{
    static const char *const rows[][2] = {{"{\"_rev\":\"1\"," MORE, "\"name\":\"_rev\""},
                                          {"{\"users\":{\"a\":true}," MORE, "\"name\":\"users\""},
                                          {"{\"access\":\"public\"," MORE, "{\"in\":\"access\""},
                                          {"{" MORE, NULL}};
    static char is[] = "{\"name\":\"p\",\"version\":\"1.0.0\"}";
    struct unpacked new = {.manifest = is, .nmanifest = sizeof(is) - 1};
    char path[160], out[4096];
    struct publish p;

    (void)snprintf(path, sizeof(path), "%s/out", folder);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_null(publish_read(rows[i][0], strlen(rows[i][0]), &p));
        free(p.tgz);
        out_begin(path);
        assert_true(package_facts(NULL, &new, "p", &p));
        assert_int_equal(out_end(), 0);
        FILE *f = fopen(path, "re");
        assert_non_null(f);
        out[fread(out, 1, sizeof(out) - 1, f)] = '\0';
        (void)fclose(f);
        if (rows[i][1] ? !strstr(out, rows[i][1]) : strstr(out, "{\"in\"") != NULL)
            fail_msg("row %zu: %s", i, out);
    }
}

static void what_is_odd_is_named(void **state)
{
    struct unpacked u;

    begin();
    add(TAR_FILE, "package/a", 0644, "x");
    add(TAR_FILE, "package/a:b", 0644, "x");
    assert_string_equal(unpacked(&u, 1024), "odd");
    assert_string_equal(u.why, "name");
    assert_string_equal(u.at, "package/a:b");
    begin();
    add(TAR_FILE, "package/README.md", 0644, "x");
    add(TAR_FILE, "package/readme.md", 0644, "x");
    assert_string_equal(unpacked(&u, 1024), "twice");
    assert_string_equal(u.at, "readme.md");
}

/* A version that nobody can mend any more does not hold up those that follow it. */
static void a_last_version_that_is_not_read_is_told(void **state)
{
    static const struct {
        const char *manifest;
        bool good;
    } rows[] = {
        {"{\"name\":\"p\",\"bin\":\"x\"}", true},   {"{\"bin\":[]}", false}, {"{\"scripts\":null}", false},
        {"{\"scripts\":{},\"Scripts\":{}}", false}, {"[]", false},           {"", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct unpacked u = {.manifest = (char *)(uintptr_t)rows[i].manifest, .nmanifest = strlen(rows[i].manifest)};
        if (package_legible(&u, "p") != rows[i].good)
            fail_msg("row %zu", i);
    }
    assert_false(package_legible(&(struct unpacked){.n = 0}, "p")); /* too long, or not there */
    assert_string_equal(package_lost("not-found"), "gone");
    assert_string_equal(package_lost("large"), "large");
    assert_null(package_lost("unreachable"));
    assert_null(package_lost("denied"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_one_file_on_some_system_is_refused),
        cmocka_unit_test(nothing_but_gzip_is_unpacked),
        cmocka_unit_test(a_request_that_says_otherwise_is_a_fact),
        cmocka_unit_test(a_flag_is_a_fact),
        cmocka_unit_test(a_member_in_another_case_stands_twice),
        cmocka_unit_test(a_package_goes_where_it_says),
        cmocka_unit_test(who_refused_is_told),
        cmocka_unit_test(nothing_goes_along_with_a_package),
        cmocka_unit_test(what_stands_beside_the_version_is_a_fact),
        cmocka_unit_test(what_is_odd_is_named),
        cmocka_unit_test(a_last_version_that_is_not_read_is_told),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
