/* A body that Slack signed: what is taken of it is who, by ids, and which ticket, by an id; what is not, is said why.
 */
#include "common/id.h"
#include "proxy/keeper/tell/slack.h"
#include "proxy/tell/wire_tell.h"
#include "tests/fuzz/fuzz.h"

static bool reached;

bool fuzz_reached(void)
{
    return reached;
}

/* Its host is that one, and not one that begins so. */
static bool is_slacks(struct span url)
{
    static const struct span host = SPAN("https://hooks.slack.com"), port = SPAN(":443");
    struct span rest = span_from(url, host.n);
    rest = span_starts(rest, port) ? span_from(rest, port.n) : rest;
    return span_starts(url, host) && (rest.n == 0 || rest.p[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct slack_press p;
    struct err e = {{0}};
    struct arena a;
    struct id id;
    arena_init(&a, 512 * 1024);
    int rc = slack_read(span_of(data, n), &a, &p, &e);
    MUST_HOLD((rc == 0) == (e.text[0] == '\0'));
    MUST_HOLD(rc == 0 || !p.deny);
    MUST_HOLD(!p.deny || (tell_slack_who_ok(p.who) && p.who.n <= TELL_WHO_MAX && id_parse(p.ticket, &id) == 0));
    if (p.deny && slack_answer_ok(p.answer, SPAN_NONE))
        MUST_HOLD(is_slacks(p.answer));
    reached |= p.deny;
    arena_free(&a);
    return 0;
}
