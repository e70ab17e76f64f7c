/* Credentials and answers that echo them, through a real carrier: INV4, INV7, D1, D2, D4, D5, D10, D14, D16, D25,
 * D27, D38, D41, D43, D47, C23, C24. */
#include "tests/unit/carrier/carrier_world.h"

#include <stdio.h>
#include <stdlib.h>

/* Credentials: any order of arrival, live ones, the wrong place, none at all (INV7, D14, D16). */
static void credentials(void **state)
{
    struct world *w = world_new();
    struct request r = {.path = "/c", .credential = "c", .release = RELEASE_COMES};
    world_forward(w, XID(1), r);
    world_settle(w);
    assert_int_equal(w->nups, 0);
    world_credential(w, XID(1), 60000, "up.test", "c", "Bearer " TOKEN);
    world_wait_up(w, 0, "Authorization: Bearer " TOKEN "\r\nAccept-Encoding: identity\r\n");
    world_answer(w, 0, OK5);
    (void)world_result(w, XID(1));
    r.release = RELEASE_LIVE;
    world_forward(w, XID(2), r);
    world_wait_up(w, 0, "keep-alive\r\n\r\nGET /c");
    world_answer(w, 0, OK5);
    (void)world_result(w, XID(2));
    assert_int_equal(world_count(w, ROLE_JUDGE, M_NEED_RELEASE, XID(2)), 0);
    r.credential = "d"; /* not live: asked for */
    world_forward(w, XID(3), r);
    (void)world_wait(w, ROLE_JUDGE, M_NEED_RELEASE, XID(3));
    world_credential(w, XID(3), 0, "elsewhere.test", "d", "Bearer " TOKEN);
    expect_code(w, XID(3), OUTCOME_NOT_SENT, "credential-unavailable");
    r.release = RELEASE_COMES;
    world_credential(w, XID(4), 0, "up.test", "e", "Bearer " TOKEN);
    world_settle(w);
    world_forward(w, XID(4), r);
    expect_code(w, XID(4), OUTCOME_NOT_SENT, "credential-unavailable");
    world_forward(w, XID(5), r);
    world_credential(w, XID(5), 0, "up.test", "d", "Basic x"); /* too short to be found again */
    expect_code(w, XID(5), OUTCOME_NOT_SENT, "credential-unavailable");
    world_upstream(w, 3, "127.0.0.1", true, false);
    r.upstream = 3;
    world_forward(w, XID(6), r);
    expect_code(w, XID(6), OUTCOME_NOT_SENT, "cleartext-credential");
    assert_int_equal(w->nups, 1);
    world_free(&w);
}

/* E45: what is live is so for one sandbox's front, and for a policy that means the same by the name. */
static void live_is_what_it_is_not_what_it_is_called(void **state)
{
    struct world *w = world_new();
    struct request r = {.path = "/c", .credential = "c", .release = RELEASE_COMES};
    const uint64_t other = (uint64_t)(FRONT + 1) << 40 | 1;
    world_forward(w, XID(1), r);
    world_credential(w, XID(1), 60000, "up.test", "c", "Bearer " TOKEN);
    world_wait_up(w, 0, "Authorization: Bearer " TOKEN);
    world_answer(w, 0, OK5);
    (void)world_result(w, XID(1));
    r.release = RELEASE_LIVE;
    world_forward(w, other, r);
    (void)world_wait(w, ROLE_JUDGE, M_NEED_RELEASE, other);
    w->place.b[0] = 1; /* the same name and place, by the next policy */
    world_upstream(w, 4, "127.0.0.1", true, true);
    r.upstream = 4;
    world_forward(w, XID(2), r);
    (void)world_wait(w, ROLE_JUDGE, M_NEED_RELEASE, XID(2));
    w->place.b[0] = 0; /* what the policy before released comes too late */
    world_credential(w, XID(2), 0, "up.test", "c", "Bearer " TOKEN);
    expect_code(w, XID(2), OUTCOME_NOT_SENT, "credential-unavailable");
    assert_int_equal(w->nups, 1);
    world_free(&w);
}

/* A release that never comes is a refusal. */
static void release_late(void **state)
{
    struct world *w = world_new();
    w->carrier->settings.release_ms = 20;
    world_forward(w, XID(1), (struct request){.credential = "c", .release = RELEASE_COMES});
    expect_code(w, XID(1), OUTCOME_NOT_SENT, "credential-unavailable");
    world_free(&w);
}

