/* What the first process of a sandbox says: taken apart, refused when it is anything else; and the real one, told
 * what to run. Attacks G16, G20. */
#include "tests/kit.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/msg.h"
#include "sandbox-shim/warden/talk.h"

/* --- its words ------------------------------------------------------------------ */

static struct dynbuf frame(unsigned type, uint32_t run, struct span payload)
{
    struct dynbuf b;
    dynbuf_init(&b, 1 << 20);
    msg_put_u32(&b, (uint32_t)payload.n);
    msg_put_u8(&b, (uint8_t)type);
    msg_put_u32(&b, run);
    (void)dynbuf_add(&b, payload);
    return b;
}

static enum talk_got taken(unsigned type, uint32_t run, struct span payload)
{
    struct dynbuf b = frame(type, run, payload);
    struct talk t;
    size_t used;
    enum talk_got got = talk_take(dynbuf_span(&b), &t, &used);
    dynbuf_free(&b);
    return got;
}

static enum talk_got end_taken(unsigned how, unsigned code, const char *why, size_t cut)
{
    struct dynbuf p;
    dynbuf_init(&p, 4096);
    msg_put_u8(&p, (uint8_t)how);
    msg_put_u8(&p, (uint8_t)code);
    for (int i = 0; i < 3; i++)
        msg_put_u64(&p, 7);
    msg_put_span(&p, span_str(why));
    enum talk_got got = taken(TALK_END, 1, span_first(dynbuf_span(&p), p.n - cut));
    dynbuf_free(&p);
    return got;
}

static void what_has_no_shape_of_ours_is_refused(void **state)
{
    static uint8_t large[TALK_PIECE_MAX + 1];
    char why[TALK_WHY_MAX + 2];
    assert_int_equal(taken(TALK_HELLO, 0, SPAN("\0\0\0\3")), TALK_FRAME);
    assert_int_equal(taken(TALK_HELLO, 0, SPAN("\0\0\0\1")), TALK_BAD); /* another version */
    assert_int_equal(taken(TALK_HELLO, 1, SPAN("\0\0\0\3")), TALK_BAD);
    assert_int_equal(taken(TALK_HELLO, 0, SPAN("\0\0\0\3\0")), TALK_BAD);
    assert_int_equal(taken(TALK_FED, 1, SPAN("\0\0\x80\0")), TALK_FRAME);
    assert_int_equal(taken(TALK_FED, 1, SPAN("\0\0\x80\1")), TALK_BAD);
    assert_int_equal(taken(TALK_FED, 1, SPAN("\0\0\0\0")), TALK_BAD);
    assert_int_equal(taken(TALK_FED, 1, SPAN("\0\0\1")), TALK_BAD);
    assert_int_equal(taken(TALK_FED, 0, SPAN("\0\0\0\1")), TALK_BAD);
    assert_int_equal(taken(TALK_OUT, 1, SPAN("x")), TALK_FRAME);
    assert_int_equal(taken(TALK_OUT, 0, SPAN("x")), TALK_BAD);
    assert_int_equal(taken(TALK_OUT, 1, SPAN_NONE), TALK_BAD); /* nothing, for ever, would cost time for ever */
    assert_int_equal(taken(TALK_ERR, 1, span_of(large, TALK_PIECE_MAX)), TALK_FRAME);
    assert_int_equal(taken(TALK_ERR, 1, span_of(large, TALK_PIECE_MAX + 1)), TALK_BAD);
    for (unsigned type = 0; type < 256; type++) /* also what only we may say */
        if (type != TALK_HELLO && type != TALK_OUT && type != TALK_ERR && type != TALK_END)
            assert_int_equal(taken(type, 1, SPAN("xxxx")), TALK_BAD);
    assert_int_equal(end_taken(TALK_EXITED, 255, "", 0), TALK_FRAME);
    assert_int_equal(end_taken(TALK_SIGNALLED, 9, "", 0), TALK_FRAME);
    assert_int_equal(end_taken(TALK_SIGNALLED, 0, "", 0), TALK_BAD);
    assert_int_equal(end_taken(TALK_SIGNALLED, 65, "", 0), TALK_BAD);
    assert_int_equal(end_taken(TALK_LOST, 0, "", 0), TALK_BAD); /* that is ours to say */
    assert_int_equal(end_taken(4, 0, "", 0), TALK_BAD);
    assert_int_equal(end_taken(TALK_FAILED, 0, "", 0), TALK_BAD);
    assert_int_equal(end_taken(TALK_EXITED, 0, "words", 0), TALK_BAD);
    assert_int_equal(end_taken(TALK_EXITED, 0, "", 1), TALK_BAD);
    memset(why, 'w', sizeof(why));
    why[TALK_WHY_MAX] = '\0';
    assert_int_equal(end_taken(TALK_FAILED, 0, why, 0), TALK_FRAME);
    why[TALK_WHY_MAX] = 'w';
    why[TALK_WHY_MAX + 1] = '\0';
    assert_int_equal(end_taken(TALK_FAILED, 0, why, 0), TALK_BAD);
}

