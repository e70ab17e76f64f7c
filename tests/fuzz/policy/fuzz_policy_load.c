/* A policy text either compiles to an image that opens, answers every question and none more loosely for another
 * spelling, or is refused in words with a place. A pack and a CA are whatever follows the first NUL of the input. */
#include "policy/load/load.h"
#include "policy/manifest.h"
#include "policy/policy.h"
#include "tests/fuzz/fuzz.h"
#include "tests/ts_module.h"

static int fetch(void *arg, enum policy_ref kind, struct span name, struct span *text, struct err *e)
{
    const struct span *pack = arg;
    *text = *pack;
    return pack->n && kind && name.n ? 0 : err_set(e, "there is none");
}

static void judge(const struct policy *p, struct arena *a)
{
    static const char *const urls[] = {"/", "/a//b;c", "/x.git/info/refs", "/x/git-receive-pack", "/@a%2Fb"};
    struct subject s = {.sandbox = SPAN("ci-1")};
    struct decision d;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct request r = {.scheme = SPAN("https"),
                            .host = SPAN("a.example"),
                            .port = 443,
                            .method = i == 3 ? SPAN("POST") : SPAN("GET"),
                            .path = span_str(urls[i]),
                            .query = SPAN("a=b;c&service=git-receive-pack"),
                            .has_query = true,
                            .body_complete = true};
        policy_judge(p, &s, &r, 0, a, &d);
        MUST_HOLD(d.code != NULL && !d.need_body);
        MUST_HOLD(d.verdict == VERDICT_DENY || d.rule.id.n > 0 || strcmp(d.code, "learning") == 0);
        MUST_HOLD(d.credential < 0 ||
                  (d.verdict != VERDICT_DENY &&
                   policy_credential_may_go(p, (size_t)d.credential, r.scheme, r.host, r.port, r.path)));
    }
}

/* What a rule stops is stopped in another spelling, too (B64). */
static void respell(const struct policy *p, struct arena *a)
{
    static const struct {
        struct span path, query;
    } same[][2] = {{{SPAN("/a/b"), SPAN("a=b")}, {SPAN("/A./b%20"), SPAN("A%3D%EF%BD%82")}},
                   {{SPAN("/a:b/c"), SPAN("")}, {SPAN("/a%3Ab+/%EF%BD%83/"), SPAN("")}},
                   {{SPAN("/@a/b"), SPAN("c=1")}, {SPAN("/%40a;x//b"), SPAN("c=0x1")}}};
    struct subject s = {.sandbox = SPAN("ci-1")};
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        struct decision d[2];
        for (size_t k = 0; k < 2; k++) {
            struct request r = {.scheme = SPAN("https"),
                                .host = SPAN("a.example"),
                                .port = 443,
                                .method = SPAN("PUT"),
                                .path = same[i][k].path,
                                .query = same[i][k].query,
                                .has_query = same[i][k].query.n > 0,
                                .body_complete = true};
            policy_judge(p, &s, &r, 0, a, &d[k]);
        }
        MUST_HOLD(d[0].rule.id.n == 0 || d[1].verdict <= d[0].verdict);
    }
}

/* Whatever it says, what a sandbox is told of it is one value of JSON, or a module of TypeScript with nothing of it
 * beside the strings and comments. */
static void tell(const struct policy *p, struct arena *a)
{
    struct subject s = {.sandbox = SPAN("ci-1")};
    struct manifest_want want = {.subject = &s, .room = 1 << 14};
    for (int form = 0; form < 3; form++) {
        struct dynbuf b;
        struct jsonw w;
        dynbuf_init(&b, 1 << 16);
        jsonw_begin(&w, &b);
        if (form == 0)
            (void)policy_manifest(p, &want, &w);
        else if (form == 1)
            (void)policy_openapi(p, &want, &w);
        else
            (void)policy_typescript(p, &want, &b);
        MUST_HOLD(dynbuf_ok(&b));
        MUST_HOLD(form == 2 ? ts_module_holds(dynbuf_span(&b)) : json_parse(dynbuf_span(&b), a) != NULL);
        dynbuf_free(&b);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct policy_problem v[8];
    struct policy_problems problems = {v, 0, 8};
    struct err e = {""};
    struct dynbuf out;
    struct arena a;
    if (n > 1 << 16)
        return 0;
    uint8_t *copy = fuzz_copy(span_of(data, n));
    struct span text, pack;
    (void)span_cut(span_of(copy, n), 0, &text, &pack);
    struct policy_file file = {"policy.yaml", text, n && (data[0] & 1) && text.n > 200};
    dynbuf_init(&out, POLICY_IMAGE_MAX);
    arena_init(&a, 1 << 20);
    if (policy_load(&file, 1, fetch, &pack, 0, &out, &problems, &e) == 0) {
        struct policy *p = policy_open(dynbuf_span(&out), &e);
        MUST_HOLD(p);
        judge(p, &a);
        respell(p, &a);
        arena_free(&a);
        arena_init(&a, 1 << 23);
        tell(p, &a);
        policy_close(p);
    } else {
        MUST_HOLD(e.text[0] && problems.n > 0);
    }
    dynbuf_free(&out);
    arena_free(&a);
    free(copy);
    return 0;
}