static void credentialed(struct world *w, uint64_t n, size_t up, const char *answer)
{
    char path[32], line[48];
    snprintf(path, sizeof(path), "/%llu", (unsigned long long)n);
    snprintf(line, sizeof(line), "GET /%llu HTTP/1.1\r\n", (unsigned long long)n);
    world_credential(w, XID(n), 0, "up.test", "c", "Bearer " TOKEN);
    world_forward(w, XID(n), (struct request){.path = path, .credential = "c", .release = RELEASE_COMES});
    world_wait_up(w, up, line);
    world_answer(w, up, answer);
}

static bool has_field(const struct answer *a, const char *name)
{
    for (size_t i = 0; i < a->head.nfields; i++)
        if (span_ieq(a->head.field[i].name, span_str(name)))
            return true;
    return false;
}

/* D1, D2, D10, D27, C23, C24 */
static void echoed(void **state)
{
    struct world *w = world_new();
    struct answer a;
    credentialed(w, 1, 0,
                 "HTTP/1.1 302 See " TOKEN "\r\nContent-Type: application/json\r\nContent-Length: 56\r\n"
                 "Location: https://other.test/?t=" TOKEN "\r\nSet-Cookie: a=b\r\nAlt-Svc: h3\r\n"
                 "Countersign-Decision: allow\r\nVia: x\r\nServer-Timing: a\r\nDigest: x\r\nETag: \"1\"\r\n\r\n"
                 "{\"auth\":\"Bearer " TOKEN "\"}");
    (void)world_result(w, XID(1));
    world_settle(w);
    world_front_answer(w, XID(1), &a);
    assert_int_equal(a.head.status, 302);
    assert_true(a.ok);
    assert_true(
        span_eq(dynbuf_span(&a.body), SPAN("{\"auth\":\"***********************************************\"}")) ||
        a.body.n == 56);
    assert_int_equal(span_find(dynbuf_span(&a.body), SPAN(TOKEN)), a.body.n);
    const char *gone[] = {"Set-Cookie", "Alt-Svc", "Countersign-Decision", "Via", "Server-Timing", "Digest", "ETag"};
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
        assert_false(has_field(&a, gone[i]));
    assert_true(has_field(&a, "Location"));
    dynbuf_free(&a.body);
    for (size_t i = 0; i < w->nseen; i++) {
        struct span p = dynbuf_span(&w->seen[i].payload);
        assert_int_equal(span_find(p, SPAN(TOKEN)), p.n);
    }
    world_free(&w);
}

/* A44, D1: what stands on several lines is searched as one, with their blanks and without. */
static void echoed_in_a_fold(void **state)
{
    struct world *w = world_new();
    struct answer a;
    char text[256];
    (void)state;
    credentialed(w, 1, 0, "HTTP/1.1 200 OK\r\nX-A: Bearer\r\n  " TOKEN ",\r\n\tb\r\nContent-Length: 2\r\n\r\nok");
    world_settle(w);
    world_front_answer(w, XID(1), &a);
    assert_int_equal(a.head.nfields, 1);
    assert_true(span_ends(a.head.field[0].value, SPAN("***, b")));
    assert_int_equal(a.head.field[0].value.n, sizeof("Bearer " TOKEN ", b") - 1);
    dynbuf_free(&a.body);
    const size_t n = sizeof(TOKEN) - 1;
    for (size_t cut = 1; cut < n; cut += 7) {
        uint64_t i = 2 + cut;
        snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nX-A: %.*s\r\n\t %s\r\nContent-Length: 2\r\n\r\nok", (int)cut,
                 TOKEN, &TOKEN[cut]);
        credentialed(w, i, cut / 7, text);
        expect_code(w, XID(i), OUTCOME_ANSWERED, "secret-in-answer");
        assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, XID(i)), 0);
    }
    world_free(&w);
}