/* A frame that cannot become one is not waited for. */
static void a_frame_is_waited_for_no_longer_than_its_bound(void **state)
{
    struct dynbuf b = frame(TALK_OUT, 1, SPAN("hello"));
    struct talk t;
    size_t used = 0;
    for (size_t n = 0; n < b.n; n++)
        assert_int_equal(talk_take(span_first(dynbuf_span(&b), n), &t, &used), TALK_MORE);
    (void)dynbuf_add(&b, SPAN("more"));
    assert_int_equal(talk_take(dynbuf_span(&b), &t, &used), TALK_FRAME);
    assert_int_equal(used, TALK_HEAD + 5);
    assert_int_equal(t.run, 1);
    assert_true(span_eq(t.bytes, SPAN("hello")));
    assert_int_equal(talk_take(SPAN("\xff\xff\xff\xff\5\0\0\0\1"), &t, &used), TALK_BAD);
    assert_int_equal(talk_take(SPAN("\0\0\x80\1\5\0\0\0\1"), &t, &used), TALK_BAD);
    assert_int_equal(talk_take(SPAN("\0\0\x80\0\5\0\0\0\1"), &t, &used), TALK_MORE);
    dynbuf_free(&b);
}

static void what_cannot_be_run_is_not_said(void **state)
{
    static uint8_t large[TALK_PAYLOAD_MAX];
    static struct span many[TALK_WORDS_MAX];
    const struct span sh = SPAN("sh"), empty = SPAN_NONE, nul = SPAN("a\0b"), noname = SPAN("=x"), plain = SPAN("x"),
                      good = SPAN("A=b"), whole = span_of(large, sizeof(large));
    const struct {
        struct talk_command c;
        int rc;
    } rows[] = {
        {{&sh, &good, 1, 1, SPAN("/tmp"), TALK_NO_INPUT, 0, 0}, 0},
        {{&sh, NULL, 0, 0, SPAN_NONE, TALK_NO_INPUT, 0, 0}, -1},
        {{&empty, NULL, 1, 0, SPAN_NONE, TALK_NO_INPUT, 0, 0}, -1},
        {{&nul, NULL, 1, 0, SPAN_NONE, TALK_NO_INPUT, 0, 0}, -1},
        {{&sh, &noname, 1, 1, SPAN_NONE, TALK_NO_INPUT, 0, 0}, -1},
        {{&sh, &plain, 1, 1, SPAN_NONE, TALK_NO_INPUT, 0, 0}, -1},
        {{&sh, &nul, 1, 1, SPAN_NONE, TALK_NO_INPUT, 0, 0}, -1},
        {{&sh, NULL, 1, 0, SPAN("/a\0b"), TALK_NO_INPUT, 0, 0}, -1},
        {{&whole, NULL, 1, 0, SPAN_NONE, TALK_NO_INPUT, 0, 0}, -1},
        {{many, NULL, TALK_WORDS_MAX - 1, 0, SPAN_NONE, TALK_NO_INPUT, 0, 0}, -1},
        {{many, NULL, TALK_WORDS_MAX - 2, 0, SPAN_NONE, TALK_NO_INPUT, 0, 0}, 0},
        {{&sh, NULL, 1, 0, SPAN_NONE, TALK_TERMINAL, 24, 80}, 0},
        {{&sh, NULL, 1, 0, SPAN_NONE, TALK_TERMINAL, 0, 80}, -1},
        {{&sh, NULL, 1, 0, SPAN_NONE, TALK_TERMINAL, 24, 0}, -1},
        {{&sh, NULL, 1, 0, SPAN_NONE, TALK_PIPE, 24, 80}, -1},
        {{&sh, NULL, 1, 0, SPAN_NONE, (enum talk_input)3, 0, 0}, -1},
    };
    memset(large, 'a', sizeof(large));
    for (size_t i = 0; i < TALK_WORDS_MAX; i++)
        many[i] = sh;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct dynbuf b;
        dynbuf_init(&b, 1 << 20);
        assert_int_equal(talk_put_run(&b, 1, &rows[i].c), rows[i].rc);
        assert_int_equal(b.n != 0, rows[i].rc == 0);
        dynbuf_free(&b);
    }
    struct dynbuf b;
    dynbuf_init(&b, 64);
    assert_int_equal(talk_put_signal(&b, 1, 0), -1);
    assert_int_equal(talk_put_signal(&b, 1, 65), -1);
    assert_int_equal(talk_put_input(&b, 1, span_of(large, TALK_IN_WINDOW + 1)), -1);
    assert_int_equal(talk_put_size(&b, 1, 0, 80), -1);
    assert_int_equal(talk_put_size(&b, 1, 24, 0), -1);
    dynbuf_free(&b);
}

