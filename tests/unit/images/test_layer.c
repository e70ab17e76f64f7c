/* Layers of anybody's, into a folder: what is made of them, and that nothing outside of it is. Attack G14. */
#include "tests/kit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox-shim/images/layer.h"

static char top[] = "/tmp/test_layer.XXXXXX";
static struct layering l;
static uint8_t stream[4 * 1024 * 1024];
static size_t nstream;

static void in(const char *command)
{
    char line[4096];
    (void)snprintf(line, sizeof(line), "cd %s/in && { %s; }", top, command);
    if (system(line) != 0)
        fail_msg("%s", command);
}

static int begin(void **state)
{
    char name[64];
    memcpy(top + strlen(top) - 6, "XXXXXX", 6);
    if (!mkdtemp(top))
        return -1;
    (void)snprintf(name, sizeof(name), "%s/in", top);
    if (mkdir(name, 0755) != 0)
        return -1;
    l = (struct layering){.root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC), .file = -1, .dir = -1};
    nstream = 0;
    in("echo secret > ../secret");
    return l.root < 0 ? -1 : 0;
}

static int finish(void **state)
{
    char line[128];
    close(l.root);
    dynbuf_free(&l.hides);
    (void)snprintf(line, sizeof(line), "rm -rf %s", top);
    return system(line);
}

static void add_mode(enum tar_type type, const char *name, const char *target, unsigned mode, const char *content)
{
    static struct tar_member m;
    memset(&m, 0, sizeof(m));
    m.type = type;
    m.mode = mode;
    m.size = type == TAR_FILE ? strlen(content) : 0;
    m.mtime = 1000000000;
    memcpy(m.name, name, strlen(name) + 1);
    memcpy(m.target, target, strlen(target) + 1);
    assert_true(nstream + TAR_HEAD_MAX + m.size + 2 * TAR_BLOCK < sizeof(stream));
    nstream += tar_head(stream + nstream, &m);
    memcpy(stream + nstream, content, m.size);
    memset(stream + nstream + m.size, 0, tar_pad(m.size));
    nstream += m.size + tar_pad(m.size);
}

static void add(enum tar_type type, const char *name, const char *target)
{
    add_mode(type, name, target, 0755, type == TAR_FILE ? "content" : "");
}

static int feed(bool looks, size_t piece, struct err *e)
{
    layer_begin(&l, looks);
    for (size_t at = 0; at < nstream; at += piece) {
        size_t n = nstream - at < piece ? nstream - at : piece;
        if (layer_take(&l, span_of(stream + at, n), e) != 0) {
            layer_drop(&l);
            return -1;
        }
    }
    return layer_end(&l, e);
}

/* One more layer. */
static int put(size_t piece, struct err *e)
{
    memset(stream + nstream, 0, (size_t)2 * TAR_BLOCK);
    nstream += (size_t)2 * TAR_BLOCK;
    unsigned open = open_fds();
    int rc = feed(true, piece, e);
    rc = rc == 0 ? layer_hide(&l, e) : rc;
    rc = rc == 0 ? feed(false, piece, e) : rc;
    assert_int_equal(open_fds(), open);
    nstream = 0;
    return rc;
}

static void good(void)
{
    struct err e = {""};
    if (put(700, &e) != 0)
        fail_msg("%s", e.text);
}

static void bad(const char *words)
{
    struct err e = {""};
    assert_int_equal(put(512, &e), -1);
    if (!strstr(e.text, words))
        fail_msg("%s: %s", words, e.text);
    in("test \"$(cat ../secret)\" = secret && test $(ls -A .. | wc -l) = 2");
}

/* --- */

static void what_is_made_belongs_to_everybody_and_gives_nobody_rights(void **state)
{
    add_mode(TAR_FILE, "su", "", 06755, "x");
    add_mode(TAR_FILE, "shadow", "", 0000, "x");
    add_mode(TAR_FILE, "run", "", 0100, "x");
    add_mode(TAR_FOLDER, "closed", "", 01000, "");
    add_mode(TAR_FOLDER, "team", "", 02770, "");
    add_mode(TAR_FILE, "closed/in/it", "", 0644, "");
    good();
    in("test $(stat -c %a su shadow run closed team closed/in closed/in/it | tr '\\n' ,) = "
       "755,644,755,755,755,755,644,");
    in("test $(stat -c %Y run) = 1000000000");
    assert_int_equal(l.lost_rights, 2);
    assert_int_equal(l.entries, 7);
    assert_int_equal(l.bytes, 3);
    covers("G10");
}