/* D4: split over many writes; D38: in what is not text, or under a digest that has gone already, it is cut. */
static void echoed_in_pieces(void **state)
{
    struct world *w = world_new();
    const char *secret = TOKEN;
    credentialed(w, 1, 0, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 43\r\n\r\n\n<");
    (void)world_wait(w, ROLE_FRONT, M_ANSWER, XID(1));
    for (size_t i = 0; i < 40; i++) {
        assert_int_equal(conn_write(w->up[0].conn, span_of(secret + i, 1)), 0);
        if (i % 5 == 0)
            world_settle(w);
    }
    world_answer(w, 0, ">");
    expect_answer(w, XID(1), "\n<****************************************>", true);
    credentialed(w, 2, 0, "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 45\r\n\r\nab " TOKEN "cd");
    expect_code(w, XID(2), OUTCOME_ANSWERED, "secret-in-answer");
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, XID(2)), 0);
    credentialed(w, 3, 1,
                 "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDigest: x\r\nContent-Length: 46\r\n\r\nab\n");
    (void)world_wait(w, ROLE_FRONT, M_ANSWER, XID(3));
    world_answer(w, 1, " " TOKEN "cd");
    expect_code(w, XID(3), OUTCOME_ANSWERED, "secret-in-answer");
    expect_answer(w, XID(3), "ab\n", false);
    world_free(&w);
}

/* D47: what tells which bytes a body has goes when one of them is covered; and when it has gone already, the rest of
 * the body does not. Where nothing is found it stays. */
static void digests(void **state)
{
    static const char *const name[] = {"ETag",           "Content-MD5",     "Digest",
                                       "Content-Digest", "Repr-Digest",     "x-goog-hash",
                                       "X-Amz-Crc32",    "X-Checksum-Sha1", "x-amz-checksum-sha256"};
    struct world *w = world_new();
    struct answer a;
    char text[300];
    size_t up = 0;
    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        uint64_t n = 10 * i;
        snprintf(text, sizeof(text),
                 "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n%s: x\r\nContent-Length: %d\r\n\r\n%s", name[i], 40,
                 TOKEN);
        credentialed(w, n + 1, up, text);
        (void)world_result(w, XID(n + 1));
        world_settle(w);
        world_front_answer(w, XID(n + 1), &a);
        assert_false(has_field(&a, name[i]));
        assert_true(a.ok && a.body.n == 40 && a.body.p[0] == '*');
        dynbuf_free(&a.body);
        snprintf(text, sizeof(text),
                 "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n%s: x\r\nContent-Length: 5\r\n\r\nhello", name[i]);
        credentialed(w, n + 2, up, text);
        (void)world_result(w, XID(n + 2));
        world_settle(w);
        world_front_answer(w, XID(n + 2), &a);
        assert_true(has_field(&a, name[i]));
        dynbuf_free(&a.body);
        snprintf(text, sizeof(text),
                 "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n%s: x\r\nContent-Length: 43\r\n\r\nab\n", name[i]);
        credentialed(w, n + 3, up, text);
        (void)world_wait(w, ROLE_FRONT, M_ANSWER, XID(n + 3));
        world_answer(w, up, TOKEN);
        expect_code(w, XID(n + 3), OUTCOME_ANSWERED, "secret-in-answer");
        expect_answer(w, XID(n + 3), "ab\n", false);
        up++;
    }
    world_free(&w);
}

/* What the front was sent for an exchange: types and sizes, in order. */
static size_t frames_of(const struct world *w, uint64_t xid, size_t *out, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < w->nseen; i++)
        if (w->seen[i].at == ROLE_FRONT && w->seen[i].id == xid && n < max)
            out[n++] = (size_t)w->seen[i].type << 32 | w->seen[i].payload.n;
    return n;
}

/* D41: a stream that ends in the beginning of the secret, now and then, is cut as one that does not; and each event
 * is with the front when its end has come. */
