/* Which hosts and addresses a sandbox may reach, as the dock says it for its caller (proxy/reach/). */
#include "common/net/addr.h"
#include "proxy/reach/reach.h"
#include "web-approval/api/api.h"
#include "web-approval/api/steps.h"

static bool is_all(struct span s)
{
    return span_eq(s, SPAN("0.0.0.0/0")) || span_eq(s, SPAN("::/0"));
}

/* -1, answered. */
static int rule_put(struct exchange *x, struct dynbuf *b, bool allows, struct span what)
{
    struct dynbuf small;
    struct cidr c;

    dynbuf_init(&small, 512);
    for (size_t i = 0; i < what.n; i++) {
        uint8_t l = what.p[i];
        (void)dynbuf_add_byte(&small, l >= 'A' && l <= 'Z' ? (uint8_t)(l + 'a' - 'A') : l);
    }
    struct span s = arena_copy(&x->arena, dynbuf_span(&small));
    dynbuf_free(&small);
    bool range = cidr_parse(s, &c) == 0, digits = s.n > 0;
    for (size_t i = 0; i < s.n; i++) /* what looks like an address and is none is no name */
        digits &= (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '.';
    if (!range && (digits || !reach_name_ok(s))) {
        reply_problem(x, 400, "Bad request",
                      "`%.*s` in `%s` is none of: a host name, *. before one, an address, a range like 10.0.0.0/8 "
                      "without bits behind its length",
                      SPAN_FMT(span_first(what, 100)), allows ? "allowOut" : "denyOut");
        return -1;
    }
    (void)dynbuf_addf(b, "%c%c %.*s\n", allows ? '+' : '-', range ? 'a' : 'n', SPAN_FMT(s));
    return 0;
}

static int list_put(struct exchange *x, struct dynbuf *b, const struct json *list, bool allows, size_t *n)
{
    for (const struct json *m = list ? list->child : NULL; m; m = m->next, ++*n)
        if (rule_put(x, b, allows, m->text) != 0)
            return -1;
    return 0;
}

/* -1, answered. *all: it has all addresses. */
static int list_of(struct exchange *x, const struct json *given, const char *name, const struct json **list,
                   bool *all)
{
    const struct json *l = json_get(given, span_str(name));
    bool ok = !l || l->type == JSON_ARRAY;

    *all = false;
    *list = l;
    for (const struct json *m = ok && l ? l->child : NULL; m; m = m->next) {
        ok &= m->type == JSON_STRING;
        *all |= m->type == JSON_STRING && is_all(m->text);
    }
    if (ok)
        return 0;
    reply_problem(x, 400, "Bad request", "`%s` is a list of texts", name);
    return -1;
}

/* All addresses among those that are denied are all that allowOut does not name; among those that are allowed, they
 * are no narrowing. */
int api_reach_take(struct exchange *x, struct starting *s, const struct json *given)
{
    const struct json *allow, *deny;
    bool all_allowed, all_denied;
    struct dynbuf b;
    size_t n = 0;
    int rc = -1;

    if (!given)
        return 0;
    dynbuf_init(&b, REACH_MAX);
    if (list_of(x, given, "allowOut", &allow, &all_allowed) != 0 ||
        list_of(x, given, "denyOut", &deny, &all_denied) != 0)
        goto out;
    if (all_denied && (!allow || allow->count == 0)) {
        reply_problem(x, 400, "Bad request", "a sandbox that may reach nothing is one without a network");
        goto out;
    }
    if (!all_allowed && list_put(x, &b, allow, true, &n) != 0)
        goto out;
    for (const struct json *m = deny ? deny->child : NULL; m; m = m->next, n++)
        if (!is_all(m->text) && rule_put(x, &b, false, m->text) != 0)
            goto out;
    if (n > REACH_RULES_MAX || !dynbuf_ok(&b)) {
        reply_problem(x, 400, "Bad request", "`network` has at most %d hosts and ranges, of %d bytes together",
                      REACH_RULES_MAX, REACH_MAX);
        goto out;
    }
    s->reach = arena_copy(&x->arena, dynbuf_span(&b));
    if (s->reach.n != b.n)
        reply_problem(x, 503, "Not possible now", "no memory");
    else
        rc = 0;
out:
    dynbuf_free(&b);
    return rc;
}