/* --- the real one ----------------------------------------------------------------- */

struct shim {
    pid_t pid;
    int fd;
    struct dynbuf in;
    char out[1 << 16], err[1 << 16]; /* what came, the first of it, as text */
    size_t nout, nerr;
    struct talk end;
    char why[TALK_WHY_MAX + 1];
};

static struct shim shim_start(void)
{
    struct shim s = {.fd = -1};
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    s.pid = fork();
    if (s.pid == 0) {
        if (dup2(fd[1], 9) == 9)
            execl("./countersign-shim", "countersign-shim", "--warden", "9", NULL);
        _exit(1);
    }
    close(fd[1]);
    s.fd = fd[0];
    dynbuf_init(&s.in, 1 << 20);
    return s;
}

static void shim_stop(struct shim *s)
{
    int status;
    close(s->fd);
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid); /* whatever it does at that moment */
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 125);
    dynbuf_free(&s->in);
}

static void tell(const struct shim *s, struct dynbuf *b)
{
    assert_int_equal(send(s->fd, b->p, b->n, MSG_NOSIGNAL), b->n);
    dynbuf_free(b);
}

static void run_with(const struct shim *s, uint32_t run, const char *script, const char *dir, enum talk_input input)
{
    const struct span arg[] = {SPAN("sh"), SPAN("-c"), span_str(script)}, variable = SPAN("GREETING=a b=c");
    const bool terminal = input == TALK_TERMINAL;
    struct dynbuf b;
    dynbuf_init(&b, 1 << 18);
    const struct talk_command c = {arg, &variable, 3, 1, span_str(dir), input, terminal ? 33 : 0, terminal ? 99 : 0};
    assert_int_equal(talk_put_run(&b, run, &c), 0);
    tell(s, &b);
}

