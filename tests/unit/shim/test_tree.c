/* Files beneath a folder, and folders as tar streams: nothing leads out, whatever lies there and whoever changes it
 * meanwhile. Attack G14. */
#include "tests/kit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox-shim/inside/shim_beneath.h"
#include "sandbox-shim/inside/shim_tree.h"

static char top[] = "/tmp/test_tree.XXXXXX";
static int root = -1; /* top/in; beside it lies top/secret */

static void in(const char *format, ...)
{
    char command[2048], line[4096];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(command, sizeof(command), format, ap);
    va_end(ap);
    (void)snprintf(line, sizeof(line), "cd %s/in && { %s; }", top, command);
    assert_int_equal(system(line), 0);
}

static int begin(void **state)
{
    char name[64];
    memcpy(top + strlen(top) - 6, "XXXXXX", 6);
    if (!mkdtemp(top))
        return -1;
    (void)snprintf(name, sizeof(name), "%s/in", top);
    if (mkdir(name, 0700) != 0)
        return -1;
    root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    in("echo secret > ../secret; mkdir -p d/e ../out; echo f > d/f; ln -s d/f good; ln -s ../secret up; ln -s "
       "%s/secret abs; "
       "ln -s .. above; ln -s d within",
       top);
    return root < 0 ? -1 : 0;
}

static int finish(void **state)
{
    char line[128];
    close(root);
    (void)snprintf(line, sizeof(line), "chmod -R u+rwx %s && rm -rf %s", top, top);
    return system(line);
}

static void opens(const char *path, bool links, int why)
{
    int fd = beneath_open(root, path, O_RDONLY, 0, links);
    assert_int_equal(fd >= 0 ? 0 : errno, why);
    if (fd >= 0)
        close(fd);
}

static void no_name_leads_out(void **state)
{
    struct place p;
    opens("d/f", true, 0);
    opens("good", true, 0);
    opens("within/f", true, 0);
    opens("d/../d/f", true, 0);
    opens("good", false, ELOOP);
    opens("within/f", false, ELOOP);
    static const char *const out[] = {"up",
                                      "abs",
                                      "../secret",
                                      "above/secret",
                                      "/etc/passwd",
                                      "d/../../secret",
                                      "within/../../secret",
                                      "/proc/self/root/etc/passwd"};
    for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
        opens(out[i], true, EXDEV);
    assert_int_equal(place_find(root, "above/x", true, &p), -1);
    assert_int_equal(errno, EXDEV);
    static const char *const none[] = {"", ".", "..", "/", "d/..", "d/.", "//"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_int_equal(place_find(root, none[i], true, &p), -1);
        assert_int_equal(errno, EBUSY);
    }
    assert_int_equal(place_find(root, "d/e/", true, &p), 0);
    assert_string_equal(p.name, "e");
    place_close(&p);
    covers("G14");
}

static void put(const char *path, const char *content)
{
    struct place p;
    assert_int_equal(place_find(root, path, true, &p), 0);
    int fd = place_make(&p);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, strlen(content)), strlen(content));
    assert_int_equal(place_put(&p, fd), 0);
    close(fd);
    place_close(&p);
}

static void a_file_has_its_name_at_once_and_no_link_is_written_through(void **state)
{
    unsigned before = open_fds();
    put("new", "one");
    put("new", "two");
    put("up", "mine");
    in("test $(cat new) = two && test $(cat ../secret) = secret && test ! -L up && test $(cat up) = mine");
    in("test $(ls -A | grep -c countersign) = 0");
    struct place p;
    assert_int_equal(place_find(root, "d", true, &p), 0);
    int fd = place_make(&p);
    assert_int_equal(place_put(&p, fd), -1); /* not of a folder */
    assert_int_equal(errno, EISDIR);
    close(fd);
    place_close(&p);
    in("test $(ls -A | grep -c countersign) = 0");
    assert_int_equal(open_fds(), before);
}

static int gone(const char *path, bool whole)
{
    struct place p;
    int rc = place_find(root, path, true, &p);
    if (rc == 0)
        rc = place_remove(&p, whole);
    place_close(&p);
    return rc == 0 ? 0 : errno;
}