static void guesses(void **state)
{
    static const char *const secret[] = {TOKEN, "zhp_16C7e42F292c6912E7710c838347Ae178B4a"};
    struct world *w = world_new();
    char chunk[1000];
    for (size_t v = 0; v < 2; v++) {
        credentialed(w, v + 1, 0,
                     "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
        (void)world_wait(w, ROLE_FRONT, M_ANSWER, XID(v + 1));
        for (int n = 1; n < 40; n += 3) {
            size_t before = world_count(w, ROLE_FRONT, M_ANSWER_BODY, XID(v + 1));
            snprintf(chunk, sizeof(chunk), "%x\r\n%0600d%.*s\r\n", 600 + n, 7, n, secret[v]);
            world_answer(w, 0, chunk);
            world_settle(w);
            snprintf(chunk, sizeof(chunk), "2\r\n\n\n\r\n");
            world_answer(w, 0, chunk);
            while (world_count(w, ROLE_FRONT, M_ANSWER_BODY, XID(v + 1)) < before + 2)
                world_settle(w);
        }
        world_answer(w, 0, "0\r\n\r\n");
        (void)world_result(w, XID(v + 1));
    }
    world_settle(w);
    size_t a[100], b[100], n = frames_of(w, XID(1), a, 100);
    assert_int_equal(frames_of(w, XID(2), b, 100), n);
    assert_memory_equal(a, b, n * sizeof(a[0]));
    world_free(&w);
}

/* D5: encoded although identity was asked for. */
static void encoded(void **state)
{
    struct world *w = world_new();
    static const uint8_t gz[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 40, 0, 0xd7, 0xff};
    const char *bad[] = {"br", "zstd", "gzip, gzip", "x-unheard-of"};
    char head[200];
    for (size_t i = 0; i < 4; i++) {
        snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: 3\r\n\r\nabc",
                 bad[i]);
        credentialed(w, 1 + i, i, head);
        expect_code(w, XID(1 + i), OUTCOME_ANSWERED, "answer-encoded");
        assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, XID(1 + i)), 0);
    }
    credentialed(w, 5, 4, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n37\r\n");
    assert_int_equal(conn_write(w->up[4].conn, span_of(gz, sizeof(gz))), 0);
    world_answer(w, 4, TOKEN);
    expect_code(w, XID(5), OUTCOME_ANSWERED, "answer-encoded");
    for (size_t i = 0; i < w->nseen; i++) {
        struct span p = dynbuf_span(&w->seen[i].payload);
        assert_int_equal(span_find(p, SPAN("ghp_16C7")), p.n);
    }
    world_free(&w);
}

static void asked_with_credential(struct world *w, uint64_t xid, size_t up, const char *answer)
{
    world_credential(w, xid, 0, "up.test", "c", "Bearer " TOKEN);
    world_forward(w, xid, (struct request){.path = "/large", .credential = "c", .release = RELEASE_COMES});
    world_wait_up(w, up, "GET /large");
    world_answer(w, up, answer);
    world_settle(w);
}

/* What takes megabytes to look into is counted by sandbox: one that has its share of it leaves the others theirs. */
static void large_codings_of_a_front(void **state)
{
    struct world *w = world_new();
    const char *half = "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n\x0b";
    const char *whole = "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\n\x06";
    world_other_front(w);
    for (uint64_t i = 0; i < LARGE_A_FRONT_MAX; i++)
        asked_with_credential(w, XID(1 + i), i, half);
    asked_with_credential(w, XID(50), LARGE_A_FRONT_MAX, whole);
    expect_code(w, XID(50), OUTCOME_ANSWERED, "answer-encoded");
    asked_with_credential(w, OTHER(1), LARGE_A_FRONT_MAX + 1, whole);
    assert_int_equal(world_result(w, OTHER(1)).code.n, 0);
    world_close_up(w, 0); /* one of them is over */
    expect_code(w, XID(1), OUTCOME_ANSWERED, "answer-cut");
    asked_with_credential(w, XID(51), LARGE_A_FRONT_MAX + 2, whole);
    assert_int_equal(world_result(w, XID(51)).code.n, 0);
    world_free(&w);
}

