/* The fetcher's jobs, what is pure of them: what a program printed, and the question on its way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/net/chan.h"
#include "common/net/loop.h"
#include "proxy/fetcher/job/program.h"
#include "proxy/fetcher/job/sources.h"

static struct err e;

static void is_printed(const struct wire_fetch *f, struct span printed, struct span value, uint64_t lifetime)
{
    struct arena a;
    struct span got;
    uint64_t ms;
    arena_init(&a, 1024 * 1024);
    int rc = program_value(f, printed, &a, &got, &ms, &e);
    assert_int_equal(rc, value.p ? 0 : -1);
    if (rc == 0)
        assert_true(span_eq(got, value) && ms == lifetime);
    else
        assert_null(strstr(e.text, "canary"));
    arena_free(&a);
}

static void what_was_printed(void **state)
{
    const struct wire_fetch text = {.nsettings = 1, .setting = {{SPAN("argv"), SPAN("/bin/op")}}};
    const struct wire_fetch json = {.nsettings = 2,
                                    .setting = {{SPAN("value"), SPAN("/a/t")}, {SPAN("expires_in"), SPAN("/s")}}};
    is_printed(&text, SPAN("{ a token }\n"), SPAN("{ a token }\n"), 0);
    is_printed(&json, SPAN("{\"a\":{\"t\":\"canary\"},\"s\":60}"), SPAN("canary"), 60000);
    is_printed(&json, SPAN("{\"a\":{\"t\":\"canary\"},\"s\":59.5}"), SPAN("canary"), 59500);
    is_printed(&json, SPAN("{\"a\":{\"t\":\"canary\"},\"s\":0}"), SPAN("canary"), 1); /* not: it does not say */
    static const struct span bad[] = {SPAN("canary"),
                                      SPAN("{\"a\":{\"t\":1},\"s\":60}"),
                                      SPAN("{\"a\":{\"t\":\"canary\"}}"),
                                      SPAN("{\"a\":{\"t\":\"canary\"},\"s\":\"60\"}"),
                                      SPAN("{\"a\":{\"t\":\"canary\"},\"s\":-1}"),
                                      SPAN("{\"a\":{\"t\":\"canary\"},\"s\":60} {}"),
                                      SPAN("{\"a\":{\"t\":\"canary\",\"t\":\"canary\"},\"s\":60}")};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        is_printed(&json, bad[i], SPAN_NONE, 0);
}

/* What /bin/sh prints with these settings behind its script. */
static void shell_prints(const char *script, struct wire_setting one, struct wire_setting other, const char *printed)
{
    const struct wire_fetch f = {.nsettings = 5,
                                 .setting = {{SPAN("argv"), SPAN("/bin/sh")},
                                             {SPAN("argv"), SPAN("-c")},
                                             {SPAN("argv"), span_str(script)},
                                             one,
                                             other}};
    char got[256] = "";
    int pid, out, status;
    assert_int_equal(program_start(&f, -1, &pid, &out, &e), 0);
    assert_true(read(out, got, sizeof(got) - 1) > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_string_equal(got, printed);
    close(out);
}

/* What comes of a socket of each family, tried by a child behind the filter: a bit for each that is to be had. */
static unsigned sockets_of(bool own_network)
{
    static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_VSOCK, AF_AX25, AF_UNSPEC};
    int status, pid = fork();
    if (pid == 0) {
        unsigned had = 0;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || program_filter(own_network, &e) != 0)
            _exit(255);
        for (unsigned i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
            int fd = socket(families[i], families[i] == AF_NETLINK ? SOCK_RAW : SOCK_STREAM, 0);
            had |= (fd >= 0 || errno != EACCES) << i;
        }
        _exit((int)had);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? (unsigned)WEXITSTATUS(status) : 255;
}

static void sockets_are_of_few_families(void **state)
{
    assert_int_equal(sockets_of(false), 1);
    assert_int_equal(sockets_of(true), 7);
}

