/* Diffs of packages, inside of their sandbox: what is taken for a request, a list of versions, a place, a hash and a
 * package, whoever wrote them. Attack G14. */
#include "tests/kit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox-shim/inside/diff/shim_package.h"
#include "sandbox-shim/inside/shim_tar.h"

/* --- JSON ------------------------------------------------------------------------------ */

static void json_that_is_taken_and_that_is_not(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } rows[] = {
        {"{}", true},
        {" [1, -0.5e+3, \"a\\u00e9\\n\", true, false, null] ", true},
        {"{\"a\":{\"b\":[{},[]]}}", true},
        {"", false},
        {"{", false},
        {"{\"a\"}", false},
        {"{\"a\":}", false},
        {"{\"a\":1,}", false},
        {"[1,]", false},
        {"[,1]", false},
        {"[1]]", false},
        {"{]", false},
        {"[}", false},
        {"01", false},
        {"1.", false},
        {"-", false},
        {"1e", false},
        {"\"\\x\"", false},
        {"\"\\u12g4\"", false},
        {"\"a\nb\"", false},
        {"\"", false},
        {"tru", false},
        {"{} {}", false},
        {"{a:1}", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((json_whole(rows[i].text, strlen(rows[i].text)).n > 0) != rows[i].good)
            fail_msg("row %zu: %s", i, rows[i].text);
}

static void json_is_only_so_deep(void **state)
{
    char text[2 * JSON_DEEP + 4];

    (void)state;
    for (int deep = JSON_DEEP; deep <= JSON_DEEP + 1; deep++) {
        memset(text, '[', (size_t)deep);
        memset(text + deep, ']', (size_t)deep);
        assert_int_equal(json_whole(text, 2 * (size_t)deep).n > 0, deep == JSON_DEEP);
    }
}

static struct value of(const char *text)
{
    return json_whole(text, strlen(text));
}

static void members_by_their_opened_name(void **state)
{
    struct value v = of("{\"\\u0073cripts\" : \"a\\ud83d\\ude00\\/\", \"b\":1, \"b\":2, \"z\":\"\\u0000\"}");
    bool twice = false;
    char text[16];

    (void)state;
    assert_int_equal(json_text(json_member(v, "scripts", &twice), text, sizeof(text)), 6);
    assert_string_equal(text, "a\xf0\x9f\x98\x80/");
    assert_int_equal(json_text(json_member(v, "scripts", &twice), text, 6), -1); /* no room for its end */
    assert_false(twice);
    assert_int_equal(json_text(json_member(v, "z", &twice), text, sizeof(text)), -1);
    assert_int_equal(json_member(v, "none", &twice).n, 0);
    assert_false(twice);
    assert_int_equal(json_member(v, "b", &twice).n, 0);
    assert_true(twice);
}

/* --- the request, and the list ----------------------------------------------------------- */

#define VERSIONS "\"versions\":{\"1.1.0\":{\"name\":\"p\",\"version\":\"1.1.0\",\"dist\":{\"shasum\":\"x\"}}}"
#define TAGS     "\"dist-tags\":{\"latest\":\"1.1.0\"}"
#define FILE_IS  "\"_attachments\":{\"p-1.1.0.tgz\":{\"data\":\"aGVsbG8=\"}}"

static void a_request_is_read_as_npm_writes_it(void **state)
{
    static const struct {
        const char *body, *error;
    } rows[] = {
        {"{\"name\":\"p\"," VERSIONS "," TAGS "," FILE_IS "}", NULL},
        {"{\"name\":\"p\"," VERSIONS "," FILE_IS "}", NULL},
        {"{\"name\":\"p\"," VERSIONS "," TAGS "}", "no-package"},
        {"{\"name\":\"p\"," VERSIONS "," TAGS ",\"_attachments\":{}}", "no-package"},
        {"{" VERSIONS "," TAGS "," FILE_IS "}", "bad-request"},
        {"{\"name\":\"p\",\"name\":\"q\"," VERSIONS "," TAGS "," FILE_IS "}", "bad-request"},
        {"{\"name\":\"p\"," TAGS "," FILE_IS "}", "bad-request"},
        {"{\"name\":\"p\",\"versions\":{\"1.1.0\":{\"version\":\"1.1.0\"},\"2.0.0\":{}}," TAGS "," FILE_IS "}",
         "bad-request"},
        {"{\"name\":\"p\",\"versions\":{\"1.1.0\":{\"version\":\"1.0.0\"}}," TAGS "," FILE_IS "}", "bad-request"},
        {"{\"name\":\"p\"," VERSIONS ",\"dist-tags\":{\"latest\":\"9.9.9\"}," FILE_IS "}", "bad-request"},
        {"{\"name\":\"p\"," VERSIONS ",\"dist-tags\":{\"a\":\"1.1.0\",\"b\":\"1.1.0\"}," FILE_IS "}", "bad-request"},
        {"{\"name\":\"p\"," VERSIONS "," TAGS
         ",\"_attachments\":{\"p-1.1.0.tgz\":{\"data\":\"aGVsbG8=\"},\"q.tgz\":{\"data\":\"aGVsbG8=\"}}}",
         "bad-request"},
        {"{\"name\":\"p\"," VERSIONS "," TAGS ",\"_attachments\":{\"p.exe\":{\"data\":\"aGVsbG8=\"}}}",
         "bad-request"},
        {"{\"name\":\"p\"," VERSIONS "," TAGS ",\"_attachments\":{\"p-1.1.0.tgz\":{\"data\":\"aGVs*G8=\"}}}",
         "bad-request"},
        {"{\"name\":\"p\"," VERSIONS "," TAGS ",\"_attachments\":{\"p-1.1.0.tgz\":{\"data\":\"aGVsbG8\"}}}",
         "bad-request"},
        {"not json", "bad-request"},
    };
    struct publish p;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *error = publish_read(rows[i].body, strlen(rows[i].body), &p);
        if (error != rows[i].error && (!error || !rows[i].error || strcmp(error, rows[i].error) != 0))
            fail_msg("row %zu: %s", i, error ? error : "taken");
        if (!error) {
            assert_int_equal(p.ntgz, 5);
            assert_memory_equal(p.tgz, "hello", 5);
            assert_string_equal(p.version, "1.1.0");
        }
        free(p.tgz);
    }
}