static void a_tree_goes_however_deep_and_nothing_else(void **state)
{
    in("i=0; while [ $i -lt 700 ]; do mkdir -p deep; echo x > deep/f; ln -s ../../secret deep/l; chmod 500 deep; "
       "mkdir next; "
       "mv deep next/deep; mv next deep; i=$((i + 1)); done");
    in("ln -s ../../out deep/out; echo kept > ../out/kept; mkdir deep/sealed; echo x > deep/sealed/x; chmod 0 "
       "deep/sealed");
    assert_int_equal(gone("deep", false), ENOTEMPTY);
    assert_int_equal(gone("deep", true), 0);
    in("test ! -e deep && test $(cat ../out/kept) = kept && test $(cat ../secret) = secret");
    assert_int_equal(gone("above", true), 0); /* the link alone */
    in("test ! -L above && test -d ../out");
    assert_int_equal(gone("deep", true), ENOENT);
    assert_int_equal(gone("d/f", false), 0);
    assert_int_equal(gone("d/e", false), 0);
}

static void folders_are_made_beneath(void **state)
{
    assert_int_equal(beneath_mkdirs(root, "x/y//z/", 0755, true), 0);
    assert_int_equal(beneath_mkdirs(root, "x/y/z", 0755, true), 0);
    assert_int_equal(beneath_mkdirs(root, ".", 0755, true), 0);
    assert_int_equal(beneath_mkdirs(root, "within/new", 0755, true), 0);
    in("test -d x/y/z && test -d d/new");
    assert_int_equal(beneath_mkdirs(root, "above/out/new", 0755, true), -1);
    assert_int_equal(beneath_mkdirs(root, "../new", 0755, true), -1);
    assert_int_equal(beneath_mkdirs(root, "d/f/new", 0755, true), -1);
    in("test ! -e ../new && test ! -e ../out/new");
}

/* --- trees ------------------------------------------------------------------------------ */

static uint8_t stream[1 << 20];
static size_t nstream;

static int keep(void *arg, const uint8_t *p, size_t n)
{
    if (n > sizeof(stream) - nstream)
        return -1;
    memcpy(stream + nstream, p, n);
    nstream += n;
    return 0;
}

static int pack_of(const char *path, uint64_t most)
{
    static struct pack k;
    int dir = beneath_open(root, path, O_RDONLY | O_DIRECTORY, 0, true);
    nstream = 0;
    k.put = keep;
    k.most = most;
    int rc = pack_folder(&k, dir), why = errno;
    close(dir);
    return rc == 0 ? 0 : why;
}

static struct unpack u;

static int unpack_to(const char *path, bool outside, size_t piece)
{
    assert_int_equal(beneath_mkdirs(root, path, 0755, true), 0);
    int rc = 0, to = beneath_open(root, path, O_PATH | O_DIRECTORY, 0, true);
    unpack_begin(&u, to, outside);
    for (size_t at = 0; rc == 0 && at < nstream; at += piece)
        rc = unpack_take(&u, stream + at, nstream - at < piece ? nstream - at : piece);
    if (rc == 0)
        rc = unpack_end(&u);
    int why = errno;
    unpack_drop(&u);
    close(to);
    return rc == 0 ? 0 : why;
}

static void a_tree_comes_back_as_it_was(void **state)
{
    unsigned before = open_fds();
    in("mkdir -p t/empty t/$(printf 'n%%.0s' $(seq 200))/$(printf 'm%%.0s' $(seq 200)); head -c 100000 /dev/urandom "
       "> t/big; : > t/none; "
       "ln -s ../t/big t/link; echo x > \"t/a b\"; printf y > \"t/$(printf '\\377\\nq')\"; chmod 750 \"t/a b\"; "
       "mkfifo t/fifo; "
       "echo deep > t/$(printf 'n%%.0s' $(seq 200))/$(printf 'm%%.0s' $(seq 200))/f; touch -d 2001-02-03 t/none");
    assert_int_equal(pack_of("t", UINT64_MAX), 0);
    for (size_t piece = 7; piece < 100000; piece *= 50) {
        assert_int_equal(unpack_to("back/again", false, piece), 0);
        in("rm -f t/fifo; diff -r --no-dereference t back/again && test $(stat -c %%a \"back/again/a b\") = 750 && "
           "test $(date -r back/again/none +%%Y) = 2001 && rm -r back");
    }
    size_t all = nstream;
    assert_int_equal(pack_of("t", all - 1), EFBIG);
    assert_int_equal(pack_of("t", 0), EFBIG);
    in("truncate -s 100G t/empty/holes");
    assert_int_equal(pack_of("t/empty", 1 << 20), EFBIG);
    assert_int_equal(nstream, 0);
    assert_int_equal(open_fds(), before);
}