/* Behind the filter there are no namespaces, as where ordinary users may have none. */
static void without_namespaces_the_words_say_so(void **state)
{
    static const struct wire_fetch f = {.nhosts = 1, .nsettings = 1, .setting = {{SPAN("argv"), SPAN("/bin/true")}}};
    int status, out, started, pair[2], pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || program_filter(true, &e) != 0 ||
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
            _exit(2);
        _exit(program_start(&f, pair[0], &started, &out, &e) != 0 &&
                      strstr(e.text, "/bin/true has hosts:, and this system gives it no network of its own") != NULL
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Where user namespaces may not be had the words say so; elsewhere there is no interface but the loopback's. */
static void a_program_with_hosts_is_alone(void **state)
{
    static const struct wire_fetch f = {.nhosts = 1,
                                        .nsettings = 3,
                                        .setting = {{SPAN("argv"), SPAN("/bin/sh")},
                                                    {SPAN("argv"), SPAN("-c")},
                                                    {SPAN("argv"), SPAN("id -u; echo $https_proxy; "
                                                                        "sed -n '3,$s/:.*//p' /proc/net/dev")}}};
    char got[256] = "", want[256];
    int pid, out, status, pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    if (program_start(&f, pair[0], &pid, &out, &e) != 0) {
        assert_non_null(strstr(e.text, "no network of its own"));
        skip();
    }
    for (size_t n = 0; n < sizeof(got) - 1;) {
        ssize_t more = read(out, got + n, sizeof(got) - 1 - n);
        if (more <= 0)
            break;
        n += (size_t)more;
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    snprintf(want, sizeof(want), "%u\nhttp://127.0.0.1:3128\n    lo\n", geteuid());
    assert_string_equal(got, want);
    struct dynbuf none;
    struct frame frame;
    dynbuf_init(&none, 64);
    close(pair[0]);
    assert_int_equal(chan_read_one(pair[1], &frame, &none), 0);
    assert_int_equal(frame.nfds, 1);
    assert_int_equal(listen_port(frame.fd[0]), 3128); /* the relay's, which listens in there */
    close(frame.fd[0]);
    close(pair[1]);
    close(out);
}

/* A shell takes the last of two variables of one name, others the first: there is one. */
static void a_variable_of_the_policy_stands_alone(void **state)
{
    static uint8_t name[4 + 256];
    static const struct wire_setting none = {SPAN("value"), SPAN("")};
    memset(name, 'N', sizeof(name));
    memcpy(name, "env.", 4);
    shell_prints("echo $PATH $LANG $TZ", none, none, "/usr/local/bin:/usr/bin:/bin C.UTF-8 UTC0\n");
    shell_prints("echo $PATH $LANG $TZ", (struct wire_setting){SPAN("env.PATH"), SPAN("/of/policy")},
                 (struct wire_setting){SPAN("env.TZ"), SPAN("")}, "/of/policy C.UTF-8\n");
    shell_prints("env | grep -c ^N*=", (struct wire_setting){span_of(name, sizeof(name)), SPAN("x")}, none, "1\n");
}

static void what_a_token_endpoint_is_asked(void **state)
{
    const struct wire_fetch f = {.nsettings = 5,
                                 .setting = {{SPAN("grant"), SPAN("jwt_bearer")},
                                             {SPAN("client_id"), SPAN("a b&c=d")},
                                             {SPAN("assertion"), SPAN("e.f")},
                                             {SPAN("audience"), SPAN("one")},
                                             {SPAN("audience"), SPAN("\xc3\xa4%")}}};
    const struct wire_fetch signs = {.nsettings = 3,
                                     .setting = {{SPAN("grant"), SPAN("client_credentials")},
                                                 {SPAN("client_id"), SPAN("c")},
                                                 {SPAN("client_assertion"), SPAN("e.f")}}};
    const struct wire_fetch narrows = {.nsettings = 3,
                                       .setting = {{SPAN("grant"), SPAN("token_exchange")},
                                                   {SPAN("subject_token"), SPAN("ya29.x")},
                                                   {SPAN("options"), SPAN("{\"a\":[]}")}}};
    const struct wire_fetch none = {.nsettings = 1, .setting = {{SPAN("grant"), SPAN("password")}}};
    struct dynbuf b;
    dynbuf_init(&b, 4096);
    assert_int_equal(oauth2_question(&f, &b, &e), 0);
    assert_true(
        span_eq(dynbuf_span(&b), SPAN("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&"
                                      "client_id=a%20b%26c%3Dd&assertion=e.f&audience=one&audience=%C3%A4%25")));
    dynbuf_reset(&b);
    assert_int_equal(oauth2_question(&signs, &b, &e), 0);
    assert_true(span_eq(dynbuf_span(&b),
                        SPAN("grant_type=client_credentials&client_id=c&client_assertion_type=urn%3Aietf%3Aparams%3A"
                             "oauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=e.f")));
    dynbuf_reset(&b);
    assert_int_equal(oauth2_question(&narrows, &b, &e), 0);
    assert_true(span_eq(dynbuf_span(&b), SPAN("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&"
                                              "subject_token=ya29.x&options=%7B%22a%22%3A%5B%5D%7D")));
    dynbuf_reset(&b);
    assert_int_equal(oauth2_question(&none, &b, &e), -1);
    dynbuf_free(&b);
}

static void what_a_token_endpoint_answers(void **state)
{
    static const struct {
        const char *json, *value, *keep; /* value NULL: refused */
        uint64_t ms;
    } rows[] = {
        {"{\"access_token\":\"canary\",\"token_type\":\"bearer\",\"expires_in\":60}", "canary", "", 60000},
        {"{\"access_token\":\"canary\",\"token_type\":\"Bearer\",\"expires_in\":\"60\",\"refresh_token\":\"r\"}",
         "canary", "r", 60000},
        {"{\"access_token\":\"canary\",\"token_type\":\"Bearer\",\"expires_in\":3599.75}", "canary", "", 3599750},
        {"{\"access_token\":\"canary\",\"token_type\":\"Bearer\",\"expires_in\":1e3}", "canary", "", 1000000},
        {"{\"access_token\":\"canary\",\"token_type\":\"Bearer\",\"expires_in\":0}", "canary", "", 1},
        {"{\"access_token\":\"canary\",\"token_type\":\"Bearer\"}", "canary", "", 0},
        {"{\"access_token\":\"canary\",\"token_type\":\"N_A\",\"expires_in\":null}", "canary", "", 0},
        {"{\"access_token\":\"canary\"}", NULL, "", 0},
        {"{\"access_token\":\"canary\",\"token_type\":\"mac\"}", NULL, "", 0},
        {"{\"access_token\":\"canary\",\"token_type\":\"Bearer\",\"expires_in\":1e10,\"refresh_token\":\"r\"}", NULL,
         "r", 0}, /* what was asked with is used up all the same */
        {"{\"access_token\":[\"canary\"],\"token_type\":\"Bearer\"}", NULL, "", 0},
        {"{\"access_token\":\"canary\",\"token_type\":\"Bearer\",\"expires_in\":-1}", NULL, "", 0},
        {"{\"access_token\":\"canary\",\"access_token\":\"canary\",\"token_type\":\"Bearer\"}", NULL, "", 0},
        {"[\"canary\"]", NULL, "", 0},
        {"access_token=canary", NULL, "", 0},
        {"", NULL, "", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_fetched got;
        struct arena a;
        arena_init(&a, 1024 * 1024);
        int rc = oauth2_answer(span_str(rows[i].json), &a, &got, &e);
        assert_int_equal(rc, rows[i].value ? 0 : -1);
        assert_true(span_eq(got.keep, span_str(rows[i].keep)));
        if (rc == 0)
            assert_true(span_eq(got.value, span_str(rows[i].value)) && got.lifetime_ms == rows[i].ms);
        else
            assert_null(strstr(e.text, "canary"));
        arena_free(&a);
    }
}

static void what_a_vault_says_of_a_renewal(void **state)
{
    static const struct {
        const char *json;
        bool of_token;
        int rc;
        uint64_t ms;
    } rows[] = {
        {"{\"lease_id\":\"x\",\"renewable\":true,\"lease_duration\":60}", false, 0, 60000},
        {"{\"lease_duration\":0}", false, -1, 0}, /* at its end */
        {"{\"lease_duration\":\"60\"}", false, -1, 0},
        {"{\"auth\":{\"lease_duration\":60}}", false, -1, 0},
        {"[]", false, -1, 0},
        {"", false, -1, 0},
        {"{\"auth\":{\"client_token\":\"t\",\"lease_duration\":60}}", true, 0, 60000},
        {"{\"auth\":{\"lease_duration\":0}}", true, 0, 0}, /* without end */
        {"{\"auth\":{\"lease_duration\":99999999999}}", true, 0, UINT64_C(4294967295000)},
        {"{\"lease_duration\":60,\"auth\":null}", true, -1, 0},
        {"{\"auth\":{}}", true, -1, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t ms = 0;
        struct arena a;
        arena_init(&a, 1024 * 1024);
        assert_int_equal(vault_renewed(span_str(rows[i].json), rows[i].of_token, &a, &ms), rows[i].rc);
        assert_true(rows[i].rc != 0 || ms == rows[i].ms);
        arena_free(&a);
    }
}

static void what_a_vault_answers(void **state)
{
    static const struct span where = SPAN("/data/data/t");
    struct wire_fetched got;
    struct arena a;
    arena_init(&a, 1024 * 1024);
    assert_int_equal(
        vault_answer(SPAN("{\"lease_id\":\"\",\"lease_duration\":0,\"data\":{\"data\":{\"t\":\"canary\"}}}"), where,
                     &a, &got, &e),
        0);
    assert_true(span_eq(got.value, SPAN("canary")) && got.lifetime_ms == 0 && got.keep.n == 0);
    assert_int_equal(
        vault_answer(SPAN("{\"lease_id\":\"x\",\"lease_duration\":9,\"data\":{\"data\":{\"t\":\"canary\"}}}"), where,
                     &a, &got, &e),
        0);
    assert_true(got.lifetime_ms == 9000 && got.keep.n == 1);
    static const struct span bad[] = {
        SPAN("{\"data\":{\"data\":{\"t\":[\"canary\"]}}}"), SPAN("{\"data\":{}}"), SPAN("[]"),
        SPAN("{\"lease_duration\":-1,\"data\":{\"data\":{\"t\":\"canary\"}}}"), SPAN("")};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(vault_answer(bad[i], where, &a, &got, &e), -1);
    arena_free(&a);
}

static void what_github_is_asked(void **state)
{
    struct wire_fetch f = {.nsettings = 4,
                           .setting = {{SPAN("repositories"), SPAN("app")},
                                       {SPAN("permission.contents"), SPAN("write")},
                                       {SPAN("repositories"), SPAN("docs")},
                                       {SPAN("permission.issues"), SPAN("read")}}};
    struct dynbuf b;
    dynbuf_init(&b, 4096);
    assert_int_equal(github_app_question(&f, &b, &e), 0);
    assert_true(span_eq(dynbuf_span(&b), SPAN("{\"repositories\":[\"app\",\"docs\"],\"permissions\":{"
                                              "\"contents\":\"write\",\"issues\":\"read\"}}")));
    f.setting[0].value = SPAN("*");
    dynbuf_reset(&b);
    assert_int_equal(github_app_question(&f, &b, &e), 0);
    assert_true(span_starts(dynbuf_span(&b), SPAN("{\"permissions\":{")));
    f.nsettings = 0; /* no repositories are not all of them */
    dynbuf_reset(&b);
    assert_int_equal(github_app_question(&f, &b, &e), -1);
    dynbuf_free(&b);
}

/* 2026-11-23T09:00:00Z is 1795424400000. */
static void what_github_answers(void **state)
{
    static const uint64_t before = 1795424400000 - 5000;
    static const struct {
        const char *json;
        uint64_t ms; /* 0: refused */
    } rows[] = {
        {"{\"token\":\"ghs_canary\",\"expires_at\":\"2026-11-23T09:00:00Z\",\"permissions\":{}}", 5000},
        {"{\"token\":\"ghs_canary\",\"expires_at\":\"2026-11-23T10:00:00.123+01:00\"}", 5000},
        {"{\"token\":\"ghs_canary\",\"expires_at\":\"2026-11-23T08:00:00Z\"}", 1}, /* not: it does not say */
        {"{\"token\":\"ghs_canary\",\"expires_at\":\"2026-11-23T09:00:00\"}", 0},
        {"{\"token\":\"ghs_canary\",\"expires_at\":1795424400}", 0},
        {"{\"token\":\"ghs_canary\"}", 0},
        {"{\"expires_at\":\"2026-11-23T09:00:00Z\"}", 0},
        {"{\"token\":[\"ghs_canary\"],\"expires_at\":\"2026-11-23T09:00:00Z\"}", 0},
        {"[]", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_fetched got;
        struct arena a;
        arena_init(&a, 1024 * 1024);
        int rc = github_app_answer(span_str(rows[i].json), before, &a, &got, &e);
        assert_int_equal(rc, rows[i].ms ? 0 : -1);
        if (rc == 0)
            assert_true(span_eq(got.value, SPAN("ghs_canary")) && got.lifetime_ms == rows[i].ms);
        else
            assert_null(strstr(e.text, "canary"));
        arena_free(&a);
    }
}

#define STS(action, keys, more)                                                                                      \
    "<" action "Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><" action "Result><Credentials>" keys   \
    "</Credentials></" action "Result>" more "</" action "Response>"
#define PAIR  "<AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>canary/1</SecretAccessKey>"
#define TOKEN "<SessionToken>canary==</SessionToken>"
#define UNTIL "<Expiration>2026-11-23T09:00:00Z</Expiration>"

static void what_sts_answers(void **state)
{
    static const struct {
        const char *xml;
        bool fine;
    } rows[] = {
        {STS("AssumeRole", PAIR TOKEN UNTIL, ""), true},
        {STS("AssumeRoleWithWebIdentity", PAIR TOKEN UNTIL, "<X>1</X>"), true},
        {STS("AssumeRole", PAIR UNTIL, ""), false},
        {STS("AssumeRole", TOKEN UNTIL, ""), false},
        {STS("AssumeRole", PAIR TOKEN, ""), false},
        {STS("AssumeRole", PAIR TOKEN "<Expiration>soon</Expiration>", ""), false},
        {STS("AssumeRole", PAIR TOKEN TOKEN UNTIL, ""), false},
        {STS("AssumeRole", "<AccessKeyId>A:B</AccessKeyId><SecretAccessKey>canary</SecretAccessKey>" TOKEN UNTIL, ""),
         false},
        {STS("GetSessionToken", PAIR TOKEN UNTIL, ""), false},
        {"{\"canary\":1}", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_fetched got;
        struct dynbuf value;
        struct arena a;
        arena_init(&a, 256 * 1024);
        dynbuf_init(&value, 1024);
        assert_int_equal(aws_answer(span_str(rows[i].xml), 1795424400000 - 5000, &a, &value, &got, &e),
                         rows[i].fine ? 0 : -1);
        if (rows[i].fine)
            assert_true(span_eq(got.value, SPAN("ASIA1:canary/1:canary==")) && got.lifetime_ms == 5000);
        else
            assert_null(strstr(e.text, "canary"));
        dynbuf_free(&value);
        arena_free(&a);
    }
}

static void what_the_sts_of_tencent_answers(void **state)
{
    static const struct {
        const char *json, *words; /* words NULL: fine */
    } rows[] = {
        {"{\"Response\":{\"Credentials\":{\"Token\":\"canary==\",\"TmpSecretId\":\"AKID1\",\"TmpSecretKey\":\"k=\"},"
         "\"ExpiredTime\":1795424400,\"RequestId\":\"1\"}}",
         NULL},
        {"{\"Response\":{\"Credentials\":{\"Token\":\"canary==\",\"TmpSecretId\":\"AKID1\",\"TmpSecretKey\":\"k=\"}}"
         "}",
         "ExpiredTime"},
        {"{\"Response\":{\"Credentials\":{\"TmpSecretId\":\"AKID1\",\"TmpSecretKey\":\"canary\"},\"ExpiredTime\":1}}",
         "not all of"},
        {"{\"Response\":{\"Error\":{\"Code\":\"AuthFailure.SignatureFailure\",\"Message\":\"canary\"}}}",
         "STS refused it: AuthFailure.SignatureFailure"},
        {"{\"Response\":{\"Error\":{\"Code\":\"canary 1\"}}}", "STS refused it"},
        {"{\"Response\":[\"canary\"]}", "not a JSON object"},
        {"canary", "not a JSON object"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_fetched got;
        struct dynbuf value;
        struct arena a;
        arena_init(&a, 1024 * 1024);
        dynbuf_init(&value, 1024);
        int rc = tencent_answer(span_str(rows[i].json), 1795424400000 - 5000, &a, &value, &got, &e);
        assert_int_equal(rc, rows[i].words ? -1 : 0);
        if (rc == 0)
            assert_true(span_eq(got.value, SPAN("AKID1:k=:canary==")) && got.lifetime_ms == 5000);
        else
            assert_true(strstr(e.text, rows[i].words) != NULL && strstr(e.text, "canary") == NULL);
        dynbuf_free(&value);
        arena_free(&a);
    }
}

static void an_error_is_told_by_its_code_alone(void **state)
{
    struct arena a;
    arena_init(&a, 1024 * 1024);
    assert_true(span_eq(source_error_code(SPAN("{\"error\":\"invalid_grant\"}"), &a), SPAN("invalid_grant")));
    static const struct span bad[] = {SPAN("{\"error\":\"Canary 1\"}"), SPAN("{\"error\":{\"a\":\"b\"}}"),
                                      SPAN("canary")};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(source_error_code(bad[i], &a).n, 0);
    assert_true(
        span_eq(aws_error_code(SPAN("<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>"), &a),
                SPAN("AccessDenied")));
    assert_int_equal(
        aws_error_code(SPAN("<ErrorResponse><Error><Code>canary 1</Code></Error></ErrorResponse>"), &a).n, 0);
    arena_free(&a);
}

static void a_question_comes_as_it_went(void **state)
{
    struct wire_fetch w = {
        .kind = 5,
        .timeout_ms = 2000,
        .to = {.scheme = SPAN("https"), .host = SPAN("a.example"), .port = 443},
        .nhosts = 2,
        .host = {{.host = SPAN("b.example"), .port = 443}, {.host = SPAN("c.example"), .port = 8443}},
        .nsettings = 3,
        .setting = {{SPAN("argv"), SPAN("x")}, {SPAN("n"), SPAN("17")}, {SPAN("argv"), SPAN("y")}}};
    static struct wire_fetch got;
    struct dynbuf b;
    dynbuf_init(&b, 64 * 1024);
    wire_put_fetch(&b, &w);
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_fetch(&m, &got), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_true(span_eq(got.host[1].host, SPAN("c.example")) && got.host[1].port == 8443 && got.nhosts == 2);
    assert_ptr_equal(wire_place(&got, 0), &got.to);
    assert_null(wire_place(&got, 1));
    got.to.host = SPAN_NONE;
    assert_ptr_equal(wire_place(&got, 1), &got.host[1]);
    assert_null(wire_place(&got, 2));
    assert_true(span_eq(wire_setting(&got, SPAN("argv"), 1), SPAN("y")));
    assert_int_equal(wire_setting(&got, SPAN("argv"), 2).n, 0);
    assert_int_equal(wire_setting_u64(&got, SPAN("n"), 3), 17);
    assert_int_equal(wire_setting_u64(&got, SPAN("argv"), 3), 3);
    for (size_t n = 0; n < b.n; n++) { /* a part of it is none */
        m = msg_in(span_of(b.p, n));
        assert_true(wire_get_fetch(&m, &got) != 0 || msg_end(&m) != 0);
    }
    static uint8_t name[4 + 256] = "env."; /* the longest that a policy has */
    w.setting[0].key = span_of(name, sizeof(name));
    dynbuf_reset(&b);
    wire_put_fetch(&b, &w);
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_fetch(&m, &got), 0);
    w.timeout_ms = FETCH_TIMEOUT_MAX_MS + 1;
    dynbuf_reset(&b);
    wire_put_fetch(&b, &w);
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_fetch(&m, &got), -1);
    dynbuf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_printed),
        cmocka_unit_test(a_variable_of_the_policy_stands_alone),
        cmocka_unit_test(sockets_are_of_few_families),
        cmocka_unit_test(without_namespaces_the_words_say_so),
        cmocka_unit_test(a_program_with_hosts_is_alone),
        cmocka_unit_test(what_a_token_endpoint_is_asked),
        cmocka_unit_test(what_a_token_endpoint_answers),
        cmocka_unit_test(what_a_vault_answers),
        cmocka_unit_test(what_a_vault_says_of_a_renewal),
        cmocka_unit_test(what_github_is_asked),
        cmocka_unit_test(what_github_answers),
        cmocka_unit_test(what_sts_answers),
        cmocka_unit_test(what_the_sts_of_tencent_answers),
        cmocka_unit_test(an_error_is_told_by_its_code_alone),
        cmocka_unit_test(a_question_comes_as_it_went),
    };
    return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