#define AT(v) "\"" v "\":{\"dist\":{\"tarball\":\"https://r/p/-/p-" v ".tgz\",\"integrity\":\"i\"}}"

static void the_last_version_is_that_of_the_tag_or_the_highest(void **state)
{
    static const struct {
        const char *list, *tag, *error, *version;
        bool by_tag, already;
    } rows[] = {
        {"{\"name\":\"p\",\"dist-tags\":{\"latest\":\"1.0.0\"},\"versions\":{" AT("1.0.0") "," AT("2.0.0") "}}",
         "latest", NULL, "1.0.0", true, false},
        {"{\"name\":\"p\",\"dist-tags\":{\"latest\":\"1.0.0\"},\"versions\":{" AT("1.0.0") "," AT("1.10.0") "," AT(
             "1.9.0") "}}",
         "beta", NULL, "1.10.0", false, false},
        {"{\"dist-tags\":{\"latest\":\"7.0.0\"},\"versions\":{" AT("1.1.0") "}}", "latest", NULL, "1.1.0", false,
         true},
        {"{\"name\":\"p\",\"versions\":{}}", "latest", NULL, "", false, false},
        {"{\"name\":\"other\",\"versions\":{" AT("1.0.0") "}}", "latest", "bad-list", "", false, false},
        {"{\"versions\":{" AT("1.0.0") "," AT("1.0.0") "}}", "latest", "bad-list", "", false, false},
        {"{\"versions\":{\"1.0.0\":{}}}", "latest", "bad-list", "", false, false},
        {"{\"versions\":[]}", "latest", "bad-list", "", false, false},
        {"<html>", "latest", "bad-list", "", false, false},
    };
    struct publish p = {.name = "p", .version = "1.1.0"};
    struct last l;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)snprintf(p.tag, sizeof(p.tag), "%s", rows[i].tag);
        const char *error = last_find(rows[i].list, strlen(rows[i].list), &p, &l);
        if ((error != NULL) != (rows[i].error != NULL))
            fail_msg("row %zu: %s", i, error ? error : "taken");
        if (error)
            continue;
        assert_int_equal(l.is, rows[i].version[0] != '\0');
        assert_string_equal(l.version, rows[i].version);
        assert_int_equal(l.by_tag, rows[i].by_tag);
        assert_int_equal(l.already, rows[i].already);
    }
}

