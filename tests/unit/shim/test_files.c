/* What the first process of a sandbox does with the files of its workspace when it is told to, and how it ends its
 * commands: the real one, told by the warden's own words. Attack G14. */
#include "tests/kit.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox-shim/warden/talk.h"

struct shim {
    pid_t pid;
    int fd;
    char out[1 << 16]; /* what the last one said, and a NUL */
    size_t nout;
};

static char folder[] = "/tmp/test_files.XXXXXX";

static int begin(void **state)
{
    static struct shim s;
    char program[PATH_MAX];
    const struct timeval patience = {.tv_sec = 20};
    int fd[2];
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    if (!realpath("countersign-shim", program) || !mkdtemp(folder) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0 ||
        setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0)
        return -1;
    s.pid = fork();
    if (s.pid == 0) {
        if (dup2(fd[1], 9) == 9 && chdir(folder) == 0)
            execl(program, "countersign-shim", "--warden", "9", NULL);
        _exit(1);
    }
    close(fd[1]);
    s.fd = fd[0];
    *state = &s;
    return 0;
}

static int finish(void **state)
{
    const struct shim *s = *state;
    char line[128];
    close(s->fd);
    (void)waitpid(s->pid, NULL, 0);
    (void)snprintf(line, sizeof(line), "rm -rf %s", folder);
    return system(line);
}

static void tell(const struct shim *s, struct dynbuf *b)
{
    assert_int_equal(send(s->fd, b->p, b->n, MSG_NOSIGNAL), b->n);
    dynbuf_reset(b);
}

/* Told so, its errno must be this. whole, of a file that is written: it has content. */
static void does(struct shim *s, enum talk_file what, const char *path, const char *other, bool whole, uint64_t most,
                 unsigned why)
{
    static uint32_t run;
    const struct talk_files f = {what, TALK_MODE_NONE, whole, 0, most, span_str(path), span_str(other)};
    struct dynbuf b;
    struct talk t = {0};
    size_t used;
    dynbuf_init(&b, 1 << 18);
    assert_int_equal(talk_put_files(&b, ++run, &f), 0);
    if (what == TALK_FILE_WRITE && whole)
        assert_int_equal(talk_put_input(&b, run, SPAN("content")), 0);
    if (what == TALK_FILE_WRITE)
        assert_int_equal(talk_put_input(&b, run, SPAN_NONE), 0);
    tell(s, &b);
    for (s->nout = 0; t.type != TALK_END;) {
        enum talk_got got = talk_take(dynbuf_span(&b), &t, &used);
        assert_int_not_equal(got, TALK_BAD);
        if (got == TALK_MORE) {
            uint8_t *room = dynbuf_room(&b, 65536);
            ssize_t n = recv(s->fd, room, 65536, 0);
            assert_true(n > 0);
            dynbuf_grew(&b, (size_t)n);
            continue;
        }
        if (t.type == TALK_OUT) {
            assert_true(s->nout + t.bytes.n < sizeof(s->out));
            memcpy(s->out + s->nout, t.bytes.p, t.bytes.n);
            s->nout += t.bytes.n;
        }
        if (t.type != TALK_END)
            dynbuf_drop(&b, used);
    }
    s->out[s->nout] = '\0';
    assert_int_equal(t.run, run);
    assert_int_equal(t.how, TALK_EXITED);
    if (t.code != why)
        fail_msg("%d of %s: %u and not %u", what, path, t.code, why);
    dynbuf_free(&b);
}

static bool said(const struct shim *s, const char *what, size_t n)
{
    return memmem(s->out, s->nout, what, n) != NULL;
}

