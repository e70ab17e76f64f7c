/* Bytes that claim to be a compiled policy, and a request: whatever opens can be judged by, without a
 * read outside of it, and what it decides is one of the three. The input begins with the request:
 * a length byte and that many bytes each for method, host, path, query and body; the image follows. */
#include "policy/limit.h"
#include "tests/fuzz/fuzz.h"

static bool opened;

bool fuzz_reached(void)
{
    return opened;
}

static struct span take(struct span *in)
{
    size_t n = in->n ? in->p[0] : 0;
    struct span out = span_first(span_from(*in, 1), n);
    *in = span_from(*in, 1 + out.n);
    return out;
}

/* All limits are used up: an allow is held at most, and what is held is denied. */
static void use_up(const struct policy *p, const struct request *r, struct arena *a, struct decision *d)
{
    static const bool past[LIMITS_MAX] = {true, true, true, true, true, true, true, true,
                                          true, true, true, true, true, true, true, true};
    enum verdict was = d->verdict;
    bool limited = d->nlimits > 0;
    for (size_t i = 0; i < d->nlimits; i++)
        (void)limit_is_past(&d->limits[i], d->limits[i].max);
    policy_past_limits(p, r, past, 0, a, d);
    MUST_HOLD(d->code != NULL && d->verdict <= was);
    MUST_HOLD(!limited || d->verdict < was);
    limited = d->nlimits > 0;
    policy_past_limits(p, r, past, 0, a, d);
    MUST_HOLD(!limited || d->verdict == VERDICT_DENY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct span in = span_of(data, n);
    struct http_field f = {SPAN("Content-Type"), SPAN("application/x-git-receive-pack-request")};
    struct subject s = {.sandbox = SPAN("ci-1")};
    struct request r = {.scheme = SPAN("https"), .port = 443, .fields = &f, .nfields = 1, .has_query = true};
    struct decision d = {0};
    struct upstream u;
    struct credential c;
    struct arena a;
    if (n > 1 << 16)
        return 0;
    r.method = take(&in);
    r.host = take(&in);
    r.path = take(&in);
    r.query = take(&in);
    r.body = take(&in);
    r.has_body = r.body.n > 0;
    r.body_complete = r.body.n > 1;
    uint8_t *image = fuzz_copy(in);
    struct policy *p = policy_open(span_of(image, in.n), NULL);
    arena_init(&a, 1 << 20);
    opened |= p != NULL;
    if (p) {
        policy_judge(p, &s, &r, 0, &a, &d);
        MUST_HOLD(d.code != NULL && d.verdict <= VERDICT_ALLOW);
        MUST_HOLD(!d.need_body || d.verdict == VERDICT_DENY);
        MUST_HOLD(d.nlimits <= LIMITS_MAX && (d.nlimits == 0 || d.verdict != VERDICT_DENY));
        use_up(p, &r, &a, &d);
        size_t whose = 0;
        MUST_HOLD(policy_stub(p, &s, &r, &d, &whose) == STUB_NONE || policy_credential(p, whose, &c));
        (void)policy_stub_host(p, r.scheme, r.host, r.port);
        (void)policy_names_host(p, &s, r.scheme, r.host, r.port, 0);
        (void)policy_upstream(p, r.host, r.port, &a, &u);
        (void)policy_credential(p, 0, &c);
        (void)policy_host_bound(p, r.scheme, r.host, r.port);
    }
    policy_close(p);
    arena_free(&a);
    free(image);
    return 0;
}