static void versions_are_in_the_order_of_npm(void **state)
{
    static const char *const order[] = {"none",
                                        "0.9.9",
                                        "1.0.0-alpha",
                                        "1.0.0-alpha.1",
                                        "1.0.0-alpha.beta",
                                        "1.0.0-beta",
                                        "1.0.0-beta.2",
                                        "1.0.0-beta.11",
                                        "1.0.0-rc.1",
                                        "1.0.0",
                                        "1.0.1+build5",
                                        "1.2.0",
                                        "1.10.0",
                                        "99999999999999999999.0.0"};
    enum { N = sizeof(order) / sizeof(order[0]) };

    (void)state;
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++)
            if (version_before(order[i], order[k]) != (i < k))
                fail_msg("%s, %s", order[i], order[k]);
    assert_false(version_before("1.0.0+a", "1.0.0+b"));
    assert_false(version_before("1.0.0+b", "1.0.0+a"));
}

/* --- where it is, and whether it is that ------------------------------------------------------ */

static void nothing_but_that_package_of_that_host_is_fetched(void **state)
{
    static const struct {
        const char *base, *name, *tarball;
        bool good;
    } rows[] = {
        {"https://r.test:443/p", "p", "https://r.test/p/-/p-1.tgz", true},
        {"https://r.test:4873/p", "p", "https://R.test:4873/p/-/p-1.tgz", true},
        {"https://r.test:443/@s%2fp", "@s/p", "https://r.test/@s/p/-/p-1.tgz", true},
        {"https://r.test:443/@s%2fp", "@s/p", "https://r.test/download/@s%2Fp/1.0.0/abc", false},
        {"https://r.test:443/p", "p", "https://evil.test/p/-/p-1.tgz", false},
        {"https://r.test:443/p", "p", "http://r.test/p/-/p-1.tgz", false},
        {"https://r.test:443/p", "p", "https://r.test:8443/p/-/p-1.tgz", false},
        {"https://r.test:443/p", "p", "https://user@r.test/p/-/p-1.tgz", false},
        {"https://r.test:443/p", "p", "https://r.test/other/-/other-1.tgz", false},
        {"https://r.test:443/in/@s%2Fp", "@s/p", "https://r.test/in/@s/p/-/p-1.tgz", true},
        {"https://r.test:443/in/p", "p", "https://r.test/p/-/p-1.tgz", false},
        {"https://r.test:443/p", "p", "https://r.test/other/p/-/p-1.tgz", false},
        {"https://r.test:443/p", "p", "https://r.test/p/x/-/p-1.tgz", false},
        {"https://r.test:443/p", "p", "https://r.test/p/-/..%2f..%2fother.tgz", false},
        {"https://r.test:443/p", "p", "https://r.test/p/../other/-/x.tgz", false},
        {"https://r.test:443/p", "p", "https://r.test/p/%2e%2e/other/x.tgz", false},
        {"https://r.test:443/p", "p", "https://r.test/p/-/x.tgz?to=else", false},
        {"https://r.test:443/p", "p", "https://r.test/p/-/x.tgz#x", false},
        {"https://r.test:443/p", "p", "https://r.test/p/-/x y.tgz", false},
        {"https://r.test:443/p", "p", "file:///p/-/p-1.tgz", false},
        {"https://r.test:443/p", "p", "--output=/p/x", false},
        {"https://r.test:443/p", "p", "", false},
    };
    char url[PACKAGE_URL_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (package_url(rows[i].base, rows[i].name, rows[i].tarball, url) != rows[i].good)
            fail_msg("row %zu: %s", i, rows[i].tarball);
    assert_true(package_url("https://r.test:443/p", "p", "https://R.TEST/p/-/p.tgz", url));
    assert_string_equal(url, "https://r.test:443/p/-/p.tgz"); /* whom to ask is ours to say */
}

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

#define SHA512_HELLO "m3HSJL1i83hdltRq0+o9czGb+8KJDKra4t/3JRlnPKcjI8PZm6XBHXx6zG4UuMXaDEZjR1wuXDre9G9zvN7AQw=="
#define SHA1_HELLO   "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"

static void a_hash_is_that_of_the_bytes_or_it_is_not(void **state)
{
    static const struct {
        const char *integrity, *shasum;
        enum hash is;
        const char *kind;
    } rows[] = {
        {"\"sha512-" SHA512_HELLO "\"", NULL, HASH_GOOD, "sha512"},
        {"\"sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00= sha512-" SHA512_HELLO "\"", NULL, HASH_WRONG, "sha512"}, /* one */
        {"\"sha512-" SHA512_HELLO " sha512-AAAA\"", NULL, HASH_WRONG, "sha512"},
        {"\"sha512-" SHA512_HELLO "?x\"", NULL, HASH_WRONG, "sha512"},
        {"\"sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00= sha512-AAAA\"", NULL, HASH_WRONG, "sha512"}, /* the strongest counts */
        {"\"sha512-" SHA512_HELLO "\"", "\"0000\"", HASH_GOOD, "sha512"},
        {"\"sha512-n" SHA512_HELLO "\"", NULL, HASH_WRONG, "sha512"},
        {"\"sha512-\"", "\"" SHA1_HELLO "\"", HASH_WRONG, "sha512"},
        {"\"md5-XUFAKrxLKna5cZ2REBfFkg==\"", NULL, HASH_NONE, NULL},
        {"\"md5-XUFAKrxLKna5cZ2REBfFkg==\"", "\"" SHA1_HELLO "\"", HASH_GOOD, "sha1"},
        {NULL, "\"" SHA1_HELLO "\"", HASH_GOOD, "sha1"},
        {NULL, "\"baf4c61ddcc5e8a2dabede0f3b482cd9aea9434d\"", HASH_WRONG, "sha1"},
        {"7", NULL, HASH_WRONG, NULL},
        {NULL, NULL, HASH_NONE, NULL},
    };
    const char *path = file_of("hello", 5), *kind;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum hash is = package_hash(path, of(rows[i].integrity ? rows[i].integrity : ""),
                                    of(rows[i].shasum ? rows[i].shasum : ""), &kind);
        if (is != rows[i].is || (kind != rows[i].kind && (!kind || !rows[i].kind || strcmp(kind, rows[i].kind) != 0)))
            fail_msg("row %zu: %d, %s", i, is, kind ? kind : "none");
    }
}

