/* The lobby on a real loop: challenges, tokens, hand-overs, and those who fill it. */
#include "tests/play/lobby/lobby_kit.h"

#include "tests/play/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/id.h"

#define TOKEN "Basic YWdlbnQ6dG9rZW4tMQ==" /* agent:token-1 */
#define HEAD  "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n"
#define WITH  "Proxy-Authorization: " TOKEN "\r\n\r\n"

/* git and Java: nothing, 407, and again on the same connection. */
static void a_challenge_is_answered_on_the_same_connection(void **state)
{
    (void)state;
    for (int again = 0; again < 2; again++) {
        int fd = dial();
        for (int i = 0; i <= again; i++) {
            say(fd, HEAD "\r\n");
            const char *in = hear(fd, "\r\n\r\n");
            assert_string_equal(in, "HTTP/1.1 407 Proxy Authentication Required\r\n"
                                    "Proxy-Authenticate: Basic realm=\"countersign\"\r\nContent-Length: 0\r\n\r\n");
        }
        say(fd, HEAD WITH "\x16\x03\x01");
        answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-7");
        was_given("ci-7", TOKEN, HEAD WITH "\x16\x03\x01");
        /* The descriptor that was handed over is that connection. */
        assert_int_equal(write(s->given.fd, "hello", 5), 5);
        hear(fd, "hello");
        close(s->given.fd);
        close(fd);
        assert_int_equal(s->lobby.npending, 0);
    }
    covers("D32");
}

static void both_in_one_segment(void **state)
{
    int fd = dial();
    (void)state;
    say(fd, HEAD "\r\n" HEAD WITH);
    hear(fd, "407");
    answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-7");
    was_given("ci-7", TOKEN, HEAD WITH);
    close(s->given.fd);
    close(fd);
}

static void a_head_is_understood_at_every_split(void **state)
{
    static const char all[] = "CONNECT a.test:443 HTTP/1.0\r\n" WITH;
    char first[sizeof(all)];
    (void)state;
    for (size_t k = 0; k < sizeof(all) - 1; k++) {
        int fd = dial();
        memcpy(first, all, k);
        first[k] = '\0';
        say(fd, first);
        assert_int_equal(s->nasked, s->nseen);
        say(fd, all + k);
        answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-7");
        was_given("ci-7", TOKEN, all);
        close(s->given.fd);
        close(fd);
    }
    covers("A41");
}

static void who_will_not_say_is_sent_away(void **state)
{
    static const char *const heads[] = {
        "CONNECT a.test:443 HTTP/1.0\r\n\r\n", HEAD "Connection: close\r\n\r\n",
        "POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nHEAD ",
        HEAD "\r\n" HEAD "\r\n" HEAD "\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        int fd = dial();
        say(fd, heads[i]);
        const char *in = hear(fd, NULL);
        assert_non_null(strstr(in, "HTTP/1.1 407 "));
        assert_non_null(strstr(in, "Connection: close\r\n"));
        assert_non_null(strstr(in, "countersign sandbox create"));
        close(fd);
    }
    UNTIL(s->lobby.npending == 0);
    assert_int_equal(s->nasked, 0);
}

static void a_token_that_is_none_is_refused(void **state)
{
    static const char *const values[] = {"Basic",          "Basic ",   "Basic !!!!",           "Basic YWdlbnQ=",
                                         "Basic YWdlbnQ6", "Digest x", "YWdlbnQ6dG9rZW4tMQ==", "Bearer"};
    char head[1024];
    (void)state;
    for (size_t i = 0; i <= sizeof(values) / sizeof(values[0]); i++) {
        int fd = dial();
        if (i < sizeof(values) / sizeof(values[0]))
            snprintf(head, sizeof(head), HEAD "Proxy-Authorization: %s\r\n\r\n", values[i]);
        else /* one byte longer than any; its first bytes might be somebody's */
            snprintf(head, sizeof(head), HEAD "Proxy-Authorization: Bearer %0257d\r\n\r\n", 0);
        say(fd, head);
        assert_non_null(strstr(hear(fd, NULL), "HTTP/1.1 407 "));
        close(fd);
    }
    assert_int_equal(s->nasked, 0);
    int fd = dial();
    snprintf(head, sizeof(head), HEAD "Proxy-Authorization: Bearer %0256d\r\n\r\n", 0);
    say(fd, head);
    snprintf(head, sizeof(head), "%0256d", 0);
    answer(next_asked(head), IDENTITY_UNKNOWN, "");
    const char *in = hear(fd, NULL);
    assert_non_null(strstr(in, "HTTP/1.1 407 "));
    assert_null(strstr(in, "0000000")); /* nothing is reflected */
    close(fd);
    fd = dial();
    say(fd, HEAD WITH);
    answer(next_asked("token-1"), IDENTITY_KNOWN, ""); /* known, but nobody */
    hear(fd, "407");
    close(fd);
    assert_int_equal(s->ngiven, 0);
    covers("D32 D33");
}