static void tar_itself_reads_and_writes_the_same(void **state)
{
    char line[256];
    in("mkdir -p t/a/b; echo 1 > t/a/b/1; ln t/a/b/1 t/hard; ln -s b t/a/l; : > t/$(printf 'n%%.0s' $(seq 150))");
    assert_int_equal(pack_of("t", UINT64_MAX), 0);
    (void)snprintf(line, sizeof(line), "cd %s/in && mkdir x && tar -xf - -C x && diff -r --no-dereference t x", top);
    FILE *f = popen(line, "w");
    assert_int_equal(fwrite(stream, 1, nstream, f), nstream);
    assert_int_equal(pclose(f), 0);
    static const char *const formats[] = {"gnu", "ustar", "pax"};
    for (int i = 0; i < 3; i++) {
        (void)snprintf(line, sizeof(line), "tar -C %s/in/t --format=%s%s -cf - .", top, formats[i],
                       i == 1 ? " --exclude='nnn*'" : "");
        f = popen(line, "r");
        nstream = fread(stream, 1, sizeof(stream), f);
        (void)pclose(f);
        assert_int_equal(unpack_to("y", false, 1000), 0);
        in("test $(stat -c %%h y/hard) = 2 && diff -r --no-dereference %s t y && rm -r y", i == 1 ? "-x 'nnn*'" : "");
    }
}

/* --- hostile streams ------------------------------------------------------------------------ */

static void add(enum tar_type type, const char *name, const char *target, const char *content)
{
    static struct tar_member m;
    memset(&m, 0, sizeof(m));
    m.type = type;
    m.mode = type == TAR_FOLDER ? 0755 : 06755;
    m.size = type == TAR_FILE ? strlen(content) : 0;
    (void)snprintf(m.name, sizeof(m.name), "%s", name);
    (void)snprintf(m.target, sizeof(m.target), "%s", target);
    nstream += tar_head(stream + nstream, &m);
    memset(stream + nstream, 0, 4 * TAR_BLOCK);
    memcpy(stream + nstream, content, strlen(content));
    nstream += strlen(content) + tar_pad(strlen(content));
}

static void done(void)
{
    memset(stream + nstream, 0, 2 * TAR_BLOCK);
    nstream += 2 * TAR_BLOCK;
}

static void what_is_unpacked_stays_in_its_folder(void **state)
{
    static const char *const ways[][2] = {{"l", "../.."}, {"l", ".."}, {"l", "/tmp"}};
    for (int outside = 0; outside < 2; outside++)
        for (size_t i = 0; i < 3; i++) {
            nstream = 0;
            add(TAR_LINK, ways[i][0], ways[i][1], "");
            add(TAR_FILE, "l/planted", "", "bad");
            done();
            (void)unpack_to("x", outside, 512);
            in("test ! -e ../planted && test ! -e planted && test ! -e /tmp/planted && rm -r x");
        }
    nstream = 0; /* written through a link, or over one */
    add(TAR_LINK, "l", "../../secret", "");
    add(TAR_FILE, "l", "", "bad");
    done();
    assert_int_equal(unpack_to("x", false, 512), 0);
    in("test $(cat ../secret) = secret && test $(cat x/l) = bad && test $(stat -c %%a x/l) = 755 && rm -r x");
    nstream = 0; /* a hard link to what is not beneath */
    add(TAR_LINK, "l", "../..", "");
    add(TAR_HARD_LINK, "h", "l/secret", "");
    done();
    assert_int_not_equal(unpack_to("x", false, 512), 0);
    in("test ! -e x/h && rm -r x");
    covers("G14");
}