/* D1, D2: scrub: refuse. What would be covered is not handed on; a later policy's word counts from its release on. */
static void refused_and_not_covered(void **state)
{
    struct world *w = world_new();
    const char *body = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 45\r\n\r\nabcd " TOKEN;
    const char *head = "HTTP/1.1 200 OK\r\nX-Echo: " TOKEN "\r\nContent-Length: 2\r\n\r\nok";
    const char *form = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 60\r\n\r\nabcd "
                       "Z2hwXzE2QzdlNDJGMjkyYzY5MTJFNzcxMGM4MzgzNDdBZTE3OEI0YQ=";
    w->refuse = true;
    credentialed(w, 1, 0, OK5);
    assert_int_equal(world_result(w, XID(1)).code.n, 0);
    credentialed(w, 2, 0, body);
    expect_code(w, XID(2), OUTCOME_ANSWERED, "secret-in-answer");
    credentialed(w, 3, 1, head);
    expect_code(w, XID(3), OUTCOME_ANSWERED, "secret-in-answer");
    credentialed(w, 4, 2, form);
    expect_code(w, XID(4), OUTCOME_ANSWERED, "secret-in-answer");
    assert_int_equal(world_count(w, ROLE_FRONT, M_ANSWER, XID(3)), 0);
    w->refuse = false;
    credentialed(w, 5, 3, body);
    expect_answer(w, XID(5), "abcd ****************************************", true);
    w->refuse = true;
    credentialed(w, 6, 3, body);
    expect_code(w, XID(6), OUTCOME_ANSWERED, "secret-in-answer");
    world_free(&w);
}

