/* What a rule lacks, in words that name the value that is there and the one it wants. */
#include "policy/explain/why.h"

enum { LIST_SHOWN = 4 };

void why_value(struct dynbuf *out, struct span s)
{
    (void)dynbuf_add(out, span_first(s, VALUE_SHOWN));
    if (s.n > VALUE_SHOWN)
        (void)dynbuf_addf(out, "... (%zu bytes)", s.n);
}

struct span why_host_pattern(const struct policy *p, const struct img_host *h, struct arena *a)
{
    struct dynbuf b;
    if (h->kind == HOST_EXACT)
        return img_span(p, h->text);
    dynbuf_init(&b, WORDS_MAX);
    (void)dynbuf_add(&b, h->kind == HOST_ONE_LABEL ? SPAN("*.") : SPAN("**."));
    (void)dynbuf_add(&b, img_span(p, h->text));
    return arena_keep(a, &b);
}

static void add_one(struct dynbuf *out, const struct policy *p, enum img_table t, uint32_t i)
{
    const void *record = img_at(p, t, i);
    if (t == IMG_STR) {
        why_value(out, img_span(p, *(const struct img_str *)record));
    } else if (t == IMG_GLOB) {
        why_value(out, img_span(p, ((const struct img_glob *)record)->text));
    } else if (t == IMG_HOST) {
        const struct img_host *h = record;
        (void)dynbuf_addf(out, "%s", h->kind == HOST_EXACT ? "" : h->kind == HOST_ONE_LABEL ? "*." : "**.");
        why_value(out, img_span(p, h->text));
    } else {
        (void)dynbuf_addf(out, "%u", *(const uint32_t *)record);
    }
}

void why_list(struct dynbuf *out, const struct policy *p, enum img_table t, struct img_range r)
{
    uint32_t shown = r.n > LIST_SHOWN + 1 ? LIST_SHOWN : r.n;
    for (uint32_t i = 0; i < shown; i++) {
        if (i)
            (void)dynbuf_addf(out, i + 1 == r.n ? " or " : ", ");
        add_one(out, p, t, r.first + i);
    }
    if (shown < r.n)
        (void)dynbuf_addf(out, " or %u more", r.n - shown);
}

static void effects_words(struct dynbuf *out, uint32_t mask)
{
    bool any = false;
    for (unsigned e = EFFECT_READ; e <= EFFECT_EXEC; e++)
        if (mask & 1u << e) {
            (void)dynbuf_addf(out, "%s%s", any ? " or " : "", effect_name((enum effect)e));
            any = true;
        }
}

/* "NAME is VALUE, the rule wants LIST" */
static void is_wants(const struct ask *k, struct dynbuf *out, const char *name, struct span is, enum img_table t,
                     struct img_range wants)
{
    (void)dynbuf_addf(out, "%s is ", name);
    why_value(out, is.n ? is : SPAN("nothing"));
    (void)dynbuf_addf(out, ", the rule wants ");
    why_list(out, k->p, t, wants);
}

static void port_words(const struct ask *k, const struct img_match *m, struct span scheme, struct dynbuf *out)
{
    (void)dynbuf_addf(out, "port is %u, the rule wants ", k->request->port);
    if (m->ports.n)
        why_list(out, k->p, IMG_PORT, m->ports);
    else
        (void)dynbuf_addf(out, "the scheme's own, %u", classify_default_port(scheme));
}

static void ws_words(const struct ask *k, const struct img_match *m, struct dynbuf *out)
{
    if (!k->upgrade)
        (void)dynbuf_addf(out, "it asks for no WebSocket upgrade, the rule is about those alone");
    else if (!m->ws)
        (void)dynbuf_addf(out, "it asks for a WebSocket upgrade, of which the rule says nothing (ws:)");
    else {
        (void)dynbuf_addf(out, "it offers no subprotocol that the rule names: ");
        why_list(out, k->p, IMG_GLOB, m->ws_protocols);
    }
}

