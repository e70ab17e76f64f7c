/* The keeper as a process, with this test as its parent and its peers. C29 D15 D24 D36, and what it may be asked. */
#include "tests/unit/keeper/keeper_world.h"

static void the_environment_is_a_source_and_is_wiped(void **state)
{
    char path[64], env[4096];
    ask_release(judge, 5, SPAN("env"), false, SPAN_NONE);
    await(1);
    assert_int_equal(got[0].type, M_CREDENTIAL);
    assert_int_equal(got[0].id, 5);
    assert_true(says(0, SPAN("Bearer env-canary-0123")));
    snprintf(path, sizeof(path), "/proc/%d/environ", child);
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, env, sizeof(env));
    assert_true(n <= 0 || memmem(env, (size_t)n, "canary", 6) == NULL);
    if (fd >= 0)
        close(fd);
}

/* Those that wait are asked again when it comes: one question for all, and each gets its own answer. */
static void a_release_waits_for_what_is_fetched(void **state)
{
    ask_release(judge, 5, SPAN("asked"), false, SPAN_NONE);
    await(1);
    assert_int_equal(got[0].type, M_RELEASE_FAILED); /* there is no fetcher */
    fetcher = introduce(ROLE_FETCHER);
    settle();
    for (uint64_t x = 6; x < 9; x++)
        ask_release(judge, x, SPAN("asked"), false, SPAN_NONE);
    await(1);
    assert_int_equal(got[0].type, M_FETCH);
    assert_true(says(0, SPAN("/bin/op")));
    uint64_t id = got[0].id;
    fetched(id, SPAN("fetched-canary-1"), SPAN_NONE);
    await(4); /* and the parent hears that there is a value */
    size_t given = 0;
    for (size_t i = 0; i < 4; i++)
        given += got[i].type == M_CREDENTIAL && says(i, SPAN("Bearer fetched-canary-1"));
    assert_int_equal(given, 3);
    fetched(id, SPAN("fetched-canary-2"), SPAN_NONE); /* which nobody asked */
    ask_release(judge, 9, SPAN("asked"), false, SPAN_NONE);
    await(1);
    assert_true(says(0, SPAN("Bearer fetched-canary-1")));
}

static void who_waits_hears_of_a_failure(void **state)
{
    fetcher = introduce(ROLE_FETCHER);
    settle();
    ask_release(judge, 5, SPAN("asked"), false, SPAN_NONE);
    await(1);
    fetched(got[0].id, SPAN_NONE, SPAN("the program ended with status 1"));
    await(2);
    size_t at = got[0].type == M_RELEASE_FAILED ? 0 : 1;
    assert_int_equal(got[at].type, M_RELEASE_FAILED);
    assert_true(says(at, SPAN("status 1")));
    ask_release(judge, 6, SPAN("asked"), false, SPAN_NONE);
    await(1);
    assert_int_equal(got[0].type, M_RELEASE_FAILED); /* remembered for a while */
}

static void who_waits_for_a_fetcher_that_ends_is_told(void **state)
{
    fetcher = introduce(ROLE_FETCHER);
    settle();
    ask_release(judge, 5, SPAN("asked"), false, SPAN_NONE);
    await(1);
    chan_free(&fetcher);
    await(2); /* and the parent, that the channel is lost */
    size_t at = got[0].type == M_RELEASE_FAILED ? 0 : 1;
    assert_int_equal(got[at].type, M_RELEASE_FAILED);
    assert_true(says(at, SPAN("repeat the request")));
}