static void what_is_no_request_is_refused(void **state)
{
    static const char *const heads[] = {"\x16\x03\x01",
                                        "\x05\x01",
                                        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                                        "CONNECT a.test:443 HTTP/1.1\r\nHost: b.test\r\n" WITH,
                                        HEAD "Proxy-Authorization: " TOKEN "\r\nProxy_Authorization: x\r\n\r\n",
                                        HEAD "Proxy-Authorization: " TOKEN "\r\n" WITH};
    (void)state;
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        int fd = dial();
        say(fd, heads[i]);
        assert_non_null(strstr(hear(fd, NULL), "HTTP/1.1 400 "));
        close(fd);
    }
    assert_int_equal(s->nasked, 0);
    covers("A25 A39 C1");
}

static void without_a_judge_it_is_said_so(void **state)
{
    (void)state;
    int fd = dial();
    say(fd, HEAD WITH);
    uint64_t id = next_asked("token-1");
    chan_free(&s->judge);
    hear(fd, "HTTP/1.1 503 ");
    close(fd);
    fd = dial();
    say(fd, HEAD WITH);
    hear(fd, "gateway-restarting");
    close(fd);
    new_judge();
    fd = dial();
    say(fd, HEAD WITH);
    uint64_t next = next_asked("token-1");
    assert_int_not_equal(id, next);
    answer(id, IDENTITY_KNOWN, "late");
    answer(0, IDENTITY_KNOWN, "nobody");
    assert_int_equal(s->ngiven, 0);
    answer(next, IDENTITY_KNOWN, "ci-7");
    was_given("ci-7", TOKEN, HEAD WITH);
    close(s->given.fd);
    close(fd);
    fd = dial();
    say(fd, HEAD WITH);
    answer(next_asked("token-1"), IDENTITY_LATER, ""); /* it was not told yet who there is: no token is bad by that */
    hear(fd, "HTTP/1.1 503 ");
    close(fd);
}

static void who_is_slow_is_sent_away(void **state)
{
    (void)state;
    s->lobby.limits.head_ms = 60;
    int slow = dial(), mute = dial(), asked = dial();
    say(asked, HEAD WITH);
    next_asked("token-1"); /* a judge that does not answer */
    uint64_t start = now_ms();
    while (s->lobby.npending == 3 && now_ms() < start + 5000) {
        if (write(slow, "C", 1) != 1)
            break;
        for (uint64_t until = now_ms() + 3; now_ms() < until;)
            turn();
    }
    assert_non_null(strstr(hear(slow, NULL), "HTTP/1.1 408 "));
    assert_string_equal(hear(mute, NULL), "");
    assert_non_null(strstr(hear(asked, NULL), "HTTP/1.1 503 "));
    close(slow);
    close(mute);
    close(asked);
    UNTIL(s->lobby.npending == 0);
    s->lobby.limits.close_ms = 20; /* words to who does not hang up */
    slow = dial();
    say(slow, "nonsense\r\n");
    hear(slow, "400");
    UNTIL(s->lobby.npending == 0);
    close(slow);
    covers("F1");
}

/* Those who only come to fill it drive out each other, not who has business here. */
static void a_full_lobby_still_serves(void **state)
{
    enum { MANY = 8, FLOOD = 60 };
    int flood[FLOOD];
    (void)state;
    s->lobby.limits.pending = MANY;
    int asked = dial();
    say(asked, HEAD WITH);
    uint64_t id = next_asked("token-1");
    for (int i = 0; i < FLOOD; i++) {
        flood[i] = dial();
        settle();
        if (i == MANY - 2)
            assert_int_equal(s->lobby.npending, MANY);
        assert_true(s->lobby.npending <= MANY);
    }
    int fd = dial();
    say(fd, HEAD WITH);
    answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-8");
    was_given("ci-8", TOKEN, HEAD WITH);
    close(s->given.fd);
    answer(id, IDENTITY_KNOWN, "ci-7"); /* who waits for the judge was not driven out */
    was_given("ci-7", TOKEN, HEAD WITH);
    close(s->given.fd);
    close(fd);
    close(asked);
    hear(flood[0], NULL);
    for (int i = 0; i < FLOOD; i++)
        close(flood[i]);
    UNTIL(s->lobby.npending == 0);
    covers("F1 F7");
}