/* The first value of a query parameter or field, as it is on the wire; false: there is none of that very name. */
static bool first_value(const struct request *r, struct span name, bool query, struct span *out)
{
    struct span key, param, rest = query ? r->query : SPAN_NONE;
    for (size_t i = 0; !query && i < r->nfields; i++)
        if (span_ieq(r->fields[i].name, name)) {
            *out = r->fields[i].value;
            return true;
        }
    while (rest.n) {
        (void)span_cut(rest, '&', &param, &rest);
        (void)span_cut(param, '=', &key, out);
        if (span_eq(key, name))
            return true;
    }
    return false;
}

/* Of several names the first that does not fit. */
static void pairs_words(const struct ask *k, const struct img_match *m, bool query, struct dynbuf *out)
{
    struct img_range r = query ? m->query : m->header;
    for (uint32_t i = 0; i < r.n; i++) {
        struct img_match one = {.any_place = 1};
        const struct img_pair *want = img_at(k->p, IMG_PAIR, r.first + i);
        *(query ? &one.query : &one.header) = (struct img_range){r.first + i, 1};
        if (match_fits(k, &one, AS_WRITTEN) == FIT_YES)
            continue;
        struct span value = SPAN_NONE;
        bool there = first_value(k->request, img_span(k->p, want->key), query, &value);
        (void)dynbuf_addf(out, "%s ", query ? "query parameter" : "header");
        why_value(out, img_span(k->p, want->key));
        (void)dynbuf_addf(out, " is ");
        why_value(out, there ? (value.n ? value : SPAN("empty")) : SPAN("not there"));
        (void)dynbuf_addf(out, ", the rule wants ");
        why_list(out, k->p, IMG_GLOB, want->values);
        return;
    }
    (void)dynbuf_addf(out, m->query_names.n ? "the query has other names, or one of them twice, than "
                                            : "there is a query, the rule wants none");
    why_list(out, k->p, IMG_STR, m->query_names);
}

static void git_words(const struct ask *k, const struct img_match *m, struct dynbuf *out)
{
    struct img_match one = {.any_place = 1, .git_refs = m->git_refs};
    if (m->git_service && (m->git_service & k->git_service) == 0) {
        (void)dynbuf_addf(out, "it is no %s of git", m->git_service == GIT_UPLOAD_PACK ? "fetch" : "push");
    } else if (k->push_unknown) {
        (void)dynbuf_addf(out, "the refs of the push are not known");
    } else if (k->member == NULL) {
        (void)dynbuf_addf(out, "it is no push, and the rule asks about refs");
    } else if (m->git_refs.n && match_fits(k, &one, AS_WRITTEN) != FIT_YES) {
        (void)dynbuf_addf(out, "ref ");
        why_value(out, k->member->ref);
        (void)dynbuf_addf(out, " is not ");
        why_list(out, k->p, IMG_GLOB, m->git_refs);
    } else if (m->git_delete != TRI_UNSET && (m->git_delete == TRI_TRUE) != k->member->delete) {
        (void)dynbuf_addf(out, "the push %s ", k->member->delete ? "deletes" : "does not delete");
        why_value(out, k->member->ref);
    } else {
        (void)dynbuf_addf(out, "the push %s",
                          k->member->force ? "changes a ref that exists, which may be forced; the rule wants force: "
                                             "false"
                                           : "makes a new ref, the rule wants force: true");
    }
}

static void cond_wants(const struct ask *k, const struct img_cond *c, struct dynbuf *out)
{
    const char *type = body_parsers[c->kind].number;
    unsigned long long n = c->number;
    switch (c->op) {
    case COND_AT_MOST: (void)dynbuf_addf(out, "%sat most %llu", type, n); break;
    case COND_AT_LEAST: (void)dynbuf_addf(out, "%sat least %llu", type, n); break;
    case COND_EXISTS: (void)dynbuf_addf(out, "it to be there"); break;
    case COND_ABSENT: (void)dynbuf_addf(out, "it not to be there"); break;
    default:
        if (c->texts.n)
            why_list(out, k->p, IMG_STR, c->texts);
        else
            why_list(out, k->p, IMG_GLOB, c->globs);
    }
}

