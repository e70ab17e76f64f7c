/* A record that is taken says what JSON says it says; and whatever it says, the rule proposed from it loads. */
#include "common/json/json.h"
#include "cli/policy/learn/learn.h"
#include "policy/load/load.h"
#include "tests/fuzz/fuzz.h"

static int no_fetch(void *arg, enum policy_ref kind, struct span name, struct span *text, struct err *e)
{
    (void)arg;
    (void)kind;
    (void)name;
    (void)text;
    return err_set(e, "there is none");
}

static void same(const struct json *j, const char *key, struct span got)
{
    MUST_HOLD(span_eq(json_text(j, span_str(key)), got));
}

static void says_the_same(struct span json, const struct record *r)
{
    struct arena a;
    arena_init(&a, 1 << 26);
    const struct json *j = json_parse(json, &a);
    if (j) {
        same(j, "path", r->path);
        same(j, "host", r->host);
        same(j, "method", r->method);
        same(j, "sandbox", r->sandbox);
        same(j, "verdict", r->verdict);
        same(j, "effect", r->effect);
    }
    arena_free(&a);
}

static void proposal_loads(const struct record *r)
{
    static const struct span packs[] = {SPAN("git."), SPAN("npm."), SPAN("pypi.")};
    struct learnt *t = calloc(1, sizeof(*t));
    struct dynbuf text, image;
    struct err e;
    MUST_HOLD(t);
    arena_init(&t->a, 1 << 26);
    dynbuf_init(&text, LEARNT_MAX);
    dynbuf_init(&image, POLICY_IMAGE_MAX);
    MUST_HOLD(learn_take(t, r, 1793000000000) == 0);
    learn_write(t, true, &text);
    MUST_HOLD(dynbuf_ok(&text));
    for (size_t i = 0; i < text.n; i++)
        MUST_HOLD(text.p[i] == '\n' || (text.p[i] >= 0x20 && text.p[i] < 0x7f));
    bool rule = t->n && t->shape[0]->left == LEFT_NOT;
    for (size_t i = 0; i < 3; i++)
        rule = rule && !span_starts(r->op, packs[i]);
    const struct policy_file file = {.name = "learned.yaml", .text = dynbuf_span(&text)};
    if (rule)
        MUST_HOLD(policy_load(&file, 1, no_fetch, NULL, 1793000000000, &image, NULL, &e) == 0);
    dynbuf_free(&text);
    dynbuf_free(&image);
    arena_free(&t->a);
    free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static uint8_t room[RECORD_BYTES_MAX];
    struct record r;
    const char *why;
    uint8_t *p = fuzz_copy(span_of(data, n));
    if (record_scan(span_of(p, n), room, &r, &why)) {
        says_the_same(span_of(p, n), &r);
        if (r.path.n && r.port && r.port <= UINT16_MAX)
            proposal_loads(&r);
    }
    free(p);
    return 0;
}