static void run_in(const struct shim *s, uint32_t run, const char *script, const char *dir)
{
    run_with(s, run, script, dir, TALK_NO_INPUT);
}

static void input_to(const struct shim *s, uint32_t run, struct span bytes)
{
    struct dynbuf b;
    dynbuf_init(&b, TALK_HEAD + TALK_IN_WINDOW);
    assert_int_equal(talk_put_input(&b, run, bytes), 0);
    tell(s, &b);
}

static void signal_to(const struct shim *s, uint32_t run, unsigned signo)
{
    struct dynbuf b;
    dynbuf_init(&b, 64);
    assert_int_equal(talk_put_signal(&b, run, signo), 0);
    tell(s, &b);
}

static void credit_of(const struct shim *s, uint32_t run, uint32_t bytes)
{
    struct dynbuf b;
    dynbuf_init(&b, 64);
    assert_int_equal(talk_put_credit(&b, run, bytes), 0);
    tell(s, &b);
}

/* One frame; false: none comes within ms. */
static bool next(struct shim *s, struct talk *t, int ms)
{
    for (;;) {
        size_t used = 0;
        enum talk_got got = talk_take(dynbuf_span(&s->in), t, &used);
        assert_int_not_equal(got, TALK_BAD);
        if (got == TALK_FRAME) {
            char *to = t->type == TALK_OUT ? s->out : s->err;
            size_t *n = t->type == TALK_OUT ? &s->nout : &s->nerr;
            if ((t->type == TALK_OUT || t->type == TALK_ERR) && *n + t->bytes.n < sizeof(s->out)) {
                memcpy(to + *n, t->bytes.p, t->bytes.n);
                to[*n + t->bytes.n] = '\0';
            }
            if (t->type == TALK_OUT || t->type == TALK_ERR)
                *n += t->bytes.n;
            if (t->type == TALK_END)
                (void)snprintf(s->why, sizeof(s->why), "%.*s", SPAN_FMT(t->why));
            dynbuf_drop(&s->in, used);
            return true;
        }
        struct pollfd p = {s->fd, POLLIN, 0};
        if (poll(&p, 1, ms) <= 0)
            return false;
        uint8_t *room = dynbuf_room(&s->in, 65536);
        assert_non_null(room);
        ssize_t n = recv(s->fd, room, 65536, 0);
        assert_true(n > 0);
        dynbuf_grew(&s->in, (size_t)n);
    }
}

/* Until this run ends. */
static void ends(struct shim *s, uint32_t run)
{
    do
        assert_true(next(s, &s->end, 20000));
    while (s->end.type != TALK_END || s->end.run != run);
}

static void a_command_says_both_streams_apart_and_how_it_ended(void **state)
{
    struct shim s = shim_start();
    struct talk t;
    assert_true(next(&s, &t, 20000));
    assert_int_equal(t.type, TALK_HELLO);
    run_in(&s, 1, "echo out; echo err >&2; echo $GREETING; pwd; read x || echo no input; exit 3", "/usr");
    ends(&s, 1);
    assert_int_equal(s.end.how, TALK_EXITED);
    assert_int_equal(s.end.code, 3);
    assert_true(s.end.memory_kib > 0);
    assert_string_equal(s.out, "out\na b=c\n/usr\nno input\n");
    assert_string_equal(s.err, "err\n");
    run_in(&s, 2, "kill -KILL $$", "");
    ends(&s, 2);
    assert_int_equal(s.end.how, TALK_SIGNALLED);
    assert_int_equal(s.end.code, SIGKILL);
    run_in(&s, 3, "exec /no/such/program", "");
    ends(&s, 3);
    assert_int_equal(s.end.code, 127);
    run_in(&s, 4, "true", "/no/such/place");
    ends(&s, 4);
    assert_int_equal(s.end.code, 125);
    assert_non_null(strstr(s.err, "cannot enter /no/such/place"));
    shim_stop(&s);
}

