#include "sandbox-shim/run/notify_lines.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/control/audit_words.h"
#include "common/text/person.h"
#include "common/text/visible.h"

enum { LINE_BYTES = 16 * 1024 };

/* "14:05", or with its day when that is not today's. */
static const char *moment(const struct json *t, struct span key, char out[32])
{
    uint64_t ms = 0;
    bool ok = json_u64(t, key, &ms) == 0;
    time_t at = (time_t)(ms / 1000), now = time(NULL);
    struct tm tm, today;

    ok = ok && localtime_r(&at, &tm) && localtime_r(&now, &today);
    bool same = ok && tm.tm_yday == today.tm_yday && tm.tm_year == today.tm_year;
    if (!ok || strftime(out, 32, same ? "%H:%M" : "%Y-%m-%d %H:%M", &tm) == 0)
        return "-";
    return out;
}

static void begin(struct dynbuf *words)
{
    dynbuf_init(words, LINE_BYTES);
    (void)dynbuf_add(words, SPAN("countersign: "));
}

/* One write: lines of several processes do not mix. A terminal may be in raw mode, and a line end alone not enough.
 */
static void say(struct dynbuf *words)
{
    if (isatty(STDERR_FILENO))
        (void)dynbuf_add_byte(words, '\r');
    (void)dynbuf_add_byte(words, '\n');
    if (dynbuf_ok(words) && write(STDERR_FILENO, words->p, words->n) < 0) {
        /* nobody looks any more */
    }
    dynbuf_free(words);
}

static struct span short_id(const struct json *t)
{
    return span_first(json_text(t, SPAN("id")), NOTIFY_SHORT_ID);
}

/* "POST my.server:8000/things", or what a pack makes of it. */
static void add_what(struct dynbuf *words, const struct json *of)
{
    struct dynbuf target;

    dynbuf_init(&target, LINE_BYTES);
    audit_target(of, &target);
    visible_text(words, dynbuf_span(&target), false);
    dynbuf_free(&target);
}

static void add_by(struct dynbuf *words, const struct json *t)
{
    struct span by = json_text(t, SPAN("decided_by"));
    char name[PERSON_NAME_MAX];

    if (by.n == 0)
        return;
    (void)dynbuf_add(words, SPAN(" by "));
    visible_text(words, person_name(by, name), false);
}

static void add_reason(struct dynbuf *words, const struct json *t)
{
    struct span reason = json_text(t, SPAN("decided_reason"));

    if (reason.n == 0)
        return;
    (void)dynbuf_add(words, SPAN(": "));
    visible_text(words, reason, false);
}

void line_waiting(const struct json *t, const char *state_dir, const char *page)
{
    struct dynbuf words;

    begin(&words);
    (void)dynbuf_add(&words, SPAN("waits for approval: "));
    add_what(&words, t);
    say(&words);
    begin(&words);
    (void)dynbuf_addf(&words, "  countersign approvals approve %.*s", SPAN_FMT(short_id(t)));
    if (state_dir)
        (void)dynbuf_addf(&words, " --state-dir %s", state_dir);
    say(&words);
    if (page[0] == '\0')
        return;
    begin(&words);
    (void)dynbuf_addf(&words, "  or, after `countersign signin`, at %s/tickets/%.*s", page,
                      SPAN_FMT(json_text(t, SPAN("id"))));
    say(&words);
}

void line_other_waits(const struct json *t)
{
    struct dynbuf words;
    char when[32];

    begin(&words);
    (void)dynbuf_addf(&words, "waits for approval, from another run (%s): ", moment(t, SPAN("created_ms"), when));
    add_what(&words, t);
    (void)dynbuf_addf(&words, " (%.*s: approve or deny it, or say --quiet)", SPAN_FMT(short_id(t)));
    say(&words);
}

void line_decided(const struct json *t)
{
    struct span state = json_text(t, SPAN("state"));
    bool approved = json_text(t, SPAN("decided_by")).n && !span_eq(state, SPAN("denied"));
    struct dynbuf words;

    begin(&words);
    (void)dynbuf_addf(&words, "%.*s ", SPAN_FMT(short_id(t)));
    visible_text(&words, approved ? SPAN("approved") : state, false);
    add_by(&words, t);
    add_reason(&words, t);
    say(&words);
}

void line_still_denied(const struct json *t)
{
    struct dynbuf words;
    char when[32];

    begin(&words);
    (void)dynbuf_add(&words, SPAN("denied: "));
    add_what(&words, t);
    (void)dynbuf_addf(&words, ": since %s, and until ", moment(t, SPAN("decided_ms"), when));
    (void)dynbuf_addf(&words, "%s,", moment(t, SPAN("expires_ms"), when));
    add_by(&words, t);
    add_reason(&words, t);
    say(&words);
}

void line_open(const struct json *t, bool own)
{
    bool approved = span_eq(json_text(t, SPAN("state")), SPAN("approved"));
    struct dynbuf words;
    char until[32];

    begin(&words);
    (void)dynbuf_addf(&words, "%.*s ", SPAN_FMT(short_id(t)));
    (void)dynbuf_addf(&words,
                      approved ? "is approved and not sent yet: repeat the request, or run this again, before %s"
                      : own    ? "is open until %s: run this again, and approve it while it runs"
                               : "is open until %s: once it is approved, repeat the request or run this again",
                      moment(t, SPAN("expires_ms"), until));
    say(&words);
}

static void add_remedy(struct dynbuf *words, const struct json *r)
{
    struct span code = json_text(r, SPAN("code")), credential = json_text(r, SPAN("credential"));

    if (span_eq(code, SPAN("private-address"))) {
        (void)dynbuf_add(words, SPAN(": if that is meant, its row of the policy's upstreams: needs allow_private"));
    } else if (span_eq(code, SPAN("frozen"))) {
        (void)dynbuf_add(words, SPAN(": `countersign thaw` ends that"));
    } else if (span_eq(code, SPAN("lease-required"))) {
        (void)dynbuf_add(words, SPAN(": `countersign run --with "));
        visible_text(words, credential.n ? credential : SPAN("NAME"), false);
        (void)dynbuf_add(words, SPAN("` gives one"));
    }
}

void line_refused(const struct json *r)
{
    struct span code = json_text(r, SPAN("code"));
    bool denied = span_eq(json_text(r, SPAN("kind")), SPAN("denied"));
    struct dynbuf words, why;

    begin(&words);
    dynbuf_init(&why, LINE_BYTES);
    audit_why(r, &why);
    (void)dynbuf_add(&words, denied ? SPAN("denied: ") : SPAN("not sent: "));
    size_t before = words.n;
    add_what(&words, r);
    if (words.n > before)
        (void)dynbuf_add(&words, SPAN(": "));
    if (!denied && !span_eq(dynbuf_span(&why), code)) {
        visible_text(&words, code, false);
        (void)dynbuf_add(&words, SPAN(": "));
    }
    visible_text(&words, dynbuf_span(&why), false);
    add_remedy(&words, r);
    say(&words);
    dynbuf_free(&why);
}

void line_more(const char *what, const char *how)
{
    struct dynbuf words;

    begin(&words);
    (void)dynbuf_addf(&words, "more %s; see countersign %s", what, how);
    say(&words);
}