static void files_are_those_of_its_workspace(void **state)
{
    char path[128], line[256];
    struct shim *s = *state;
    does(s, TALK_FILE_MKDIR, "a/b", "", true, 0, 0);
    does(s, TALK_FILE_MKDIR, "a/b", "", true, 0, 0);
    does(s, TALK_FILE_MKDIR, "a/b", "", false, 0, EEXIST);
    does(s, TALK_FILE_WRITE, "a/f", "", true, 0, 0);
    does(s, TALK_FILE_READ, "a/f", "", true, 100, 0);
    assert_string_equal(s->out, "content");
    (void)snprintf(path, sizeof(path), "%s/a/f", folder);
    does(s, TALK_FILE_READ, path, "", true, 100, 0);
    assert_string_equal(s->out, "content");
    does(s, TALK_FILE_READ, "a/f", "", true, 6, EFBIG);
    does(s, TALK_FILE_READ, "a/f", "", false, 4, 0);
    assert_string_equal(s->out, "cont");
    does(s, TALK_FILE_READ, "a", "", true, 100, EISDIR);
    does(s, TALK_FILE_READ, "none", "", true, 100, ENOENT);
    does(s, TALK_FILE_READ, "/etc/passwd", "", true, 100, EXDEV);
    does(s, TALK_FILE_READ, "../../etc/passwd", "", true, 100, EXDEV);
    does(s, TALK_FILE_WRITE, "a/empty", "", false, 0, 0);
    does(s, TALK_FILE_READ, "a/empty", "", true, 0, 0);
    does(s, TALK_FILE_WRITE, "a", "", true, 0, EISDIR);
    does(s, TALK_FILE_WRITE, ".", "", true, 0, EBUSY);
    does(s, TALK_FILE_STAT, "a/f", "", false, 0, 0);
    assert_true(said(s, "f\1\244\0\0\0\0\0\0\0\7", 11) && s->nout == 27);
    does(s, TALK_FILE_STAT, ".", "", false, 0, 0);
    assert_true(s->out[0] == 'd');
    does(s, TALK_FILE_LIST, "a", "", false, 2, 0);
    assert_true(said(s, "\0\0\0\1b", 5) && said(s, "empty", 5) && !said(s, "\0\0\0\1f", 5));
    assert_true(s->out[s->nout - 2] == 0 && s->out[s->nout - 1] == 1);
    does(s, TALK_FILE_LIST, "a", "empty", false, 2, 0);
    assert_true(said(s, "\0\0\0\1f", 5) && !said(s, "empty", 5) && s->out[s->nout - 1] == 0);
    does(s, TALK_FILE_MOVE, "a/f", "a/empty", false, 0, EEXIST);
    does(s, TALK_FILE_MOVE, "a/f", "a/empty", true, 0, 0);
    does(s, TALK_FILE_READ, "a/empty", "", true, 100, 0);
    assert_string_equal(s->out, "content");
    does(s, TALK_FILE_MOVE, "a/empty", "../x", false, 0, EXDEV);
    does(s, TALK_FILE_REMOVE, "a", "", false, 0, ENOTEMPTY);
    does(s, TALK_FILE_PACK, "a", "", false, 1 << 20, 0);
    assert_true(said(s, "ustar", 5) && s->nout == 5 * 512);
    does(s, TALK_FILE_PACK, "a", "", false, 1000, EFBIG);
    does(s, TALK_FILE_REMOVE, "a", "", true, 0, 0);
    does(s, TALK_FILE_REMOVE, ".", "", true, 0, EBUSY);
    (void)snprintf(line, sizeof(line), "ln -s / %s/l && mkfifo %s/p && test $(ls -A %s | wc -l) = 2", folder, folder,
                   folder);
    assert_int_equal(system(line), 0);
    does(s, TALK_FILE_READ, "l/etc/passwd", "", true, 100, EXDEV);
    does(s, TALK_FILE_READ, "p", "", true, 100, EINVAL); /* nobody is waited for */
    covers("G14");
}