static void a_front_has_so_many_that_wait_and_its_neighbour_too(void **state)
{
    enum { MOST = 64 }; /* PARKED_A_FRONT */
    fetcher = introduce(ROLE_FETCHER);
    settle();
    for (uint64_t x = 1; x <= MOST + 1; x++)
        ask_release(judge, UINT64_C(1) << XID_FRONT_SHIFT | x, SPAN("asked"), false, SPAN_NONE);
    await(2); /* the question, and the refusal of the last */
    size_t at = got[0].type == M_RELEASE_FAILED ? 0 : 1;
    assert_int_equal(got[at].id, UINT64_C(1) << XID_FRONT_SHIFT | (MOST + 1));
    assert_true(says(at, SPAN("too many")));
    uint64_t id = got[1 - at].id, neighbour = UINT64_C(2) << XID_FRONT_SHIFT | 1;
    ask_release(judge, neighbour, SPAN("asked"), false, SPAN_NONE);
    settle();
    fetched(id, SPAN("fetched-canary-1"), SPAN_NONE);
    watched = neighbour;
    await(MOST + 2); /* all of them, and what the parent hears */
    assert_true(watched_served);
}

static void a_front_has_so_many_bytes_that_wait(void **state)
{
    enum { FIT = 25 }; /* of 40 KiB and some: PARKED_BYTES_A_FRONT */
    static uint8_t path[40 * 1024];
    memset(path, 'a', sizeof(path));
    path[0] = '/';
    fetcher = introduce(ROLE_FETCHER);
    settle();
    asked_path = span_of(path, sizeof(path));
    for (uint64_t x = 1; x <= FIT + 1; x++)
        ask_release(judge, UINT64_C(1) << XID_FRONT_SHIFT | x, SPAN("asked"), false, SPAN_NONE);
    await(2); /* the question, and the refusal of the last */
    size_t at = got[0].type == M_RELEASE_FAILED ? 0 : 1;
    assert_int_equal(got[at].id, UINT64_C(1) << XID_FRONT_SHIFT | (FIT + 1));
    assert_true(says(at, SPAN("too many")));
    uint64_t id = got[1 - at].id, neighbour = UINT64_C(2) << XID_FRONT_SHIFT | 1;
    ask_release(judge, neighbour, SPAN("asked"), false, SPAN_NONE);
    asked_path = SPAN("/x");
    settle();
    fetched(id, SPAN("fetched-canary-1"), SPAN_NONE);
    watched = neighbour;
    await(FIT + 2); /* all of them, and what the parent hears */
    assert_true(watched_served);
}

static void leafs_are_minted_for_the_judge_alone(void **state)
{
    uint8_t spki[128], *to = spki;
    EVP_PKEY *k = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    int n = i2d_PUBKEY(k, &to);
    EVP_PKEY_free(k);
    struct chan *who[] = {carrier, ledger, judge};
    for (int i = 0; i < 3; i++) {
        struct dynbuf *b = chan_begin(who[i], M_MINT, 90 + (uint64_t)i);
        msg_put_span(b, SPAN("a.example"));
        msg_put_span(b, span_of(spki, (size_t)n));
        assert_int_equal(chan_commit(who[i]), 0);
    }
    ask_release(carrier, 6, SPAN("env"), false, SPAN_NONE);
    ask_release(ledger, 6, SPAN("env"), false, SPAN_NONE);
    await(1); /* one answer, to the one who may ask */
    assert_int_equal(got[0].type, M_MINTED);
    assert_int_equal(got[0].id, 92);
    assert_true(got[0].n > 500);
    struct dynbuf *b = chan_begin(judge, M_MINT, 93);
    msg_put_span(b, SPAN("*.example"));
    msg_put_span(b, span_of(spki, (size_t)n));
    assert_int_equal(chan_commit(judge), 0);
    await(1);
    assert_int_equal(got[0].id, 93);
    assert_int_equal(got[0].n, 8); /* two empty spans */
}

static void give_key(EVP_PKEY *k)
{
    uint8_t raw[32];
    size_t n = sizeof(raw);
    assert_int_equal(EVP_PKEY_get_raw_public_key(k, raw, &n), 1);
    struct dynbuf *b = chan_begin(ledger, M_LEDGER_KEY, 0);
    msg_put_span(b, span_of(raw, n));
    assert_int_equal(chan_commit(ledger), 0);
}