/* What the command leaves behind holds its output open and is not waited for. */
static void a_signal_reaches_the_whole_group_and_what_is_left_behind_is_not_waited_for(void **state)
{
    struct shim s = shim_start();
    run_in(&s, 1, "trap '' TERM; echo deaf; sleep 600 | sleep 600", "");
    while (s.nout < strlen("deaf\n")) /* a signal before that would end it */
        assert_true(next(&s, &s.end, 20000));
    run_in(&s, 2, "sleep 600 & echo $!", "");
    ends(&s, 2);
    assert_int_equal(s.end.how, TALK_EXITED);
    pid_t left = (pid_t)strtol(s.out + strlen("deaf\n"), NULL, 10);
    assert_true(left > 1);
    assert_int_equal(kill(left, SIGKILL), 0); /* it lives; in a sandbox, until that ends */
    signal_to(&s, 1, SIGTERM);
    signal_to(&s, 7, SIGKILL); /* nobody's: not heard */
    assert_false(next(&s, &s.end, 100));
    signal_to(&s, 1, SIGKILL);
    ends(&s, 1);
    assert_int_equal(s.end.how, TALK_SIGNALLED);
    shim_stop(&s);
}

static void no_more_is_said_than_is_taken_and_all_of_it_comes(void **state)
{
    enum { ALL = 3000000 };
    struct shim s = shim_start();
    struct talk t;
    run_in(&s, 1, "head -c 3000000 /dev/zero", "");
    run_in(&s, 2, "echo neighbour", ""); /* is not held up by it */
    ends(&s, 2);
    while (s.nout < TALK_WINDOW + sizeof("neighbour"))
        assert_true(next(&s, &t, 20000));
    assert_false(next(&s, &t, 100));
    assert_int_equal(s.nout, TALK_WINDOW + sizeof("neighbour"));
    credit_of(&s, 1, TALK_WINDOW);
    do {
        assert_true(next(&s, &t, 20000));
        if (t.type == TALK_OUT)
            credit_of(&s, 1, (uint32_t)t.bytes.n);
    } while (t.type != TALK_END);
    assert_int_equal(s.nout, ALL + sizeof("neighbour"));
    shim_stop(&s);
}

static void what_was_written_before_its_end_is_said_before_it(void **state)
{
    struct shim s = shim_start();
    struct talk t;
    run_in(&s, 1, "head -c 300000 /dev/zero", "");
    while (s.nout < TALK_WINDOW) {
        assert_true(next(&s, &t, 20000));
        assert_int_not_equal(t.type, TALK_END);
    }
    assert_false(next(&s, &t, 300)); /* it has ended by now, or soon will */
    assert_int_equal(s.nout, TALK_WINDOW);
    credit_of(&s, 1, TALK_WINDOW);
    ends(&s, 1);
    assert_int_equal(s.nout, 300000);
    shim_stop(&s);
}

static void past_the_most_at_once_it_is_said_and_none_is_lost(void **state)
{
    struct shim s = shim_start();
    for (uint32_t i = 1; i <= TALK_RUNS_MAX; i++)
        run_in(&s, i, "sleep 600", "");
    run_in(&s, 1000, "true", "");
    ends(&s, 1000);
    assert_int_equal(s.end.how, TALK_FAILED);
    assert_non_null(strstr(s.why, "too many commands"));
    for (uint32_t i = 1; i <= TALK_RUNS_MAX; i++) {
        signal_to(&s, i, SIGKILL);
        ends(&s, i);
    }
    run_in(&s, 1001, "true", "");
    ends(&s, 1001);
    assert_int_equal(s.end.how, TALK_EXITED);
    shim_stop(&s);
}

/* So many bytes of input, and no more, are said to have been given. */
static void fed(struct shim *s, size_t bytes)
{
    struct talk t;
    for (size_t n = 0; n < bytes;) {
        assert_true(next(s, &t, 20000));
        n += t.type == TALK_FED ? t.fed : 0;
        assert_true(n <= bytes);
    }
}

