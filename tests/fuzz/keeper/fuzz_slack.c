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
        MUST_HOLD(span_starts(p.answer, SPAN("https://hooks.slack.com")));
    reached |= p.deny;
    arena_free(&a);
    return 0;
}