static void cond_words(const struct ask *k, const struct img_cond *c, struct dynbuf *out)
{
    struct span key = img_span(k->p, c->key);
    bool open = body_fits(k->body, k->p, c, k->request, true, k->arena) == FIT_MAYBE;
    const struct body_parser *is = k->body->is, *wants = &body_parsers[c->kind];
    const struct body_question q = {k->p, c, true};
    bool seen = body_seen(k->body, c->kind);
    if (open || (k->body->absent && !seen)) {
        enum ambiguity_cause why = open ? body_ambiguity(k->body, k->p, c, k->request, k->arena) : AMBIGUITY_NONE;
        (void)dynbuf_addf(out, "%s; the rule asks about ", open ? ambiguity_words(why) : "there is no body");
        why_value(out, key);
    } else if (!seen) {
        (void)dynbuf_addf(out, "the body is %s, the rule asks for %s", is ? is->words : "not seen", wants->words);
    } else {
        struct body_shown value = wants->show(k->body, &q, k->arena);
        why_value(out, key);
        (void)dynbuf_addf(out, key.n ? " is %s" : "the body is %s", value.before);
        if (value.after) {
            why_value(out, value.value);
            (void)dynbuf_addf(out, "%s", value.after);
        }
        (void)dynbuf_addf(out, ", the rule wants ");
        cond_wants(k, c, out);
    }
}

static void body_words(const struct ask *k, const struct img_match *m, struct dynbuf *out)
{
    for (uint32_t i = 0; i < m->body.n; i++) {
        const struct img_cond *c = img_at(k->p, IMG_COND, m->body.first + i);
        if (body_fits(k->body, k->p, c, k->request, true, k->arena) != FIT_YES) {
            cond_words(k, c, out);
            return;
        }
    }
}

static void scope_words(const struct ask *k, const struct img_rule *r, struct dynbuf *out)
{
    (void)dynbuf_addf(out, "sandbox ");
    why_value(out, k->subject->sandbox);
    (void)dynbuf_addf(out, " is not in scope ");
    for (uint32_t i = 0; i < r->scopes.n && i < LIST_SHOWN; i++) {
        uint32_t at = *(const uint32_t *)img_at(k->p, IMG_SCOPE_REF, r->scopes.first + i);
        const struct img_scope *s = img_at(k->p, IMG_SCOPE, at);
        (void)dynbuf_addf(out, "%s%.*s (", i ? ", " : "", SPAN_FMT(img_span(k->p, s->name)));
        if (s->sandboxes.n)
            why_list(out, k->p, IMG_GLOB, s->sandboxes);
        for (uint32_t j = 0; j < s->labels.n; j++) {
            const struct img_pair *want = img_at(k->p, IMG_PAIR, s->labels.first + j);
            (void)dynbuf_addf(out, "%slabel %.*s=", j || s->sandboxes.n ? ", " : "",
                              SPAN_FMT(img_span(k->p, want->key)));
            why_list(out, k->p, IMG_GLOB, want->values);
        }
        (void)dynbuf_add_byte(out, ')');
    }
}

