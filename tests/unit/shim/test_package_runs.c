/* Which files of a package may run, and which are data whatever reads them. Attack G14. */
#include "tests/kit.h"

#include <string.h>

#include "sandbox-shim/inside/diff/shim_package.h"

static struct targets targets;

static void read_targets(const char *manifest)
{
    struct unpacked u = {.manifest = (char *)(uintptr_t)manifest, .nmanifest = strlen(manifest)};

    package_targets(&u, &targets);
}

static void what_package_json_names_is_looked_at(void **state)
{
    static const struct {
        const char *manifest, *path;
        bool is;
    } rows[] = {
        {"{}", "data.bin", false},
        {"{}", "node_modules/x/package.json", true},
        {"{}", "node_modules/x/blob", true},
        {"{}", "x/node_modules/y/blob", true},
        {"{}", "x.gyp", true},
        {"{\"bin\":\"./data.bin\"}", "data.bin", true},
        {"{\"bin\":\"lib/../data.bin\"}", "data.bin", true},
        {"{\"bin\":{\"x\":\"run\"}}", "run", true},
        {"{\"directories\":{\"bin\":\"./b\"}}", "b/x", true},
        {"{\"main\":\"lib\"}", "lib/index", true},
        {"{\"main\":\"lib\"}", "library", false},
        {"{\"main\":\"lib\"}", "docs/a", false},
        {"{\"exports\":{\".\":[{\"node\":\"./a.bin\"}]}}", "a.bin", true},
        {"{\"exports\":{\"./*\":\"./data/*\"}}", "data/x", true},
        {"{\"exports\":{\"./*\":\"./*\"}}", "logo.png", false},
        {"{\"main\":\".\"}", "logo.png", false},
        {"{\"scripts\":{\"install\":\"node -e \\\"require('./data.bin')\\\"\"}}", "data.bin", true},
        {"{\"scripts\":{\"postinstall\":\"cd d && node data\"}}", "d/data.bin", true},
        {"{\"scripts\":{\"test\":\"node data.bin\"}}", "data.bin", false},
        {"{\"scripts\":{\"install\":\"npm run b\",\"b\":\"node data.bin\"}}", "data.bin", true},
        {"{\"scripts\":{\"install\":\"npm run b\",\"preb\":\"node data.bin\",\"b\":\"x\"}}", "data.bin", true},
        {"{\"scripts\":{\"install\":\"npm test\",\"test\":\"npm run c\",\"c\":\"node data.bin\"}}", "data.bin", true},
        {"{\"scripts\":{\"install\":\"npm star\",\"start\":\"node data.bin\"}}", "data.bin", true},
        {"{\"scripts\":{\"install\":\"npm run b\",\"b\":\"x\",\"lint\":\"eslint *\"}}", "logo.png", false},
        {"{\"scripts\":{\"install\":\"prune\",\"c\":\"node data.bin\"}}", "data.bin", false},
        {"{\"scripts\":{\"install\":\"node install.js\"}}", "assets/a.png", false},
        {"{\"scripts\":{\"install\":\"sh d/*\"}}", "other", true},
        {"{\"scripts\":{\"install\":\"sh img/lo\\\"\\\"go.png\"}}", "other", true}, /* put together by a shell */
        {"{\"scripts\":{\"install\":\"sh im'g'/logo.png\"}}", "other", true},
        {"{\"scripts\":{\"install\":\"sh img/{lo,x}go.png\"}}", "other", true},
        {"{\"scripts\":{\"install\":\"sh img/{a..c}.png\"}}", "other", true},
        {"{\"scripts\":{\"install\":\"sh ~+/img\"}}", "other", true},
        {"{\"scripts\":{\"install\":\"npm run ev\\\"\\\"il\",\"evil\":\"sh data.bin\"}}", "data.bin", true},
        {"{\"scripts\":{\"install\":\"find img -type f -exec sh {} +\"}}", "other", true},
        {"{\"scripts\":{\"install\":\"ls img|xargs sh\"}}", "other", true},
        {"{\"scripts\":{\"install\":\"run-parts img\"}}", "img/a/logo.png", true}, /* what is in a folder */
        {"{\"scripts\":{\"install\":\"cd img/; x\"}}", "img/logo.png", true},
        {"{\"scripts\":{\"install\":\"node dist/install.js\"}}", "dist/logo.png", false},
        {"{\"scripts\":{\"install\":\"node dist.js\"}}", "dist/logo.png", false},
        {"{\"scripts\":{\"install\":\"node -e \\\"try{require('./dist/x')}catch(e){}\\\"\"}}", "logo.png", false},
        {"[]", "other", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        read_targets(rows[i].manifest);
        if (package_notable(&targets, rows[i].path) != rows[i].is)
            fail_msg("row %zu: %s", i, rows[i].path);
    }
}

#define IS(path, bytes) path, bytes, sizeof(bytes) - 1

static const struct {
    const char *manifest, *path, *bytes;
    size_t n;
    bool runs;
} data_rows[] = {
    {"{}", IS("logo.png", "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"), false},
    {"{}", IS("a/Logo.JPG", "\xff\xd8\xff\xe0\0\x10JFIF"), false},
    {"{}", IS("a.gif", "GIF89a\x10\0\x10\0"), false},
    {"{}", IS("a.woff", "wOFF\0\1\0\0"), false},
    {"{}", IS("a.gif", "GIF89a/*\x01\x02\x03*/=1;evil()"), true}, /* JavaScript as well */
    {"{}", IS("a.gif", "GIF89a=>/\x01\x02\x01/;evil()"), true},
    {"{}", IS("a.gif", "GIF89a//\x01\nevil()"), true},
    {"{}", IS("a.gif", "GIF89a/ /\x01/;evil()"), true},
    {"{}", IS("a.gif", "GIF89a`\x01`;evil()"), true},
    {"{}", IS("a.gif", "GIF89a\n\"\x01\";evil()"), true},
    {"{}", IS("a.gif", "GIF89a<!--\x01\nevil()"), true},
    {"{}", IS("a.gif", "GIF89a\n-->\x01\nevil()"), true},
    {"{}", IS("a.mp3", "ID3=>/\x01/;evil()"), true},
    {"{}", IS("a.woff2", "wOF2=>/\x01/;evil()"), true},
    {"{}", IS("a.webp", "RIFF/*\0\0WEBP"), true},
    {"{}", IS("a.webp", "RIFF=/\1\0WEBP/;evil()"), true},
    {"{}", IS("a.gif", "GIF89a/\0\x10\0"), false}, /* 47 wide, and no word behind which that begins something */
    {"{}", IS("a.gif", "GIF89a\"\0\x10\0"), false},
    {"{}", IS("a.gif", "GIF89a'\0\x10\0"), false},
    {"{}", IS("a.gif", "GIF89a<\0\x10\0"), false},
    {"{}", IS("a.gif", "GIF89a-\0\x10\0"), false},
    {"{}", IS("a.gif", "GIF89a\x22\1\x10\0"), false},
    {"{}", IS("a.webp", "RIFF-<\1\0WEBPVP8 "), false},
    {"{}", IS("favicon.ico", "\x89PNG\r\n\x1a\n\0"), false}, /* another kind than its ending says */
    {"{}", IS("a.png", "\xff\xd8\xff\xe0"), false},
    {"{}", IS("a.jpg", "\x89PNG\r\n\x1a\n\0"), false},
    {"{}", IS("a.mp3", "\xff\xf3\x40\xc4"), false},
    {"{}", IS("a.ttf", "true\0\x0f\0\x80"), false},
    {"{}", IS("a.ttf", "ttcf\0\1\0\0"), false},
    {"{}", IS("a.bmp", "BM\x36\x10\0\0\0\0\0\0\x36\0"), false},
    {"{}", IS("a.icns", "icns\0\1\0\0"), false},
    {"{}",
     IS("a.m4a", "\0\0\0\x20"
                 "ftypM4A "),
     false},
    {"{}",
     IS("a.mov", "\0\0\0\x14"
                 "ftypqt  "),
     false},
    {"{}", IS("a.opus", "OggS\0\2"), false},
    {"{}", IS("a.pdf", "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj <</Type"), false},
    {"{}", IS("a.eot", "\x24\0\0\0\0\0\0\0\1\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0LP"), false},
    {"{}", IS("a.eot", "\x25\0\0\0\0\0\0\0\1\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0LP"), true},
    {"{}",
     IS("a.webp", "\x7f"
                  "ELF\2\1\1\0WEBP"),
     true}, /* a program, with a mark in the filling of its head */
    {"{}",
     IS("a.wav", "\x7f"
                 "ELF\2\1\1\0WAVE"),
     true},
    {"{}", IS("a.mp4", "MZ\x90\0ftyp"), true},
    {"{}", IS("a.avif", "MZ\x90\0ftyp"), true},
    {"{}",
     IS("a.png", "\x7f"
                 "ELF\x02\x01\x01"),
     true},
    {"{}", IS("a.png", ""), true},
    {"{}", IS("a.bin", "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"), true},
    {"{}", IS("src/addon.cc", "/*\x01\x02\x03*/ evil"), true},
    {"{}", IS("Makefile", "#\x01\x02\x03\nall:\n\tevil"), true},
    {"{}",
     IS("lib/payload.node", "\x7f"
                            "ELF"),
     true},
    {"{\"bin\":\"logo.png\"}", IS("logo.png", "\x89PNG\r\n\x1a\n\0"), true},
    {"{\"scripts\":{\"install\":\"sh logo.png\"}}", IS("logo.png", "\x89PNG\r\n\x1a\n\0"), true},
    {"{\"exports\":{\"./*\":\"./assets/*\"}}", IS("assets/logo.png", "\x89PNG\r\n\x1a\n\0"), false},
    {"{\"directories\":{\"doc\":\"docs\"}}", IS("docs/logo.png", "\x89PNG\r\n\x1a\n\0"), false},
    {"{}", IS("node_modules/d/logo.png", "\x89PNG\r\n\x1a\n\0"), true}, /* its own package.json says more */
};

static void nothing_but_data_is_none_that_runs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(data_rows) / sizeof(data_rows[0]); i++) {
        read_targets(data_rows[i].manifest);
        if (package_runs(&targets, data_rows[i].path, data_rows[i].bytes, data_rows[i].n) != data_rows[i].runs)
            fail_msg("row %zu: %s", i, data_rows[i].path);
    }
}

