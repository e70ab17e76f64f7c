#include "proxy/judge/replies/dialect.h"

#include <stdio.h>
#include <time.h>

#include "common/time/clock.h"

enum { REASON_MAX = 200 };

const char *dialect_name(enum dialect d)
{
    static const char *const names[] = {"problem", "git-info-refs", "git-receive-pack", "npm", "pip"};
    return (unsigned)d < sizeof(names) / sizeof(names[0]) ? names[d] : "problem";
}

void dialect_field(struct wire_answer *a, struct span name, struct span value)
{
    if (a->nfields < HTTP_FIELDS_MAX)
        a->field[a->nfields++] = (struct http_field){name, value};
}

struct span dialect_one_line(struct span s, size_t max, struct arena *a)
{
    s = span_trim(span_first(s, max));
    uint8_t *p = arena_alloc(a, s.n ? s.n : 1);
    if (p == NULL)
        return SPAN_NONE;
    for (size_t i = 0; i < s.n; i++)
        p[i] = s.p[i] >= 0x20 && s.p[i] < 0x7f ? s.p[i] : s.p[i] == '\n' || s.p[i] == '\t' ? ' ' : '?';
    return span_of(p, s.n);
}

/* One paragraph as one line: what a terminal would act on does not pass, UTF-8 does. */
static void line(struct dynbuf *out, struct span s)
{
    if (s.n == 0)
        return;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        /* 0xc2 0x80..0x9f are the C1 controls, which terminals obey too. */
        if (c == 0xc2 && i + 1 < s.n && s.p[i + 1] >= 0x80 && s.p[i + 1] < 0xa0) {
            dynbuf_add_byte(out, '?');
            i++;
        } else {
            dynbuf_add_byte(out, c == '\n' || c == '\t' ? ' ' : c < 0x20 || c == 0x7f ? '?' : c);
        }
    }
    dynbuf_add_byte(out, '\n');
}

void dialect_lines(const struct refusal *r, struct dynbuf *out)
{
    line(out, r->detail);
    if (r->asked.n && span_find(r->detail, r->asked) == r->detail.n) {
        dynbuf_add(out, SPAN("Asked: "));
        line(out, r->asked);
    }
    line(out, r->next);
    line(out, r->instead);
    for (size_t i = 0; i < r->nallowed && r->instead.n == 0; i++) {
        dynbuf_add(out, SPAN("Here: "));
        line(out, r->allowed[i]);
    }
    if (r->approval_url.n) {
        dynbuf_add(out, SPAN("Page: "));
        line(out, r->approval_url);
    }
}

int dialect_keep(struct dynbuf *b, struct arena *a, struct span *out)
{
    int rc = -1;
    *out = SPAN_NONE;
    if (dynbuf_ok(b)) {
        *out = arena_copy(a, dynbuf_span(b));
        rc = out->n == b->n ? 0 : -1;
    }
    dynbuf_free(b);
    return rc;
}

struct span dialect_time(uint64_t ms, struct arena *a)
{
    char text[UTC_TEXT];
    return ms > 0 && utc_text(ms, false, text) ? arena_copy(a, span_str(text)) : SPAN_NONE;
}

static struct span decimal(unsigned v, struct arena *a)
{
    char text[16];
    int n = snprintf(text, sizeof(text), "%u", v);
    return arena_copy(a, span_of(text, (size_t)n));
}

/* What every refusal says in its head, whatever its body looks like. */
static void common_head(const struct refusal *r, struct arena *a, struct wire_reply *out)
{
    struct wire_answer *h = &out->head;
    h->reason = dialect_one_line(r->title, REASON_MAX, a);
    out->close = r->close;
    dialect_field(h, SPAN("Cache-Control"), SPAN("no-store"));
    dialect_field(h, SPAN("Countersign-Decision"), span_str(r->decision));
    if (r->challenge.n)
        dialect_field(h, SPAN("WWW-Authenticate"), r->challenge);
    if (r->ticket.n)
        dialect_field(h, SPAN("Countersign-Ticket"), r->ticket);
    if (r->status_url.n) {
        struct dynbuf b;
        struct span link;
        dynbuf_init(&b, 1024);
        dynbuf_addf(&b, "<%.*s>; rel=\"status\"", SPAN_FMT(r->status_url));
        if (dialect_keep(&b, a, &link) == 0)
            dialect_field(h, SPAN("Link"), link);
    }
    if (r->rule.n)
        dialect_field(h, SPAN("Countersign-Rule"), dialect_one_line(r->rule, REASON_MAX, a));
    if (r->retry_after)
        dialect_field(h, SPAN("Retry-After"), decimal(r->retry_after, a));
}

static int in_words(enum dialect d, const struct git_push *push, const struct refusal *r, struct arena *a,
                    struct wire_reply *out)
{
    *out = (struct wire_reply){.head.status = (uint16_t)r->status};
    common_head(r, a, out);
    switch (d) {
    case DIALECT_GIT_INFO_REFS: return dialect_git_text(r, a, out);
    case DIALECT_GIT_RECEIVE_PACK: return dialect_git_push(push, r, a, out);
    case DIALECT_NPM: return dialect_npm(r, a, out);
    case DIALECT_PIP: return dialect_pip(r, a, out);
    case DIALECT_PROBLEM: break;
    }
    return dialect_problem(r, a, out);
}

void dialect_reply(enum dialect d, const struct git_push *push, const struct refusal *r, struct arena *a,
                   struct wire_reply *out)
{
    if (in_words(d, push, r, a, out) != 0)
        *out = (struct wire_reply){.head = {.status = (uint16_t)r->status, .reason = SPAN("Refused")}, .close = true};
}