static void of_a_stream_from_inside_no_link_leads_out(void **state)
{
    static const char *const bad[] = {"..",      "../..", "../../a",   "/etc/passwd", "/",
                                      "a/../..", "a/..",  "./../../x", "d/up/.."};
    static const char *const good[] = {"../a", "..", "d", "./d", "d/e"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        nstream = 0;
        add(TAR_LINK, "l", bad[i], "");
        done();
        assert_int_equal(unpack_to("x", true, 512), 0);
        assert_int_equal(u.left_out, 1);
        in("test ! -L x/l && rm -r x");
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        nstream = 0;
        add(TAR_LINK, "one/l", good[i], "");
        done();
        assert_int_equal(unpack_to("x", true, 512), 0);
        assert_int_equal(u.left_out, 0);
        in("test -L x/one/l && rm -r x");
    }
    nstream = 0; /* made where it stays inside, and once more where it does not */
    add(TAR_FOLDER, "a/b", "", "");
    add(TAR_FILE, "a/f", "", "content");
    add(TAR_LINK, "a/b/up", "../..", "");
    add(TAR_HARD_LINK, "esc", "a/b/up", "");
    add(TAR_HARD_LINK, "same", "a/f", "");
    done();
    assert_int_equal(unpack_to("x", true, 512), 0);
    assert_int_equal(u.left_out, 1);
    in("test ! -L x/esc && test $(readlink x/a/b/up) = ../.. && test $(cat x/same) = content && rm -r x");
    nstream = 0; /* several of them together: nothing is made below a link */
    add(TAR_FOLDER, "a/b/c", "", "");
    add(TAR_LINK, "a/b/c/up", "../..", "");
    add(TAR_LINK, "a/b/c/up/l", "../..", "");
    done();
    assert_int_not_equal(unpack_to("x", true, 512), 0);
    in("test ! -L x/a/l && rm -r x");
    nstream = 0; /* nor through one that is there already */
    in("mkdir x; ln -s ../d x/mine");
    add(TAR_FILE, "mine/planted", "", "bad");
    done();
    assert_int_not_equal(unpack_to("x", true, 512), 0);
    in("test ! -e d/planted && rm -r x");
    covers("G14");
}

static void what_is_cut_short_is_an_error(void **state)
{
    nstream = 0;
    add(TAR_FILE, "f", "", "content");
    size_t all = nstream;
    for (size_t n = 0; n <= all; n += 100) {
        nstream = n;
        assert_int_equal(unpack_to("x", false, 512), EBADMSG);
        assert_non_null(u.why);
    }
    done();
}

/* Another process makes a folder a link to outside, and a folder again, all the time. */
static void a_swapped_link_leads_nowhere(void **state)
{
    char from[128], to[128];
    unsigned inside = 0;
    in("mkdir -p swap; echo inside > swap/secret; ln -s .. link");
    (void)snprintf(from, sizeof(from), "%s/in/swap", top);
    (void)snprintf(to, sizeof(to), "%s/in/link", top);
    pid_t other = fork();
    if (other == 0)
        for (;;)
            (void)renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE);
    for (int i = 0; i < 20000; i++) {
        char got[16] = "";
        int fd = beneath_open(root, "swap/secret", O_RDONLY, 0, true);
        if (fd < 0)
            continue;
        assert_true(read(fd, got, sizeof(got) - 1) > 0);
        assert_string_equal(got, "inside\n");
        inside++;
        close(fd);
        if (i % 20 == 0) {
            struct place p;
            int dir = place_find(root, "swap/planted", true, &p);
            int file = dir == 0 ? place_make(&p) : -1;
            if (file >= 0) {
                (void)place_put(&p, file);
                close(file);
            }
            place_close(&p);
        }
    }
    (void)kill(other, SIGKILL);
    assert_int_equal(waitpid(other, NULL, 0), other);
    assert_true(inside > 0);
    in("test ! -e ../planted && test $(cat ../secret) = secret");
    covers("G14");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, finish)
    const struct CMUnitTest tests[] = {
        TEST(no_name_leads_out),
        TEST(a_file_has_its_name_at_once_and_no_link_is_written_through),
        TEST(a_tree_goes_however_deep_and_nothing_else),
        TEST(folders_are_made_beneath),
        TEST(a_tree_comes_back_as_it_was),
        TEST(tar_itself_reads_and_writes_the_same),
        TEST(what_is_unpacked_stays_in_its_folder),
        TEST(of_a_stream_from_inside_no_link_leads_out),
        TEST(what_is_cut_short_is_an_error),
        TEST(a_swapped_link_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