static void what_files_are_asked_for_has_its_bounds(void **state)
{
    static char path[TALK_PATH_MAX + 2];
    struct dynbuf b;
    memset(path, 'a', TALK_PATH_MAX + 1);
    const struct talk_files bad[] = {
        {TALK_FILE_NONE, 0, false, 0, 0, SPAN("a"), SPAN_NONE},
        {TALK_FILE_KINDS, 0, false, 0, 0, SPAN("a"), SPAN_NONE},
        {TALK_FILE_READ, 01000, false, 0, 0, SPAN("a"), SPAN_NONE},
        {TALK_FILE_READ, 0, false, 0, 0, SPAN_NONE, SPAN_NONE},
        {TALK_FILE_READ, 0, false, 0, 0, SPAN("a\0b"), SPAN_NONE},
        {TALK_FILE_MOVE, 0, false, 0, 0, SPAN("a"), SPAN("a\0b")},
        {TALK_FILE_MOVE, 0, false, 0, 0, SPAN("a"), span_str(path)},
        {TALK_FILE_READ, 0, false, 0, 0, span_str(path), SPAN_NONE},
    };
    dynbuf_init(&b, 1 << 16);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(talk_put_files(&b, 1, &bad[i]), -1);
    assert_int_equal(b.n, 0);
    dynbuf_free(&b);
}

/* The next thing that is said; `b` keeps what comes behind it, and is emptied of the one before by `used`. */
static struct talk next(const struct shim *s, struct dynbuf *b, size_t *used)
{
    struct talk t;
    dynbuf_drop(b, *used);
    for (;;) {
        enum talk_got got = talk_take(dynbuf_span(b), &t, used);
        assert_int_not_equal(got, TALK_BAD);
        if (got == TALK_FRAME)
            return t;
        uint8_t *room = dynbuf_room(b, 65536);
        ssize_t n = recv(s->fd, room, 65536, 0);
        assert_true(n > 0);
        dynbuf_grew(b, (size_t)n);
    }
}

/* The process whose number it wrote into this file of its folder is gone, or nobody's but whoever inherited it. */
static bool gone(const char *name)
{
    char line[256];
    (void)snprintf(line, sizeof(line),
                   "cd %s && p=$(cat %s 2>/dev/null) && ! grep -q '^State:[^Z]*$' /proc/$p/status 2>/dev/null",
                   folder, name);
    return system(line) == 0;
}

/* It writes faster than is read, and its output never runs empty: the end of the command itself is said all the
 * same, and behind it nothing. Until then a signal reaches what was left. */
static void what_a_command_leaves_behind_does_not_hold_its_end(void **state)
{
    enum { SLOW = 4096, MUCH = 64 * 1024 * 1024 };
    struct shim *s = *state;
    char line[128];
    for (uint32_t run = 1; run <= 2; run++) {
        const struct span words[] = {
            SPAN("sh"), SPAN("-c"),
            SPAN("rm -f go; yes & echo $! >left; echo $$ >sh; until test -e go; do sleep 0.02; done; exit 3")};
        const struct talk_command c = {.arg = words, .nargs = 3, .dir = span_str(folder)};
        uint64_t all = 0;
        size_t used = 0;
        struct dynbuf b, out;
        struct talk t = {0};
        dynbuf_init(&b, 1 << 18);
        dynbuf_init(&out, 1 << 18);
        assert_int_equal(talk_put_run(&out, run, &c), 0);
        tell(s, &out);
        while (all < TALK_WINDOW) {
            t = next(s, &b, &used);
            all += t.type == TALK_OUT ? t.bytes.n : 0;
        }
        assert_int_equal(all, TALK_WINDOW); /* it waits for credit */
        (void)snprintf(line, sizeof(line), "touch %s/go", folder);
        assert_int_equal(system(line), 0);
        while (!gone("sh"))
            ;
        assert_false(gone("left"));
        if (run == 2) {
            assert_int_equal(talk_put_signal(&out, run, SIGKILL), 0);
            tell(s, &out);
            while (!gone("left"))
                ;
        }
        for (all = 0; t.type != TALK_END && all < MUCH; all += t.type == TALK_OUT ? t.bytes.n : 0) {
            assert_int_equal(talk_put_credit(&out, run, SLOW), 0);
            tell(s, &out);
            t = next(s, &b, &used);
        }
        assert_true(t.type == TALK_END && t.how == TALK_EXITED && t.code == 3);
        assert_true(all <= 1 << 20); /* no more than a pipe can have held */
        dynbuf_free(&b);
        dynbuf_free(&out);
    }
}

/* --- a folder that is watched ---------------------------------------------------------- */

