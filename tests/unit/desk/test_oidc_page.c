/* Signing in through a provider, as far as the desk: a keeper that is played. Covers E11, E26 (oidc). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/msg.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/msgs.h"
#include "web-approval/ask.h"
#include "web-approval/people/oidc.h"
#include "web-approval/route.h"

#define ISSUER "https://login.example"

/* --- the other side of the channels --------------------------------------- */

static struct dynbuf sent;
static unsigned sent_type;
static uint64_t sent_id;

struct dynbuf *chan_begin(struct chan *c, uint16_t type, uint64_t id)
{
    dynbuf_reset(&sent);
    sent_type = type;
    sent_id = id;
    return &sent;
}

int chan_commit(struct chan *c)
{
    return 0;
}

int frame_take_fd(struct frame *f, unsigned i)
{
    return -1;
}

uint64_t loop_now(const struct loop *l)
{
    return 0;
}

uint64_t loop_wall(const struct loop *l)
{
    return 0;
}

/* --- the desk ------------------------------------------------------------- */

static struct desk desk;
static char dir[] = "/tmp/test_oidc.XXXXXX", db_path[64];
static uint64_t now;

static void answered(struct exchange *done)
{
}

static int group_setup(void **state)
{
    sqlite3 *db;
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(db_path, sizeof(db_path), "%s/l.db", dir);
    if (sqlite3_open(db_path, &db) != SQLITE_OK ||
        sqlite3_exec(db,
                     "CREATE TABLE operator (name TEXT PRIMARY KEY, uid TEXT, groups TEXT, password TEXT, generation "
                     "INTEGER, created_ms INTEGER); INSERT INTO operator VALUES ('alice', NULL, '', '', 1, 1), "
                     "('uid 7', NULL, '', '', 1, 1)",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_close(db) != SQLITE_OK)
        return -1;
    dynbuf_init(&sent, 1 << 16);
    exchange_answered = answered;
    return 0;
}

static int group_teardown(void **state)
{
    dynbuf_free(&sent);
    (void)unlink(db_path);
    return rmdir(dir);
}

static int setup(void **state)
{
    desk = (struct desk){.ledger = (struct chan *)&desk, .keeper = (struct chan *)&desk};
    desk.store = desk_store_new(db_path);
    (void)snprintf(desk.desk_url, sizeof(desk.desk_url), "https://desk.example");
    (void)snprintf(desk.oidc.issuer, sizeof(desk.oidc.issuer), ISSUER);
    (void)snprintf(desk.oidc.client, sizeof(desk.oidc.client), "the client");
    (void)snprintf(desk.oidc.claim, sizeof(desk.oidc.claim), "sub");
    (void)snprintf(desk.oidc.authorization, sizeof(desk.oidc.authorization), ISSUER "/auth?tenant=1");
    (void)snprintf(desk.oidc.name, sizeof(desk.oidc.name), "<Example>");
    now = 100000;
    return desk.store ? guard_init(&desk.guard, span_str(desk.desk_url)) : -1;
}

static int teardown(void **state)
{
    desk_store_free(&desk.store);
    return 0;
}

static struct exchange *get(const char *path, const char *cookie, const char *fields)
{
    struct exchange *x = calloc(1, sizeof(*x));
    struct http_err e;
    size_t seen = 0, used;
    assert_non_null(x);
    *x = (struct exchange){.desk = &desk, .place = PLACE_PAGE, .file = -1, .now_ms = now, .wall_ms = 1000};
    dynbuf_init(&x->raw, 1 << 20);
    dynbuf_init(&x->out, 1 << 20);
    arena_init(&x->arena, 1 << 22);
    (void)dynbuf_addf(&x->raw,
                      "GET %s HTTP/1.1\r\nHost: desk.example\r\nCookie: __Host-countersign-flow=%s\r\n%s\r\n", path,
                      cookie, fields);
    assert_int_equal(http_parse_request(dynbuf_span(&x->raw), HTTP_ORIGIN_SERVER, &seen, &x->head, &used, &e),
                     HTTP_OK);
    route_run(x);
    return x;
}

static void end(struct exchange *x)
{
    dynbuf_free(&x->raw);
    dynbuf_free(&x->out);
    arena_free(&x->arena);
    free(x);
}

static bool says(const struct exchange *x, const char *needle)
{
    return span_find(dynbuf_span(&x->out), span_str(needle)) < x->out.n;
}

struct browser {
    char cookie[GUARD_SEED_TEXT + 1], state[GUARD_FLOW_PROOF + 1];
    bool known; /* somebody has signed in with it */
};

static void take_cookie(const struct exchange *x, struct browser *b, bool known)
{
    size_t n = strcspn(x->flow, "="), end = strcspn(x->flow, ";");
    assert_memory_equal(x->flow, "__Host-countersign-flow", n);
    assert_non_null(strstr(x->flow, known ? "; HttpOnly; SameSite=Lax; Secure; Max-Age=15552000"
                                          : "; HttpOnly; SameSite=Lax; Secure; Max-Age=600"));
    (void)snprintf(b->cookie, sizeof(b->cookie), "%.*s", (int)(end - n - 1), x->flow + n + 1);
}

/* Its button is pressed. */
static void begins(struct browser *b)
{
    now++; /* each is another */
    struct exchange *x = get("/sign-in/oidc/go", b->cookie, "");
    assert_int_equal(x->status, 303);
    assert_memory_equal(x->away, ISSUER "/auth?tenant=1&response_type=code&client_id=the%20client&",
                        sizeof(ISSUER "/auth?tenant=1&response_type=code&client_id=the%20client&") - 1);
    assert_non_null(strstr(x->away, "&redirect_uri=https%3A%2F%2Fdesk.example%2Fsign-in%2Foidc&scope=openid&"));
    const char *at = strstr(x->away, "&state=");
    assert_non_null(at);
    (void)snprintf(b->state, sizeof(b->state), "%.*s", GUARD_FLOW_PROOF, at + 7);
    assert_non_null(strstr(x->away, "&code_challenge_method=S256"));
    take_cookie(x, b, b->known);
    assert_null(strstr(x->away, b->cookie));
    end(x);
}

static struct exchange *returns(const struct browser *b, const char *state, const char *more)
{
    char path[1024];
    (void)snprintf(path, sizeof(path), "/sign-in/oidc?state=%s%s", state, more);
    sent_type = 0;
    return get(path, b->cookie, "Sec-Fetch-Site: cross-site\r\n");
}

static void refused(struct exchange *x, unsigned status, const char *why)
{
    if (x->status != status || (why[0] && !says(x, why)))
        fail_msg("%u %.*s", x->status, SPAN_FMT(dynbuf_span(&x->out)));
    assert_int_equal(x->cookie[0], '\0');
    end(x);
}

/* The keeper's answer to one that waits. */
static void told(uint64_t id, bool ok, struct span who, struct span why)
{
    struct dynbuf b;
    dynbuf_init(&b, 4096);
    msg_put_u8(&b, ok);
    msg_put_span(&b, who);
    msg_put_span(&b, why);
    struct frame f = {.type = M_OIDC_SAID, .id = id, .payload = dynbuf_span(&b)};
    assert_true(ask_answer(&desk, ASK_KEEPER, &f));
    dynbuf_free(&b);
}

static void signs_in(struct browser *b, const char *name)
{
    begins(b);
    struct exchange *x = returns(b, b->state, "&code=c");
    assert_int_equal(x->status, 0);
    assert_int_equal(sent_type, M_OIDC);
    told(sent_id, true, span_str(name), SPAN_NONE);
    assert_int_equal(x->status, 200);
    assert_true(x->onward && x->location[0] == '\0' && x->cookie[0] && says(x, "You are <b>alice</b>"));
    assert_int_equal(x->session->how, HOW_OIDC);
    b->known = true;
    take_cookie(x, b, true);
    end(x);
}

static void only_the_browser_that_began_comes_back(void **state)
{
    struct browser mine = {.cookie = ""}, other = {.cookie = ""}, none = {.cookie = ""};
    begins(&mine);
    begins(&other);
    assert_string_not_equal(mine.state, other.state);
    refused(returns(&none, mine.state, "&code=c"), 403, "did not begin in this browser");
    refused(returns(&mine, other.state, "&code=c"), 403, "did not begin in this browser");
    refused(returns(&mine, "", "&code=c"), 403, "did not begin in this browser");
    refused(returns(&mine, mine.state, "&code=c&iss=https%3A%2F%2Fevil.example"), 403, "another provider");
    refused(returns(&mine, mine.state, "&error=access_denied"), 403, "says no: access_denied");
    refused(returns(&mine, mine.state, "&error=%3Cb%3E"), 403, "The provider says no<");
    refused(returns(&mine, mine.state, ""), 400, "sent no code");
    refused(returns(&mine, mine.state, "&code=c&code=d"), 400, "");
    assert_int_equal(sent_type, 0); /* of all these the keeper was asked nothing */
    struct exchange *x = returns(&mine, mine.state, "&code=c&iss=https%3A%2F%2Flogin.example");
    assert_int_equal(sent_type, M_OIDC);
    told(sent_id, false, SPAN_NONE, SPAN("its <i>words</i>"));
    refused(x, 403, "Its &lt;i&gt;words");
    x = returns(&mine, mine.state, "&code=c");
    told(sent_id, true, SPAN("alice"), SPAN_NONE);
    assert_int_equal(x->status, 200);
    end(x);
    now += GUARD_FLOW_MS;
    refused(returns(&other, other.state, "&code=c"), 403, "too long ago");
    refused(get("/sign-in/oidc/go", "", "Sec-Fetch-Site: cross-site\r\n"), 403, "did not come from the page");
    refused(get("/sign-in/oidc/go", "", "Sec-Fetch-Site: same-site\r\n"), 403, "did not come from the page");
}

static void it_works_once_and_for_people_alone(void **state)
{
    static const struct span nobody[] = {SPAN("Alice"), SPAN("alic"),  SPAN("alice "),   SPAN("bob"),
                                         SPAN("uid 0"), SPAN("uid 7"), SPAN("alice\0x"), SPAN("' OR 1=1 --")};
    struct browser b = {.cookie = ""};
    for (size_t i = 0; i < sizeof nobody / sizeof nobody[0]; i++) {
        struct browser c = {.cookie = ""};
        begins(&c);
        struct exchange *x = returns(&c, c.state, "&code=c");
        told(sent_id, true, nobody[i], SPAN_NONE);
        refused(x, 403, "Not signed in");
    }
    begins(&b);
    struct browser twice = b;
    struct exchange *x = returns(&b, b.state, "&code=c");
    told(sent_id, true, SPAN("alice"), SPAN_NONE);
    assert_int_equal(x->status, 200);
    end(x);
    refused(returns(&twice, twice.state, "&code=c"), 403, "was done already");
}

static void strangers_wait_for_strangers(void **state)
{
    struct browser known = {.cookie = ""}, s[OIDC_STRANGERS], late = {.cookie = ""};
    struct exchange *waits[OIDC_STRANGERS];
    uint64_t first = 0;
    signs_in(&known, "alice");
    for (size_t i = 0; i < OIDC_STRANGERS; i++) {
        s[i] = (struct browser){.cookie = ""};
        begins(&s[i]);
        waits[i] = returns(&s[i], s[i].state, "&code=c");
        assert_int_equal(waits[i]->status, 0);
        first = first ? first : sent_id;
    }
    begins(&late);
    refused(returns(&late, late.state, "&code=c"), 503, "Too many sign in at once");
    signs_in(&known, "alice");
    begins(&known);
    struct exchange *x = returns(&known, known.state, "&code=c");
    uint64_t own = sent_id;
    assert_int_equal(x->status, 0);
    refused(returns(&known, known.state, "&code=c"), 503, "Too many"); /* one at once of each */
    told(own, true, SPAN("alice"), SPAN_NONE);
    assert_int_equal(x->status, 200);
    end(x);
    told(first, false, SPAN_NONE, SPAN("no"));
    signs_in(&late, "alice");
    ask_gone(&desk, ASK_KEEPER);
    for (size_t i = 0; i < OIDC_STRANGERS; i++)
        refused(waits[i], i == 0 ? 403 : 503, "");
}

/* So many a minute of all that are not known; those are not of them. */
static void strangers_try_so_often(void **state)
{
    struct browser known = {.cookie = ""};
    signs_in(&known, "alice");
    for (unsigned i = 0;; i++) {
        struct browser b = {.cookie = ""};
        begins(&b);
        struct exchange *x = returns(&b, b.state, "&code=c");
        if (x->status == 429) {
            assert_int_equal(i, ATTEMPT_ALL - 1);
            end(x);
            break;
        }
        told(sent_id, false, SPAN_NONE, SPAN("no"));
        refused(x, 403, "No");
    }
    for (unsigned i = 0; i < ATTEMPT_FREE; i++) {
        begins(&known);
        struct exchange *x = returns(&known, known.state, "&code=c");
        told(sent_id, false, SPAN_NONE, SPAN("no"));
        refused(x, 403, "No");
    }
    begins(&known);
    refused(returns(&known, known.state, "&code=c"), 429, "Too many tries");
}

static void without_a_provider_there_is_no_button(void **state)
{
    struct exchange *x = get("/sign-in", "", "");
    assert_true(says(x, "href=\"/sign-in/oidc/go\">Sign in with &lt;Example&gt;</a>"));
    end(x);
    desk.oidc.issuer[0] = '\0';
    x = get("/sign-in", "", "");
    assert_false(says(x, "oidc"));
    end(x);
    refused(get("/sign-in/oidc/go", "", ""), 404, "");
    refused(get("/sign-in/oidc?code=c&state=s", "", ""), 404, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_the_browser_that_began_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(it_works_once_and_for_people_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(strangers_wait_for_strangers, setup, teardown),
        cmocka_unit_test_setup_teardown(strangers_try_so_often, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_provider_there_is_no_button, setup, teardown)};
    return cmocka_run_group_tests_name("oidc on the page", tests, group_setup, group_teardown);
}