/* Attack G14: what was taken as data when only JavaScript named it, or when nobody could tell what would run. */
static void what_is_named_in_another_way_is_named_now(void **state)
{
#define ASSETS          "\"exports\":{\"./assets/*\":\"./assets/*\"}"
#define INSTALL(script) "{\"scripts\":{\"install\":\"" script "\"}," ASSETS "}"
    static const struct {
        const char *old, *new;
        bool is;
    } rows[] = {
        {"{" ASSETS "}", "{" ASSETS "}", false},
        {"{" ASSETS "}", INSTALL("sh assets/x.png"), true},
        {"{" ASSETS "}", "{\"bin\":\"assets/x.png\"," ASSETS "}", true},
        {"{}", "{" ASSETS "}", true},
        {"{" ASSETS "}", "{\"main\":\"assets/x.png\"}", false}, /* which that names as well */
        {INSTALL("sh assets/x.png"), INSTALL("sh ./assets/x.png"), false},
        {INSTALL("sh $ANY"), INSTALL("sh assets/x.png"), true},
        {INSTALL("sh $ANY"), INSTALL("sh $ANY"), false},
        {INSTALL("sh $ANY"), INSTALL("sh assets/*"), true},
        {"{" ASSETS "}", INSTALL("sh assets/*"), true},
        {INSTALL("sh assets/x.png"), INSTALL("sh $ANY"), false},
    };
    static struct targets old;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        read_targets(rows[i].old);
        old = targets;
        read_targets(rows[i].new);
        if (package_named_now(&old, &targets, "assets/x.png") != rows[i].is)
            fail_msg("row %zu: %s", i, rows[i].new);
    }
}