enum { WATCH = 1000 /* its run */ };

struct listening {
    struct dynbuf in, text; /* text: what was said of it */
    size_t used;
    struct talk end;
};

static void in_folder(const char *command)
{
    char line[1024];
    (void)snprintf(line, sizeof(line), "cd %s && %s", folder, command);
    assert_int_equal(system(line), 0);
}

static bool has(const struct listening *l, const char *what)
{
    return span_find(dynbuf_span(&l->text), span_str(what)) < l->text.n;
}

/* Until it has this, or (NULL) has ended. */
static void hear(const struct shim *s, struct listening *l, const char *until)
{
    struct dynbuf b;
    dynbuf_init(&b, 64);
    while (until ? !has(l, until) : l->end.type != TALK_END) {
        struct talk t = next(s, &l->in, &l->used);
        if (t.run != WATCH)
            continue;
        if (t.type == TALK_OUT) {
            assert_int_equal(dynbuf_add(&l->text, t.bytes), 0);
            assert_int_equal(talk_put_credit(&b, WATCH, (uint32_t)t.bytes.n), 0);
            tell(s, &b);
        } else {
            l->end = t;
            assert_true(t.type == TALK_END);
        }
    }
    dynbuf_free(&b);
}

static void listen_to(struct shim *s, struct listening *l, const char *path, bool deep)
{
    const struct talk_files f = {TALK_FILE_WATCH, TALK_MODE_NONE, deep, 0, 1 << 20, span_str(path), SPAN_NONE};
    struct dynbuf b;
    *l = (struct listening){.used = 0};
    dynbuf_init(&l->in, 1 << 18);
    dynbuf_init(&l->text, 1 << 24);
    dynbuf_init(&b, 1 << 16);
    assert_int_equal(talk_put_files(&b, WATCH, &f), 0);
    tell(s, &b);
    dynbuf_free(&b);
}

static void listened(struct listening *l)
{
    dynbuf_free(&l->in);
    dynbuf_free(&l->text);
}

/* As one of the shim's own: a whole file, put into its place. */
static void put_file(const struct shim *s, struct listening *l, const char *path, uint32_t run)
{
    const struct talk_files f = {TALK_FILE_WRITE, TALK_MODE_NONE, false, 0, 0, span_str(path), SPAN_NONE};
    struct dynbuf b;
    struct talk t = {0};
    dynbuf_init(&b, 1 << 16);
    assert_true(talk_put_files(&b, run, &f) == 0 && talk_put_input(&b, run, SPAN("content")) == 0 &&
                talk_put_input(&b, run, SPAN_NONE) == 0);
    tell(s, &b);
    while (t.type != TALK_END || t.run != run) {
        t = next(s, &l->in, &l->used);
        if (t.run == WATCH)
            assert_int_equal(dynbuf_add(&l->text, t.bytes), 0);
    }
    dynbuf_free(&b);
}

static void what_changes_in_a_folder_is_said(void **state)
{
    struct shim *s = *state;
    struct listening l;
    in_folder("mkdir -p d/below/deep other && echo x >d/old && ln -s / d/out");
    listen_to(s, &l, "d", true);
    hear(s, &l, "watches \n");
    assert_true(span_eq(dynbuf_span(&l.text), SPAN("watches \n")));
    in_folder(
        "echo y >d/new && mv d/new d/moved && rm d/moved && chmod 600 d/old && echo z >>d/old && echo >'d/a b%'");
    hear(s, &l, "created a%20b%25\n");
    assert_true(
        has(&l, "created new\nwritten new\nrenamed new\ncreated moved\nremoved moved\nmode old\nwritten old\n"));
    in_folder("echo >d/below/deep/x && mkdir d/fresh"); /* also in folders that came later */
    hear(s, &l, "created fresh\n");
    assert_true(has(&l, "created below/deep/x\nwritten below/deep/x\n"));
    in_folder("echo >d/fresh/in && mv d/fresh d/below/named && echo >d/below/named/in2");
    hear(s, &l, "created below/named/in2\n");
    assert_true(has(&l, "created fresh/in\n") && has(&l, "renamed fresh\ncreated below/named\n"));
    assert_true(has(&l, "created below/named/in\n"));
    in_folder("mv d/below gone && echo >gone/deep/unheard && echo >d/last"); /* and not in what is elsewhere now */
    hear(s, &l, "created last\n");
    assert_true(has(&l, "renamed below\n") && !has(&l, "unheard"));
    put_file(s, &l, "d/put", 1001);
    put_file(s, &l, "d/put", 1002);
    hear(s, &l, "written put\n");
    assert_true(has(&l, "created put\nwritten put\n") && !has(&l, "countersign") && !has(&l, "%23"));
    in_folder("rm -r d");
    hear(s, &l, NULL);
    assert_true(l.end.how == TALK_EXITED && l.end.code == 0 && has(&l, "removed old\n") && has(&l, "removed .\n"));
    listened(&l);
    covers("G14");
}

