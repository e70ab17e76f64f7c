/* The judge, with a policy of so many credentials and so many leases that it was told of, asked with one of them
 * again and again on a connection that is kept: work to be counted by callgrind (tests/bench/credentials.py).
 *   lease_bench FILE CREDENTIAL LEASES REQUESTS    CREDENTIAL: the name of the one that the requests are for */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/memfd.h"
#include "proxy/identity.h"
#include "tests/play/judge/play_lease.h"
#include "tests/policy/lines/lines.h"

uint64_t play_spent_us;

static struct play p;

static size_t text_of_lease(size_t i, char text[LEASE_TEXT_MAX])
{
    uint8_t stream[LEASE_STREAM] = {0};
    memcpy(stream, &i, sizeof(i));
    return lease_text(LEASE_GITHUB, "QZ7XWK", stream, text);
}

static void tell_all(const struct policy *policy, struct span name, size_t n)
{
    struct wire_lease l = lease_of(1);
    struct credential c;
    char text[LEASE_TEXT_MAX];
    size_t at = 0;
    while (policy_credential(policy, at, &c) && !span_eq(c.name, name))
        at++;
    assert_int_equal(identity_of_credential(policy, at, &l.meaning), 0);
    l.credential = c.name;
    for (size_t i = 0; i < n; i++) {
        digest_of(span_of(text, text_of_lease(i, text)), &l.text);
        memcpy(l.id.b, l.text.b, sizeof(l.id.b));
        tell_lease(&p, &l);
    }
}

static void forget_all(void)
{
    for (; p.first < p.n; p.first++) {
        dynbuf_free(&p.out[p.first].payload);
        if (p.out[p.first].fd >= 0)
            close(p.out[p.first].fd);
    }
    p.first = p.n = 0;
}

/* A read that passes: what the judge said of it must have been to forward it, and then its outcome. */
static void ask(uint64_t n, const char *value)
{
    struct ask a = {.method = "GET", .path = "/v1/items/42", .header = "Authorization", .value = value};
    bool sent = false;
    give_request(&p, XID(n), &a);
    for (size_t i = p.first; i < p.n; i++)
        sent |= p.out[i].type == M_FORWARD;
    assert_true(sent);
    give_result(&p, XID(n), OUTCOME_ANSWERED, 200, true, "");
    from(&p);
    assert_int_equal(give(&p, ROLE_LEDGER, 0, M_OUTCOME_OK, XID(n), -1), 0);
    forget_all();
}

int main(int argc, char **argv)
{
    struct dynbuf image;
    struct digest d;
    char text[LEASE_TEXT_MAX], value[16 + LEASE_TEXT_MAX];
    dynbuf_init(&image, POLICY_IMAGE_MAX);
    struct policy *policy =
        argc == 5 ? lines_policy((struct policy_place){.paths = (const char *const *)&argv[1], .n = 1}, &image)
                  : NULL;
    if (policy == NULL)
        return 2;
    size_t leases = strtoul(argv[3], NULL, 10), n = strtoul(argv[4], NULL, 10);
    play_open(&p);
    play_peer(&p, ROLE_KEEPER, 0, "");
    play_peer(&p, ROLE_CARRIER, 0, "");
    play_peer(&p, ROLE_LEDGER, 0, "");
    play_sandbox(&p, "sb", "ses", "token-of-sb", false);
    play_peer(&p, ROLE_FRONT, FRONT, "sb");
    memcpy(d.b, policy_digest(policy).p, sizeof(d.b));
    int fd = memfd_of(dynbuf_span(&image));
    msg_put_digest(from(&p), &d);
    assert_int_equal(give(&p, ROLE_PARENT, 0, M_IMAGE, 0, fd), 0);
    forget_all();
    tell_all(policy, span_str(argv[2]), leases);
    snprintf(value, sizeof(value), "Bearer %.*s", (int)text_of_lease(leases / 2, text), text);
    for (size_t i = 1; i <= n; i++)
        ask(i, value);
    judge_free(&p.j);
    policy_close(policy);
    dynbuf_free(&image);
    return 0;
}