static void what_npm_makes_of_a_text(void **state)
{
    static const struct {
        const char *which, *file, *request;
    } rows[] = {
        {"scripts", "./node_modules/.bin/mocha -x", "mocha -x"},
        {"scripts", "node_modules/.bin/tsc", "tsc"},
        {"scripts", "node_modules/xbin/tsc", "node_modules/xbin/tsc"},
        {"scripts", "cd x && node_modules/.bin/tsc", "cd x && node_modules/.bin/tsc"},
        {"version", "1.0.1+build.5", "1.0.1"},
        {"version", "v1.0.1-a", "1.0.1-a"},
        {"bin", "./bin/x", "bin/x"},
        {"bin", "bin/../bin/x", "bin/x"},
        {"bin", "../../x", "x"},
        {"bin", "bin\\x", "bin/x"},
        {"dependencies", "^1.0.0", "^1.0.0"},
        {"dependencies", "user/repo", "github:user/repo"},
        {"dependencies", "user/repo.git#v1", "github:user/repo#v1"},
        {"dependencies", "a/b/c", "a/b/c"},
        {"dependencies", "./a/b", "./a/b"},
        {"dependencies", "@a/b", "@a/b"},
        {"dependencies", "https://github.com/a/b", "git+https://github.com/a/b.git"},
        {"dependencies", "https://github.com/a/b.git#x", "git+https://github.com/a/b.git#x"},
        {"dependencies", "https://github.com/a/b/archive/x.tgz", "https://github.com/a/b/archive/x.tgz"},
        {"dependencies", "git@github.com:a/b.git", "git+ssh://git@github.com/a/b.git"},
        {"dependencies", "ssh://git@gitlab.com/a/b", "git+ssh://git@gitlab.com/a/b.git"},
        {"dependencies", "https://example.com/a/b", "https://example.com/a/b"},
        {"peerDependencies", "user/repo", "user/repo"},
        {"name", "user/repo", "user/repo"},
    };
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)snprintf(text, sizeof(text), "%s", rows[i].file);
        package_npm(rows[i].which, text, sizeof(text));
        if (strcmp(text, rows[i].request) != 0)
            fail_msg("row %zu: %s", i, text);
    }
}