static void no_name_leads_out(void **state)
{
    add(TAR_LINK, "up", "..");
    add(TAR_LINK, "abs", "/");
    add(TAR_LINK, "d/up", "../..");
    good();
    static const char *const names[] = {"up/planted", "abs/tmp/planted", "d/up/planted", "up/in/su", "d/up/in/x/y"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (unsigned type = TAR_FILE; type <= TAR_HARD_LINK; type++) {
            add(TAR_FILE, "f", "");
            add((enum tar_type)type, names[i], type == TAR_LINK ? "x" : type == TAR_HARD_LINK ? "f" : "");
            bad("goes through a symbolic link");
        }
    add(TAR_HARD_LINK, "h", "up/secret");
    bad("goes through a symbolic link");
    add(TAR_HARD_LINK, "h", "d");
    bad("in it");
    add(TAR_FILE, "up/.wh.secret", "");
    bad("goes through a symbolic link");
    add(TAR_FILE, "up/.wh..wh..opq", "");
    bad("goes through a symbolic link");
    add(TAR_FILE, ".wh...", "");
    bad("hides a name that is none");
    add(TAR_FILE, ".wh.", "");
    bad("hides a name that is none");
    covers("G14");
}

/* A link is replaced, never written through; and what it leads to stays. */
static void what_is_replaced_gives_way(void **state)
{
    add(TAR_LINK, "f", "../secret");
    add(TAR_LINK, "d", "..");
    add(TAR_FILE, "was/file", "");
    add(TAR_FILE, "deep/a/b/c", "");
    good();
    add_mode(TAR_FILE, "f", "", 0644, "new");
    add(TAR_FOLDER, "d", "");
    add(TAR_FILE, "d/x", "");
    add(TAR_LINK, "was", "nowhere");
    add(TAR_FILE, "deep", "");
    add_mode(TAR_FILE, "twice", "", 0644, "1");
    add_mode(TAR_FILE, "twice", "", 0644, "2");
    good();
    in("test \"$(cat ../secret)\" = secret && test $(cat f) = new && test ! -L d && test -f d/x && test -L was && "
       "test -f deep && test $(cat twice) = 2");
    add(TAR_FILE, "one", "");
    add(TAR_HARD_LINK, "other", "one");
    good();
    add_mode(TAR_FILE, "one", "", 0644, "changed");
    good();
    in("test $(cat other) = content && test $(cat one) = changed");
    covers("G14");
}

/* Only what layers below have is hidden, wherever in its own layer that is said. */
static void what_is_hidden_is_of_those_below(void **state)
{
    add(TAR_FILE, "a/old", "");
    add(TAR_FILE, "a/sub/old", "");
    add(TAR_FILE, "b", "");
    add(TAR_FILE, "c/keep", "");
    good();
    add(TAR_FILE, "a/new", "");
    add(TAR_FILE, "b", "");
    add(TAR_FILE, "a/.wh..wh..opq", "");
    add(TAR_FILE, ".wh.b", "");
    add(TAR_FILE, "none/.wh.x", "");
    add(TAR_FILE, ".wh..wh.plnk", "");
    add(TAR_FILE, "c/.wh.keep.not", "");
    good();
    in("test \"$(find . -type f | sort | tr '\\n' ' ')\" = './a/new ./b ./c/keep ' && test ! -e none");
    add(TAR_FILE, ".wh..wh..opq", "");
    add(TAR_FILE, "alone", "");
    good();
    in("test \"$(find . -mindepth 1)\" = ./alone");
}

static void what_is_no_file_is_left_out(void **state)
{
    static const char types[] = "3467";
    for (size_t i = 0; i < 3; i++) {
        size_t at = nstream;
        add_mode(TAR_FILE, "device", "", 0666, "");
        stream[at + 156] = (uint8_t)types[i];
        unsigned sum = 0;
        memset(stream + at + 148, ' ', 8);
        for (size_t k = 0; k < TAR_BLOCK; k++)
            sum += stream[at + k];
        (void)snprintf((char *)stream + at + 148, 8, "%06o", sum);
    }
    good();
    assert_int_equal(l.left_out, 3);
    in("test -z \"$(ls -A)\"");
}

static void it_is_bounded(void **state)
{
    char deep[2 * LAYER_DEPTH_MAX + 2] = "";
    for (int i = 0; i < LAYER_DEPTH_MAX - 1; i++)
        memcpy(deep + 2 * (size_t)i, "a/", 3);
    deep[2 * (LAYER_DEPTH_MAX - 1)] = 'f';
    add(TAR_FILE, deep, "");
    good();
    in("test $(find . -type f | wc -l) = 1");
    memcpy(deep + 2 * (size_t)(LAYER_DEPTH_MAX - 1), "a/f", 4);
    add(TAR_FILE, deep, "");
    bad("lies too deep");
    add(TAR_FILE, ".wh.a", "");
    good(); /* and all of it goes */
    in("test -z \"$(ls -A)\"");
    l.entries = LAYER_ENTRIES_MAX - 2;
    add(TAR_FILE, "x/y", "");
    good();
    add(TAR_FILE, "z", "");
    bad("it has more than");
    l.entries = LAYER_ENTRIES_MAX - 1;
    add(TAR_FILE, "p/q/r", ""); /* folders that nobody names count as well */
    bad("it has more than");
    nstream = 0;
    layer_begin(&l, true);
    assert_non_null(dynbuf_room(&l.hides, LAYER_HIDES_MAX));
    dynbuf_grew(&l.hides, LAYER_HIDES_MAX - 3);
    add(TAR_FILE, ".wh.x", "");
    struct err e;
    assert_int_equal(layer_take(&l, span_of(stream, nstream), &e), 0); /* to the last byte */
    assert_int_equal(layer_take(&l, span_of(stream, nstream), &e), -1);
    assert_non_null(strstr(e.text, "hides more names"));
    layer_drop(&l);
}

static void what_is_cut_short_is_refused(void **state)
{
    struct err e;
    add(TAR_FILE, "f", "");
    for (size_t n = 0; n <= (size_t)2 * TAR_BLOCK; n += 100) {
        nstream = n;
        assert_int_equal(feed(false, 512, &e), -1);
        assert_non_null(strstr(e.text, "cut short"));
    }
}

/* No link is where a sandbox's own mounts go. */
static void the_places_of_mounts_are_real(void **state)
{
    struct err e = {""};
    in("ln -s /etc tmp; ln -s .. countersign; mkdir etc; ln -s ../../secret etc/passwd; mkdir etc/hosts; echo x > "
       "home; "
       "echo y > etc/resolv.conf; mkdir -p proc/1");
    assert_int_equal(bones_put(l.root, &e), 0);
    in("test \"$(find . -type l)\" = '' && test -d tmp -a -d countersign -a -d home -a -d var/tmp -a -d workspace -a "
       "-d dev && "
       "test -f etc/passwd -a -f etc/hosts -a -f etc/group -a -d proc/1 && test $(cat etc/resolv.conf) = y && "
       "test \"$(cat ../secret)\" = secret");
    assert_int_equal(bones_put(l.root, &e), 0);
    in("rm -r etc && ln -s /etc etc");
    assert_int_equal(bones_put(l.root, &e), -1);
    assert_string_equal(e.text, "its /etc is no folder");
    covers("G14");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(what_is_made_belongs_to_everybody_and_gives_nobody_rights),
        TEST(no_name_leads_out),
        TEST(what_is_replaced_gives_way),
        TEST(what_is_hidden_is_of_those_below),
        TEST(what_is_no_file_is_left_out),
        TEST(it_is_bounded),
        TEST(what_is_cut_short_is_refused),
        TEST(the_places_of_mounts_are_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