static void sign(EVP_PKEY *k, uint64_t xid, uint8_t signature[64])
{
    struct dynbuf b;
    struct digest d;
    size_t n = 64;
    memset(&d, 7, sizeof(d));
    dynbuf_init(&b, 4096);
    wire_release_statement(&b, xid, SPAN("env"), SPAN("a.example"), 443, &d);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(c, NULL, NULL, NULL, k), 1);
    assert_int_equal(EVP_DigestSign(c, signature, &n, b.p, b.n), 1);
    EVP_MD_CTX_free(c);
    dynbuf_free(&b);
}

static void a_held_write_needs_the_word_of_the_ledger_that_lives(void **state)
{
    EVP_PKEY *first = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"), *second = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    uint8_t signature[64];
    give_key(first);
    sign(first, 70, signature);
    settle();
    ask_release(judge, 70, SPAN("env"), true, span_of(signature, 64));
    await(1);
    assert_int_equal(got[0].type, M_CREDENTIAL);
    ask_release(judge, 71, SPAN("env"), true, span_of(signature, 64));
    await(1);
    assert_int_equal(got[0].type, M_RELEASE_FAILED);
    assert_true(says(0, SPAN("approval-not-proven")));
    /* The ledger is restarted: the keeper lives on, and the old key is worth nothing. */
    chan_free(&ledger);
    await(1);
    assert_int_equal(got[0].type, M_LOST); /* to the parent, which makes another channel */
    ledger = introduce(ROLE_LEDGER);
    await(1);
    assert_int_equal(got[0].type, M_DATA_KEY);
    sign(first, 72, signature);
    ask_release(judge, 72, SPAN("env"), true, span_of(signature, 64));
    await(1);
    assert_int_equal(got[0].type, M_RELEASE_FAILED);
    give_key(second);
    settle();
    sign(second, 73, signature);
    ask_release(judge, 73, SPAN("env"), true, span_of(signature, 64));
    await(1);
    assert_int_equal(got[0].type, M_CREDENTIAL);
    EVP_PKEY_free(first);
    EVP_PKEY_free(second);
}

/* A blocking call at the keeper's own socket; the answer's first line. */
static void call(const char *request, size_t n, char *answer, size_t cap)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", sock);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(send(fd, request, n, MSG_NOSIGNAL), (ssize_t)n);
    size_t have = 0;
    for (ssize_t r; have < cap - 1 && (r = read(fd, answer + have, cap - 1 - have)) > 0;)
        have += (size_t)r;
    answer[have] = '\0';
    close(fd);
}

static void expect_answer(const char *request, const char *begins, const char *has)
{
    char answer[16384];
    call(request, strlen(request), answer, sizeof(answer));
    if (strncmp(answer, begins, strlen(begins)) != 0 || (has && strstr(answer, has) == NULL))
        fail_msg("%.60s: %.400s", request, answer);
    assert_null(strstr(answer, "canary"));
}

#define HOST "Host: keeper\r\n"

static void secrets_go_in_and_never_out(void **state)
{
    expect_answer("PUT /v1/secrets/kept HTTP/1.1\r\n" HOST "Content-Length: 16\r\n\r\nstore-canary-01\n",
                  "HTTP/1.1 204", NULL);
    await(2); /* the note for the audit, and the list to the parent */
    bool noted = got[0].type == M_NOTE || got[1].type == M_NOTE;
    assert_true(noted);
    for (int i = 0; i < 2; i++)
        assert_false(says((size_t)i, SPAN("canary")));
    ask_release(judge, 5, SPAN("store"), false, SPAN_NONE);
    await(1);
    assert_true(says(0, SPAN("Bearer store-canary-01")));
    expect_answer("GET /v1/secrets HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200", "\"name\":\"kept\"");
    expect_answer("GET /v1/secrets HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200", "\"earlier\":0");
    expect_answer("GET /v1/ca HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200", "-----BEGIN CERTIFICATE-----");
    expect_answer("GET /v1/secrets/kept HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 404", NULL);
    expect_answer("PUT /v1/secrets/kept HTTP/1.1\r\n" HOST "Content-Length: 16\r\n\r\nstore-canary-02\n",
                  "HTTP/1.1 204", NULL);
    await(2);
    ask_release(judge, 6, SPAN("store"), false, SPAN_NONE);
    await(1);
    assert_true(says(0, SPAN("Bearer store-canary-02")));
    assert_true(says(0, SPAN("store-canary-01"))); /* D36: still scrubbed */
    expect_answer("GET /v1/secrets HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200", "\"earlier\":1");
    expect_answer("GET /v1/secrets HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200", "\"used_ms\":1");
    expect_answer("DELETE /v1/secrets/kept?earlier HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 204", NULL);
    await(2);
    expect_answer("GET /v1/secrets HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200", "\"earlier\":0");
    expect_answer("PUT /v1/secrets/kept?keep=600 HTTP/1.1\r\n" HOST "Content-Length: 16\r\n\r\nstore-canary-03\n",
                  "HTTP/1.1 204", NULL);
    await(2);
    expect_answer("GET /v1/secrets HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200", "\"earlier\":1,\"earlier_until_ms\":1");
    expect_answer("DELETE /v1/secrets/kept HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 204", NULL);
    expect_answer("DELETE /v1/secrets/kept HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 404", NULL);
}