/* F35 F36: who says his head slowly gets in, however many come and say nothing: from elsewhere, and from where he is,
 * once he has begun. */
static void a_slow_one_gets_in_beside_a_flood(void **state)
{
    enum { MANY = 16, FLOOD = 900, FLOODER = INADDR_LOOPBACK + 1, SLOW = INADDR_LOOPBACK + 2 };
    static int flood[FLOOD];
    (void)state;
    s->lobby.limits.pending = MANY;
    int slow = dial_from(SLOW), beside = dial_from(FLOODER), asked = dial_from(FLOODER);
    say(beside, "CONNECT a.test:443");
    say(asked, HEAD WITH);
    uint64_t id = next_asked("token-1");
    for (unsigned i = 0; i < FLOOD; i++) {
        flood[i] = dial_from(FLOODER);
        assert_true(s->lobby.npending <= MANY);
        if (i == FLOOD / 3)
            say(slow, HEAD);
    }
    settle();
    assert_int_equal(s->lobby.npending, MANY);
    say(slow, WITH);
    answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-8");
    was_given("ci-8", TOKEN, HEAD WITH);
    close(s->given.fd);
    say(beside, " HTTP/1.1\r\nHost: a.test:443\r\n" WITH);
    answer(next_asked("token-1"), IDENTITY_KNOWN, "ci-9");
    was_given("ci-9", TOKEN, HEAD WITH);
    close(s->given.fd);
    answer(id, IDENTITY_KNOWN, "ci-7");
    was_given("ci-7", TOKEN, HEAD WITH);
    close(s->given.fd);
    close(slow);
    close(beside);
    close(asked);
    for (unsigned i = 0; i < FLOOD; i++)
        close(flood[i]);
    UNTIL(s->lobby.npending == 0);
    covers("F35 F36");
}

static double at_work(uint64_t ms)
{
    struct timespec a, b;
    struct timer *t = timer_new(s->l, stage_stop, s->l);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    clock_waits();
    timer_set(t, ms);
    assert_int_equal(loop_run(s->l), 0);
    timer_free(&t);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    return ((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6) / (double)ms;
}

static void nothing_spins(void **state)
{
    struct rlimit was, few;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    s->lobby.limits.pending = 1;
    int asked = dial();
    say(asked, HEAD WITH);
    uint64_t id = next_asked("token-1");
    int late = dial();
    UNTIL(s->lobby.resting);
    if (at_work(150) > 0.3)
        fail_msg("the lobby spins while all wait for the judge");
    answer(id, IDENTITY_KNOWN, "ci-7");
    was_given("ci-7", TOKEN, HEAD WITH);
    close(s->given.fd);
    close(asked);
    UNTIL(s->lobby.npending == 1);
    close(late);
    UNTIL(s->lobby.npending == 0);

    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)listen_port(s->listener))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    late = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int hole = fcntl(late, F_DUPFD, 0); /* the next free number */
    close(hole);
    few = was;
    few.rlim_cur = (rlim_t)hole;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int rc = connect(late, (struct sockaddr *)&a, sizeof(a));
    UNTIL(s->lobby.resting);
    double share = at_work(250);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_true(rc == 0 || rc == -1);
    if (share > 0.3)
        fail_msg("the lobby spins without descriptors");
    UNTIL(s->lobby.npending == 1);
    close(late);
    UNTIL(s->lobby.npending == 0);
    covers("F7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY(a_challenge_is_answered_on_the_same_connection),
        PLAY(both_in_one_segment),
        PLAY(a_head_is_understood_at_every_split),
        PLAY(who_will_not_say_is_sent_away),
        PLAY(a_token_that_is_none_is_refused),
        PLAY(what_is_no_request_is_refused),
        PLAY(without_a_judge_it_is_said_so),
        PLAY(who_is_slow_is_sent_away),
        PLAY(a_full_lobby_still_serves),
        PLAY(a_slow_one_gets_in_beside_a_flood),
        PLAY(nothing_spins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