/* --- its files -------------------------------------------------------------------------------- */

static uint8_t stream[4 * 1024 * 1024];
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

/* The one header there is, with its sum. */
static void is_device(void)
{
    enum { AT_SUM = 148, AT_TYPE = 156 };
    unsigned sum = 0;

    stream[AT_TYPE] = '3';
    memset(stream + AT_SUM, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += stream[i];
    (void)snprintf((char *)stream + AT_SUM, 8, "%06o", sum);
    stream[AT_SUM + 7] = ' ';
}

static void begin(void)
{
    memset(stream, 0, sizeof(stream));
    nstream = 0;
}

static const char *unpacked(struct unpacked *u, size_t end)
{
    char path[160], command[400];

    (void)snprintf(path, sizeof(path), "%s", file_of((const char *)stream, nstream + end));
    (void)snprintf(command, sizeof(command), "gzip -nc %s > %s.gz", path, path);
    assert_int_equal(system(command), 0);
    (void)strcat(path, ".gz");
    const char *error = package_unpack(path, inside, u);
    package_drop(u);
    return error;
}

static void what_programs_unpack_differently_is_refused(void **state)
{
    struct unpacked u;
    char deep[200] = "package";

    (void)state;
    begin();
    add(TAR_FILE, "package/../../evil", 0644, "x");
    assert_string_equal(unpacked(&u, 1024), "damaged");
    begin();
    add(TAR_FILE, "/etc/evil", 0644, "x");
    assert_string_equal(unpacked(&u, 1024), "odd");
    begin();
    add(TAR_FILE, "package/a", 0644, "x");
    assert_string_equal(unpacked(&u, 0), "damaged"); /* no end */
    begin();
    add(TAR_FILE, "package/a", 0644, "x");
    nstream += 1024;
    add(TAR_FILE, "package/behind", 0644, "x");
    assert_string_equal(unpacked(&u, 1024), "damaged");
    begin();
    add(TAR_FILE, "beside", 0644, "x");
    assert_string_equal(unpacked(&u, 1024), "odd");
    begin();
    add(TAR_FILE, "package/device", 0644, "");
    is_device();
    assert_string_equal(unpacked(&u, 1024), "odd");
    for (int i = 0; i < PACKAGE_DEEP; i++)
        (void)strcat(deep, "/d");
    begin();
    add(TAR_FILE, strcat(deep, "/d"), 0644, "x");
    assert_string_equal(unpacked(&u, 1024), "odd");
    begin();
    assert_string_equal(unpacked(&u, 1024), "damaged"); /* nothing in it */
}

static void so_much_and_no_more(void **state)
{
    static uint8_t head[TAR_HEAD_MAX];
    struct tar_member m = {.type = TAR_FILE, .mode = 0644, .size = PACKAGE_BYTES_MAX, .name = "package/zeros"};
    struct unpacked u;
    char name[32];

    (void)state;
    begin();
    for (int i = 0; i <= PACKAGE_FILES_MAX; i++) {
        (void)snprintf(name, sizeof(name), "package/%d", i);
        add(TAR_FILE, name, 0644, "");
    }
    assert_string_equal(unpacked(&u, 1024), "large");
    begin();
    add(TAR_FILE, "package/a", 0644, "x");
    size_t n = tar_head(head, &m); /* what it says it has: nothing of it is written */
    memcpy(stream + nstream, head, n);
    nstream += n;
    assert_string_equal(unpacked(&u, 1024), "large");
}

static struct entry entries[2][4];

static struct entry entry_of(const char *name, unsigned mode, const char *id)
{
    struct entry e = {.name = (char *)(uintptr_t)name, .mode = mode};

    (void)snprintf(e.id, sizeof(e.id), "%s", id);
    return e;
}

static void what_changed_is_paired_by_name_and_package_json_is_first(void **state)
{
    struct unpacked old = {.entry = entries[0], .n = 4}, new = {.entry = entries[1], .n = 3};
    size_t n = 0;

    (void)state;
    entries[0][0] = entry_of("a.js", 0100644, "11");
    entries[0][1] = entry_of("gone", 0100644, "22");
    entries[0][2] = entry_of("moves", 0100644, "33");
    entries[0][3] = entry_of("package.json", 0100644, "44");
    entries[1][0] = entry_of("a.js", 0100755, "11");
    entries[1][1] = entry_of("moved", 0100644, "33");
    entries[1][2] = entry_of("package.json", 0100644, "55");
    struct changed *list = package_changes(&old, &new, &n);
    assert_non_null(list);
    assert_int_equal(n, 4);
    assert_string_equal(list[0].path, "package.json");
    assert_int_equal(list[0].how, 'M');
    assert_string_equal(list[1].path, "a.js");
    assert_int_equal(list[1].mode[1], 0100755);
    assert_string_equal(list[2].path, "gone");
    assert_int_equal(list[2].how, 'D');
    assert_string_equal(list[3].path, "moved");
    assert_int_equal(list[3].how, 'R');
    assert_string_equal(list[3].from, "moves");
    free(list);
    list = package_changes(NULL, &new, &n);
    assert_int_equal(n, 3);
    assert_int_equal(list[2].how, 'A');
    free(list);
}

/* --- its facts --------------------------------------------------------------------------------- */

static bool facts(const char *old, const char *new, char *out, size_t room)
{
    struct unpacked was = {.manifest = (char *)(uintptr_t)old, .nmanifest = old ? strlen(old) : 0};
    struct unpacked is = {.manifest = (char *)(uintptr_t) new, .nmanifest = strlen(new)};
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/out", folder);
    out_begin(path);
    bool good = package_facts(old ? &was : NULL, &is, "@s/p", NULL);
    assert_int_equal(out_end(), 0);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    out[fread(out, 1, room - 1, f)] = '\0';
    (void)fclose(f);
    return good;
}

static void facts_of_scripts_dependencies_and_commands(void **state)
{
    static char out[64 * 1024], big[64 * 1024];

    (void)state;
    assert_true(facts("{\"scripts\":{\"test\":\"a\"},\"dependencies\":{\"x\":\"1\",\"y\":\"1\"}}",
                      "{\"scripts\":{\"test\":\"a\",\"postinstall\":\"<b>\\u202e\"},\"dependencies\":{\"y\":\"2\"},"
                      "\"bin\":\"./c.js\","
                      "\"bundleDependencies\":[\"z\"]}",
                      out, sizeof(out)));
    assert_string_equal(
        out, ",\"facts\":[{\"in\":\"scripts\",\"name\":\"postinstall\",\"how\":\"A\",\"new\":\"<b>\u202e\"},"
             "{\"in\":\"bin\",\"name\":\"p\",\"how\":\"A\",\"new\":\"./c.js\"},"
             "{\"in\":\"dependencies\",\"name\":\"x\",\"how\":\"D\",\"old\":\"1\"},"
             "{\"in\":\"dependencies\",\"name\":\"y\",\"how\":\"M\",\"old\":\"1\",\"new\":\"2\"},"
             "{\"in\":\"bundleDependencies\",\"name\":\"z\",\"how\":\"A\",\"new\":\"z\"}],\"facts_total\":5");
    assert_false(facts("{}", "{\"scripts\":{\"a\":\"1\",\"\\u0061\":\"2\"}}", out, sizeof(out))); /* which counts? */
    assert_false(facts("{}", "{\"scripts\":{},\"scripts\":{}}", out, sizeof(out)));
    assert_false(facts("{}", "[]", out, sizeof(out)));
    assert_string_equal(out, ",\"unread\":\"new\"");
    assert_false(facts("{\"scripts\":[1]}", "{}", out, sizeof(out)));
    assert_string_equal(out, ",\"unread\":\"old\",\"unread_key\":\"scripts\"");
    assert_true(facts(NULL, "\xef\xbb\xbf{}", out, sizeof(out))); /* npm leaves that out */
    assert_true(facts(NULL, "{}", out, sizeof(out)));
    assert_string_equal(out, ",\"facts\":[],\"facts_total\":0");
    size_t n = (size_t)snprintf(big, sizeof(big), "{\"dependencies\":{\"first\":\"%0*d\"", PACKAGE_FACT_MAX + 1, 0);
    for (int i = 0; i < PACKAGE_FACTS_MAX; i++)
        n += (size_t)snprintf(big + n, sizeof(big) - n, ",\"x%d\":\"1\"", i);
    (void)snprintf(big + n, sizeof(big) - n, "}}");
    assert_true(facts(NULL, big, out, sizeof(out)));
    assert_non_null(strstr(out, "\"cut\":true"));
    assert_non_null(strstr(out, "\"facts_total\":201"));
    size_t shown = 0;
    for (const char *p = out; (p = strstr(p, "{\"in\"")) != NULL; p++)
        shown++;
    assert_int_equal(shown, PACKAGE_FACTS_MAX);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_that_is_taken_and_that_is_not),
        cmocka_unit_test(json_is_only_so_deep),
        cmocka_unit_test(members_by_their_opened_name),
        cmocka_unit_test(a_request_is_read_as_npm_writes_it),
        cmocka_unit_test(the_last_version_is_that_of_the_tag_or_the_highest),
        cmocka_unit_test(versions_are_in_the_order_of_npm),
        cmocka_unit_test(nothing_but_that_package_of_that_host_is_fetched),
        cmocka_unit_test(a_hash_is_that_of_the_bytes_or_it_is_not),
        cmocka_unit_test(what_programs_unpack_differently_is_refused),
        cmocka_unit_test(so_much_and_no_more),
        cmocka_unit_test(what_changed_is_paired_by_name_and_package_json_is_first),
        cmocka_unit_test(facts_of_scripts_dependencies_and_commands),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