/* A host with secrets is searched even when none is injected; the patterns are asked for. */
static void patterns_only(void **state)
{
    struct world *w = world_new();
    world_upstream(w, 2, "127.0.0.1", true, false);
    world_forward(w, XID(1), (struct request){.path = "/1", .upstream = 2});
    (void)world_wait(w, ROLE_JUDGE, M_NEED_RELEASE, XID(1));
    assert_int_equal(w->nups, 0);
    world_credential(w, XID(1), 0, "up.test", "", "");
    world_wait_up(w, 0, "Accept-Encoding: identity\r\n");
    assert_false(world_up_has(w, 0, "Authorization"));
    world_answer(w, 0, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 40\r\n\r\n" TOKEN);
    expect_answer(w, XID(1), "****************************************", true);
    world_free(&w);
}

static bool knows(const struct scrub *set, struct span secret)
{
    struct scrub_secret one;
    return scrub_find(set, secret, &one);
}

/* D43: a policy takes the credential from a place; what the place was given before is searched for all the same. */
static void given_once(void **state)
{
    struct world *w = world_new();
    struct scrub *set;
    credentialed(w, 1, 0, OK5);
    (void)world_result(w, XID(1));
    world_upstream(w, 2, "127.0.0.1", false, true); /* has no secrets now */
    world_forward(w, XID(2), (struct request){.path = "/2", .upstream = 2});
    world_wait_up(w, 1, "GET /2 HTTP/1.1\r\n");
    assert_true(world_up_has(w, 1, "Accept-Encoding: identity\r\n"));
    assert_false(world_up_has(w, 1, "Authorization"));
    world_answer(w, 1, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 40\r\n\r\n" TOKEN);
    expect_answer(w, XID(2), "****************************************", true);
    assert_int_equal(world_count(w, ROLE_JUDGE, M_NEED_RELEASE, XID(2)), 0);
    /* what it is given later does not replace it; the number of places has a bound, and they share a set */
    struct origins *p = &w->carrier->origins;
    struct err e;
    char host[32];
    struct span other = SPAN("another secret");
    struct upstream u = {.scheme = SPAN("http"), .host = SPAN("up.test"), .port = w->port};
    set = origins_give(p, u.scheme, u.host, u.port, &(struct scrub_secret){other, false}, 1, &e);
    assert_non_null(set);
    assert_true(knows(set, SPAN(TOKEN)) && knows(set, other) && knows(set, SPAN("Bearer " TOKEN)));
    scrub_unref(&set);
    struct scrub *first = NULL;
    for (int i = 0; i <= ORIGINS_MAX; i++) {
        snprintf(host, sizeof(host), "h%d.test", i);
        set = origins_give(p, u.scheme, span_str(host), 443, &(struct scrub_secret){other, false}, 1, &e);
        assert_non_null(set);
        first = first ? first : set;
        assert_ptr_equal(first, set);
        scrub_unref(&set);
    }
    assert_int_equal(p->n, ORIGINS_MAX);
    assert_null(origins_find(p, &u));
    /* of one place no more secrets than can be searched for: the latest */
    for (int i = 0; i < 2 * SCRUB_SECRETS_MAX; i++) {
        snprintf(host, sizeof(host), "secret %d of it", i);
        struct span one = span_str(host);
        set = origins_give(p, u.scheme, u.host, u.port, &(struct scrub_secret){one, false}, 1, &e);
        assert_non_null(set);
        assert_true(knows(set, one));
        scrub_unref(&set);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(host, sizeof(host), "secret %d of it", SCRUB_SECRETS_MAX - i);
        assert_int_equal(knows(origins_find(p, &u), span_str(host)), i == 0);
    }
    world_free(&w);
}

/* D43, D36: what another sandbox brings to the origin is looked for at once: in the answers to requests under way,
 * and in those to requests that use what was released before. */
static void brought_by_others(void **state)
{
    struct world *w = world_new();
    struct request r = {.path = "/1", .credential = "c", .release = RELEASE_COMES};
    static const char newer[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 20\r\n\r\nthe-value-of-tomorro";
    world_other_front(w);
    world_forward(w, XID(1), r);
    world_credential(w, XID(1), 60000, "up.test", "c", "Bearer " TOKEN);
    world_wait_up(w, 0, "Authorization: Bearer " TOKEN);
    w->secret = "the-value-of-tomorro";
    world_credential(w, OTHER(1), 60000, "up.test", "c", "Bearer the-value-of-tomorro");
    r.path = "/2";
    world_forward(w, OTHER(1), r);
    world_wait_up(w, 1, "Authorization: Bearer the-value-of-tomorro");
    world_answer(w, 0, newer);
    expect_answer(w, XID(1), "********************", true);
    world_answer(w, 1, OK5);
    (void)world_result(w, OTHER(1));
    r.path = "/3";
    r.release = RELEASE_LIVE;
    world_forward(w, XID(3), r);
    world_settle(w);
    size_t up = world_up_has(w, 0, "GET /3 ") ? 0 : world_up_has(w, 1, "GET /3 ") ? 1 : 2;
    world_answer(w, up, newer);
    expect_answer(w, XID(3), "********************", true);
    assert_int_equal(world_count(w, ROLE_JUDGE, M_NEED_RELEASE, XID(3)), 0);
    world_free(&w);
}

/* D46: what was really asked of the upstream is told, for the audit; only that. */
static void the_wider_range_is_told(void **state)
{
    struct world *w = world_new();
    char line[128];
    struct request r = {.path = "/1", .credential = "c", .release = RELEASE_COMES, .range = "bytes=100-199"};
    world_forward(w, XID(1), r);
    world_credential(w, XID(1), 60000, "up.test", "c", "Bearer " TOKEN);
    world_wait_up(w, 0, "Range: bytes=0-");
    world_answer(w, 0, OK5);
    struct span told = world_result(w, XID(1)).range;
    snprintf(line, sizeof(line), "Range: %.*s\r\n", SPAN_FMT(told));
    assert_true(told.n > 0 && !span_eq(told, span_str(r.range)));
    world_wait_up(w, 0, line);
    r.release = RELEASE_LIVE;
    r.range = NULL;
    world_forward(w, XID(2), r);
    world_wait_up(w, 0, "keep-alive\r\n\r\nGET /1");
    world_answer(w, 0, OK5);
    assert_int_equal(world_result(w, XID(2)).range.n, 0);
    r.range = "bytes=0-0,2-2";
    world_forward(w, XID(3), r);
    expect_code(w, XID(3), OUTCOME_NOT_SENT, "range-refused");
    assert_int_equal(world_result(w, XID(3)).range.n, 0);
    world_free(&w);
}

/* D43: long tokens that change often have more forms than are searched for; then the oldest give way. */
static void changing_tokens(void **state)
{
    struct world *w = world_new();
    struct origins *p = &w->carrier->origins;
    struct err e;
    char token[2000] = {0}, before[2000];
    for (unsigned i = 0; i < 21; i++) {
        memcpy(before, token, sizeof(token));
        for (size_t k = 0; k < sizeof(token); k++)
            token[k] = (char)('a' + (k * 7 + k / 26 + i * (k % 5 + 1)) % 26);
        struct span one = span_of(token, sizeof(token));
        struct scrub *set =
            origins_give(p, SPAN("https"), SPAN("up.test"), 443, &(struct scrub_secret){one, false}, 1, &e);
        if (set == NULL)
            fail_msg("token %u: %s", i, e.text);
        assert_true(knows(set, one));
        assert_true(i == 0 || knows(set, span_of(before, sizeof(before))));
        scrub_unref(&set);
    }
    world_free(&w);
}

/* D14: the value stands where the judge found the mark, in the one place that the keeper says too; else nothing is
 * sent. */
static void in_its_slot(void **state)
{
    struct world *w = world_new();
    struct request r = {
        .path = "/bot~c~/x", .credential = "c", .release = RELEASE_COMES, .slot = SLOT_PATH, .slot_at = 4};
    w->slot = SLOT_PATH;
    world_forward(w, XID(1), r);
    world_credential(w, XID(1), 0, "up.test", "c", TOKEN);
    world_wait_up(w, 0, "GET /bot" TOKEN "/x HTTP/1.1\r\n");
    world_answer(w, 0, OK5);
    (void)world_result(w, XID(1));
    r = (struct request){.method = "POST",
                         .credential = "c",
                         .release = RELEASE_COMES,
                         .slot = SLOT_JSON,
                         .slot_at = 6,
                         .once = true,
                         .body = BODY_INLINE,
                         .data = SPAN("{\"k\":\"~c~\",\"n\":1}")};
    w->slot = SLOT_JSON;
    world_forward(w, XID(2), r);
    world_credential(w, XID(2), 0, "up.test", "c", TOKEN);
    world_wait_up(w, 0, "\r\n\r\n{\"k\":\"" TOKEN "\",\"n\":1}");
    world_answer(w, 0, OK5);
    (void)world_result(w, XID(2));
    const struct request wrong[] = {
        {.path = "/bot~c~/x", .slot = SLOT_PATH, .slot_at = 3},
        {.path = "/bot~c~/x", .slot = SLOT_PATH, .slot_at = 4000},
        {.path = "/bot~d~/x", .slot = SLOT_PATH, .slot_at = 4},
        {.path = "/bot~c~/x", .slot = SLOT_QUERY, .slot_at = 4},
        {.path = "/bot~c~/x"},
        {.slot = SLOT_FORM, .slot_at = 0},
        {.slot = SLOT_FORM, .slot_at = 1, .body = BODY_INLINE, .data = SPAN("~c~")},
        {.slot = SLOT_FORM, .slot_at = 0, .body = BODY_STREAM, .size = 3},
        {.slot = SLOT_JSON, .slot_at = 0, .body = BODY_INLINE, .data = SPAN("~c~")},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        r = wrong[i];
        r.credential = "c";
        r.release = RELEASE_COMES;
        r.once = true;
        w->slot = i < 5 ? SLOT_PATH : SLOT_FORM;
        world_forward(w, XID(10 + i), r);
        world_credential(w, XID(10 + i), 0, "up.test", "c", TOKEN);
        assert_int_equal(world_result(w, XID(10 + i)).outcome, OUTCOME_NOT_SENT);
    }
    for (size_t i = 0; i < w->nups; i++)
        assert_false(world_up_has(w, i, "~"));
    world_free(&w);
}

/* F15: who waits for the keeper is refused when it ends, not when the time is up. */
static void keeper_gone(void **state)
{
    struct world *w = world_new();
    world_upstream(w, 1, "127.0.0.1", true, true);
    world_forward(w, XID(1),
                  (struct request){.path = "/1", .upstream = 1, .credential = "c", .release = RELEASE_COMES});
    world_settle(w);
    chan_free(&w->peer[ROLE_KEEPER]);
    expect_code(w, XID(1), OUTCOME_NOT_SENT, "credential-unavailable");
    assert_int_equal(w->nups, 0);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credentials),
        cmocka_unit_test(live_is_what_it_is_not_what_it_is_called),
        cmocka_unit_test(release_late),
        cmocka_unit_test(echoed),
        cmocka_unit_test(echoed_in_a_fold),
        cmocka_unit_test(echoed_in_pieces),
        cmocka_unit_test(encoded),
        cmocka_unit_test(patterns_only),
        cmocka_unit_test(keeper_gone),
        cmocka_unit_test(guesses),
        cmocka_unit_test(digests),
        cmocka_unit_test(given_once),
        cmocka_unit_test(brought_by_others),
        cmocka_unit_test(the_wider_range_is_told),
        cmocka_unit_test(changing_tokens),
        cmocka_unit_test(large_codings_of_a_front),
        cmocka_unit_test(refused_and_not_covered),
        cmocka_unit_test(in_its_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