static struct value of(const char *text)
{
    return json_whole(text, strlen(text));
}

static void json_that_says_the_same(void **state)
{
    static const struct {
        const char *one, *other;
        bool same;
    } rows[] = {
        {"{\"a\":[1,2],\"b\":{}}", "{ \"b\" : {}, \"\\u0061\":[1, 2.0] }", true},
        {"[1,2]", "[2,1]", false},
        {"[1,2]", "[1,2,3]", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"{\"a\":1,\"b\":1}", "{\"a\":1}", false},
        {"{\"./Button\":{\"A\":1,\"a\":2},\"./button\":2}", "{\"./button\":2,\"./Button\":{\"A\":1,\"a\":2}}", true},
        {"{\"A\":1}", "{\"a\":1}", false},
        {"{\"A\":1,\"a\":2}", "{\"A\":2,\"a\":1}", false},
        {"{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"{\"a\":1,\"b\":1}", "{\"a\":1,\"\\u0061\":1}", false},
        {"{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}", false},
        {"\"x\"", "\"\\u0078\"", true},
        {"true", "false", false},
        {"{}", "[]", false},
        {"null", "null", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (json_same(of(rows[i].one), of(rows[i].other), 0) != rows[i].same)
            fail_msg("row %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_package_json_names_is_looked_at),
        cmocka_unit_test(nothing_but_data_is_none_that_runs),
        cmocka_unit_test(what_is_named_in_another_way_is_named_now),
        cmocka_unit_test(what_npm_makes_of_a_text),
        cmocka_unit_test(json_that_says_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