static void a_folder_alone_is_watched_without_those_below(void **state)
{
    struct shim *s = *state;
    struct listening l;
    in_folder("mkdir -p d/below && echo >f");
    listen_to(s, &l, "d", false);
    hear(s, &l, "watches \n");
    in_folder("echo >d/below/unheard && echo >d/heard");
    hear(s, &l, "created heard\n");
    assert_false(has(&l, "unheard"));
    in_folder("mv d e");
    hear(s, &l, NULL);
    assert_true(has(&l, "renamed .\n"));
    listened(&l);
    does(s, TALK_FILE_WATCH, "none", "", false, 0, ENOENT);
    does(s, TALK_FILE_WATCH, "f", "", false, 0, ENOTDIR);
    does(s, TALK_FILE_WATCH, "/etc", "", false, 0, EXDEV);
    does(s, TALK_FILE_WATCH, "../", "", true, 0, EXDEV);
    covers("G14");
}

/* Nobody reads it: the kernel keeps so much, and that there was more is said. */
static void what_was_missed_is_said(void **state)
{
    enum { MANY = 40000 };
    struct shim *s = *state;
    struct listening l;
    char name[2][256];
    in_folder("mkdir d");
    listen_to(s, &l, "d", false);
    hear(s, &l, "watches \n");
    for (int i = 0; i < 2; i++) {
        (void)snprintf(name[i], sizeof(name[i]), "%s/d/%0200d", folder, i);
    }
    FILE *f = fopen(name[0], "we");
    assert_non_null(f);
    (void)fclose(f);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(rename(name[i & 1], name[1 - (i & 1)]), 0);
    hear(s, &l, NULL);
    assert_true(l.end.how == TALK_EXITED && l.end.code == 0);
    assert_true(span_ends(dynbuf_span(&l.text), SPAN("missed \n")));
    listened(&l);
}

static void so_many_folders_are_watched_as_one(void **state)
{
    struct shim *s = *state;
    struct listening l;
    char line[128];
    (void)snprintf(line, sizeof(line), "mkdir d && cd d && seq %d | xargs mkdir", TALK_WATCH_FOLDERS);
    in_folder(line);
    does(s, TALK_FILE_WATCH, "d", "", true, 0, EUSERS);
    in_folder("rmdir d/1"); /* it is one of them itself */
    listen_to(s, &l, "d", true);
    hear(s, &l, "watches \n");
    in_folder("mkdir d/1"); /* one more than may be */
    hear(s, &l, NULL);
    assert_true(has(&l, "missed \n"));
    listened(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_those_of_its_workspace, begin, finish),
        cmocka_unit_test_setup_teardown(what_a_command_leaves_behind_does_not_hold_its_end, begin, finish),
        cmocka_unit_test(what_files_are_asked_for_has_its_bounds),
        cmocka_unit_test_setup_teardown(what_changes_in_a_folder_is_said, begin, finish),
        cmocka_unit_test_setup_teardown(a_folder_alone_is_watched_without_those_below, begin, finish),
        cmocka_unit_test_setup_teardown(what_was_missed_is_said, begin, finish),
        cmocka_unit_test_setup_teardown(so_many_folders_are_watched_as_one, begin, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