static void what_a_command_reads_is_what_it_is_told(void **state)
{
    static uint8_t large[TALK_IN_WINDOW];
    struct shim s = shim_start();
    run_with(&s, 1, "cat; echo end", "", TALK_PIPE);
    input_to(&s, 1, SPAN("a\0"));
    input_to(&s, 1, SPAN("b"));
    fed(&s, 3);
    input_to(&s, 1, SPAN_NONE);
    ends(&s, 1);
    assert_int_equal(s.end.code, 0);
    assert_int_equal(s.nout, 7);
    assert_int_equal(memcmp(s.out, "a\0bend\n", 7), 0);
    run_with(&s, 2, "wc -c", "", TALK_PIPE);
    for (int i = 0; i < 8; i++) {
        input_to(&s, 2, span_of(large, sizeof(large)));
        fed(&s, sizeof(large));
    }
    input_to(&s, 2, SPAN_NONE);
    ends(&s, 2);
    assert_int_equal(memcmp(s.out + 7, "262144\n", 7), 0);
    input_to(&s, 2, SPAN("late")); /* to whom has ended: nobody's */
    shim_stop(&s);
}

/* What it does not read waits, here and not in the way of others; what it will never read is not waited for. */
static void who_does_not_read_its_input_holds_nobody_up(void **state)
{
    enum { PIPE = 64 * 1024 };
    static uint8_t large[TALK_IN_WINDOW];
    struct shim s = shim_start();
    struct talk t;
    assert_true(next(&s, &t, 20000));
    run_with(&s, 1, "sleep 600", "", TALK_PIPE);
    for (int i = 0; i < PIPE / TALK_IN_WINDOW; i++) {
        input_to(&s, 1, span_of(large, sizeof(large)));
        fed(&s, sizeof(large));
    }
    input_to(&s, 1, span_of(large, sizeof(large)));
    assert_false(next(&s, &t, 200));
    run_with(&s, 2, "exec 0<&-; echo closed; exec sleep 600", "", TALK_PIPE);
    while (s.nout == 0)
        assert_true(next(&s, &t, 20000));
    for (int i = 0; i < 3; i++) {
        input_to(&s, 2, span_of(large, sizeof(large)));
        fed(&s, sizeof(large));
    }
    for (uint32_t run = 1; run <= 2; run++) {
        signal_to(&s, run, SIGKILL);
        ends(&s, run);
    }
    shim_stop(&s);
}

static void size_of(const struct shim *s, uint32_t run, uint16_t rows, uint16_t columns)
{
    struct dynbuf b;
    dynbuf_init(&b, 64);
    assert_int_equal(talk_put_size(&b, run, rows, columns), 0);
    tell(s, &b);
}

/* These words are among what came of standard output, or will be. */
static void said(struct shim *s, const char *words)
{
    struct talk t;
    while (!strstr(s->out, words)) {
        assert_true(next(s, &t, 20000));
        assert_int_not_equal(t.type, TALK_END);
    }
}

/* One of its own, of the size that was said, which the kernel tells it changes of; keys are what they are to anybody.
 */