static void days_words(struct dynbuf *out, uint32_t days)
{
    static const char *const names[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
    bool any = false;
    if (days == WINDOW_DAYS_ALL)
        (void)dynbuf_addf(out, "every day");
    for (unsigned d = 0; d < 7 && days != WINDOW_DAYS_ALL; d++) {
        unsigned last = d;
        if ((days & 1u << d) == 0)
            continue;
        while (last < 6 && (days & 1u << (last + 1)))
            last++;
        (void)dynbuf_addf(out, "%s%s", any ? ", " : "", names[d]);
        if (last > d)
            (void)dynbuf_addf(out, "%s%s", last > d + 1 ? "-" : ", ", names[last]);
        any = true;
        d = last;
    }
}

void why_hours(struct dynbuf *out, const struct policy *p, const struct img_rule *r)
{
    uint32_t shown = r->windows.n > LIST_SHOWN + 1 ? LIST_SHOWN : r->windows.n;
    for (uint32_t i = 0; i < shown; i++) {
        const struct img_window *w = img_at(p, IMG_WINDOW, r->windows.first + i);
        const struct img_zone *z = img_at(p, IMG_ZONE, w->zone);
        (void)dynbuf_addf(out, "%s", i == 0 ? "" : i + 1 == r->windows.n ? " or " : ", ");
        days_words(out, w->days);
        (void)dynbuf_addf(out, " %02u:%02u-%02u:%02u %.*s", w->from_min / 60, w->from_min % 60, w->to_min / 60,
                          w->to_min % 60, SPAN_FMT(img_span(p, z->name)));
    }
    if (shown < r->windows.n)
        (void)dynbuf_addf(out, " or %u more", r->windows.n - shown);
}

/* Years begin in March here, so that the day that some years lack is the last. */
void why_time(struct dynbuf *out, uint64_t ms)
{
    uint64_t s = ms / 1000, days = s / 86400 + 719468, era = days / 146097, of_era = days % 146097;
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t day = of_era - (365 * year + year / 4 - year / 100), month = (5 * day + 2) / 153;
    day -= (153 * month + 2) / 5;
    month = month < 10 ? month + 3 : month - 9;
    year += era * 400 + (month <= 2);
    (void)dynbuf_addf(out, "%04llu-%02llu-%02lluT%02llu:%02llu:%02lluZ", (unsigned long long)year,
                      (unsigned long long)month, (unsigned long long)day + 1, (unsigned long long)(s / 3600 % 24),
                      (unsigned long long)(s / 60 % 60), (unsigned long long)(s % 60));
}

void why_words(const struct ask *k, const struct img_rule *r, enum miss key, struct dynbuf *out)
{
    const struct img_match *m = img_at(k->p, IMG_MATCH, r->match.first);
    switch (key) {
    case MISS_HOST: is_wants(k, out, "host", k->request->host, IMG_HOST, m->hosts); break;
    case MISS_SCHEME:
        (void)dynbuf_addf(out, "scheme is %.*s, the rule wants %s", SPAN_FMT(k->request->scheme),
                          m->schemes == SCHEME_HTTP ? "http" : "https");
        if (!match_names_port(k->p, m, k->request->scheme, k->request->port)) {
            (void)dynbuf_addf(out, ", and ");
            port_words(k, m, m->schemes == SCHEME_HTTP ? SPAN("http") : SPAN("https"), out);
        }
        break;
    case MISS_PORT: port_words(k, m, k->request->scheme, out); break;
    case MISS_METHOD:
        is_wants(k, out, "method", k->overridden ? SPAN("any (by an override)") : k->method, IMG_STR, m->methods);
        break;
    case MISS_PATH: is_wants(k, out, "path", k->path, IMG_GLOB, m->paths); break;
    case MISS_OP: is_wants(k, out, "op", k->op, IMG_GLOB, m->ops); break;
    case MISS_EFFECT:
        (void)dynbuf_addf(out, "effect is %s, the rule wants ", effect_name(k->effect));
        effects_words(out, m->effects);
        break;
    case MISS_WS: ws_words(k, m, out); break;
    case MISS_RESOURCE: is_wants(k, out, "resource", k->resource, IMG_GLOB, m->resources); break;
    case MISS_QUERY:
    case MISS_HEADER: pairs_words(k, m, key == MISS_QUERY, out); break;
    case MISS_GIT: git_words(k, m, out); break;
    case MISS_BODY: body_words(k, m, out); break;
    case MISS_SCOPE: scope_words(k, r, out); break;
    case MISS_WHEN:
        (void)dynbuf_addf(out, "it is in force only ");
        why_hours(out, k->p, r);
        break;
    case MISS_EXCEPT: (void)dynbuf_addf(out, "its except: takes this request out of it"); break;
    case MISS_NONE: break;
    }
}