static void what_is_no_secret_is_refused(void **state)
{
    static char big[80 * 1024];
    char answer[4096];
    expect_answer("PUT /v1/secrets/kept HTTP/1.1\r\n" HOST "Content-Length: 16\r\n\r\ncanary\rcanary-01",
                  "HTTP/1.1 400", "control character");
    expect_answer("PUT /v1/secrets/kept HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", "HTTP/1.1 400", "empty");
    expect_answer("PUT /v1/secrets/..%2fmaster.key HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\ncanary-01",
                  "HTTP/1.1 400", NULL);
    expect_answer("PUT /v1/secrets/a?keep=0 HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\ncanary-01", "HTTP/1.1 400",
                  NULL);
    expect_answer("DELETE /v1/secrets/a?keep=5 HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400", NULL);
    expect_answer("GET /v1/secrets?earlier HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400", NULL);
    expect_answer("PUT /v1/secrets/a?b HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\ncanary-01", "HTTP/1.1 400", NULL);
    expect_answer("PUT /v1/secrets/a HTTP/1.1\r\n" HOST "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n",
                  "HTTP/1.1 400", NULL);
    expect_answer("POST /v1/secrets/a HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\ncanary-01", "HTTP/1.1 404", NULL);
    int n = snprintf(big, sizeof(big), "PUT /v1/secrets/kept HTTP/1.1\r\n" HOST "Content-Length: 65536\r\n\r\n");
    call(big, (size_t)n, answer, sizeof(answer)); /* refused before it is read */
    assert_int_equal(strncmp(answer, "HTTP/1.1 4", 10), 0);
    expect_answer("GET /v1/secrets HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200", "\"secrets\":[]");
}

static void a_folder_that_is_not_in_order_stops_the_start(void **state)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    chan_free(&parent);
    assert_int_equal(fchmodat(dir, "master.key", 0644, 0), 0);
    spawn();
    settle();
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_int_equal(fchmodat(dir, "master.key", 0600, 0), 0);
    chan_free(&parent);
    ended = false;
    spawn();
    await(2);
    assert_int_equal(got[1].type, M_READY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(the_environment_is_a_source_and_is_wiped),
        FRESH(a_release_waits_for_what_is_fetched),
        FRESH(who_waits_hears_of_a_failure),
        FRESH(who_waits_for_a_fetcher_that_ends_is_told),
        FRESH(a_front_has_so_many_that_wait_and_its_neighbour_too),
        FRESH(a_front_has_so_many_bytes_that_wait),
        FRESH(leafs_are_minted_for_the_judge_alone),
        FRESH(a_held_write_needs_the_word_of_the_ledger_that_lives),
        FRESH(secrets_go_in_and_never_out),
        FRESH(what_is_no_secret_is_refused),
        FRESH(a_folder_that_is_not_in_order_stops_the_start),
    };
    return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