static void a_command_has_a_terminal_of_its_own(void **state)
{
    struct shim s = shim_start();
    run_with(&s, 1,
             "trap w=1 WINCH; trap i=1 INT; stty size; echo a $(tty | tr -d 0-9) >/dev/tty; "
             "until [ $w ]; do sleep 0.05; done; echo resized $(stty size); read x; echo got $x >&2; "
             "until [ $i ]; do sleep 0.05; done; echo interrupted; read y || echo end; exit 4",
             "", TALK_TERMINAL);
    said(&s, "33 99\r\na /dev/pts/\r\n");
    size_of(&s, 1, 44, 77);
    said(&s, "resized 44 77\r\n");
    input_to(&s, 1, SPAN("words\n"));
    said(&s, "words\r\ngot words\r\n");
    input_to(&s, 1, SPAN("half\3"));
    said(&s, "interrupted\r\n");
    input_to(&s, 1, SPAN("\4"));
    ends(&s, 1);
    assert_int_equal(s.end.how, TALK_EXITED);
    assert_int_equal(s.end.code, 4);
    assert_non_null(strstr(s.out, "end\r\n"));
    assert_int_equal(s.nerr, 0);
    size_of(&s, 1, 1, 1); /* to whom has ended: nobody's */
    run_in(&s, 2, "tty -s || echo no terminal; stty size || echo none; echo >/dev/tty || echo none at all", "");
    size_of(&s, 2, 1, 1); /* it has none */
    ends(&s, 2);
    assert_non_null(strstr(s.out, "no terminal\nnone\nnone at all\n"));
    shim_stop(&s);
}

/* It ends with its leader, whoever holds it open; and when nobody does any more, nobody waits for it. */
static void a_terminal_ends_with_its_command(void **state)
{
    struct shim s = shim_start();
    struct talk t;
    run_with(&s, 1, "trap '' HUP; sleep 600 & echo left $! here; exit 5", "", TALK_TERMINAL);
    ends(&s, 1);
    assert_int_equal(s.end.code, 5);
    const char *left = strstr(s.out, "left ");
    assert_non_null(left);
    assert_int_equal(kill((pid_t)strtol(left + 5, NULL, 10), SIGKILL), 0);
    run_with(&s, 2, "exec sleep 600", "", TALK_TERMINAL);
    signal_to(&s, 2, SIGKILL);
    ends(&s, 2);
    assert_int_equal(s.end.how, TALK_SIGNALLED);
    run_with(&s, 3, "trap '' HUP; exec 0<&- 1>&- 2>&-; echo back >/dev/tty; exec sleep 600", "", TALK_TERMINAL);
    input_to(&s, 3, SPAN("nobody reads it\n"));
    do
        assert_true(next(&s, &t, 20000));
    while (t.type != TALK_FED);
    signal_to(&s, 3, SIGKILL);
    ends(&s, 3);
    shim_stop(&s);
}

/* However much it says last, and however slowly that is read. */
static void what_is_said_at_a_terminal_comes_before_its_end(void **state)
{
    enum { ALL = 268894 };
    struct shim s = shim_start();
    struct talk t;
    run_with(&s, 1, "seq 40000; exit 3", "", TALK_TERMINAL);
    while (s.nout < TALK_WINDOW)
        assert_true(next(&s, &t, 20000));
    assert_false(next(&s, &t, 300));
    credit_of(&s, 1, TALK_WINDOW);
    ends(&s, 1);
    assert_int_equal(s.end.code, 3);
    assert_int_equal(s.nout, ALL);
    shim_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_shape_of_ours_is_refused),
        cmocka_unit_test(a_frame_is_waited_for_no_longer_than_its_bound),
        cmocka_unit_test(what_cannot_be_run_is_not_said),
        cmocka_unit_test(a_command_says_both_streams_apart_and_how_it_ended),
        cmocka_unit_test(a_signal_reaches_the_whole_group_and_what_is_left_behind_is_not_waited_for),
        cmocka_unit_test(no_more_is_said_than_is_taken_and_all_of_it_comes),
        cmocka_unit_test(what_was_written_before_its_end_is_said_before_it),
        cmocka_unit_test(what_a_command_reads_is_what_it_is_told),
        cmocka_unit_test(who_does_not_read_its_input_holds_nobody_up),
        cmocka_unit_test(a_command_has_a_terminal_of_its_own),
        cmocka_unit_test(a_terminal_ends_with_its_command),
        cmocka_unit_test(what_is_said_at_a_terminal_comes_before_its_end),
        cmocka_unit_test(past_the_most_at_once_it_is_said_and_none_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
