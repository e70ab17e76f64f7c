/* inject: of a credential: exactly one way into the request, and one that it can take. */
#include "policy/load/check/check.h"

#include "common/sign/template.h"
#include "policy/load/read/scalar.h"

/* Fields that say where a message ends, where it goes or whose it is on the way are not a slot for a secret. */
static bool header_forbidden(struct span name)
{
    static const char *const no[] = {"Host",
                                     "Content-Length",
                                     "Transfer-Encoding",
                                     "Connection",
                                     "TE",
                                     "Trailer",
                                     "Upgrade",
                                     "Expect",
                                     "Keep-Alive",
                                     "Proxy-Authorization",
                                     "Proxy-Connection",
                                     "Content-Type",
                                     "Content-Encoding",
                                     "Date",
                                     "Via",
                                     NULL};
    for (size_t i = 0; no[i]; i++)
        if (span_ieq(name, span_str(no[i])))
            return true;
    return false;
}

static void check_format(struct loader *l, const struct item *f)
{
    size_t at = span_find(f->text, SPAN("{}"));
    struct span rest = span_from(f->text, at + 2);
    if (at == f->text.n || span_find(rest, SPAN("{}")) < rest.n)
        check_value(l, f, "P008", "must have {} once: there goes the secret");
    for (size_t i = 0; i < f->text.n; i++)
        if (f->text.p[i] < 0x20 || f->text.p[i] >= 0x7f) {
            check_value(l, f, "P008", "must be plain ASCII");
            break;
        }
}

/* What it begins with up to "{}" is a path as a rule would name it, and the secret the rest of that segment. */
static void check_path(struct loader *l, const struct item *f)
{
    struct span before = span_first(f->text, span_find(f->text, SPAN("{}")));
    uint8_t *path = arena_alloc(&l->a, before.n + 1);
    if (before.n == 0 || before.n + 2 != f->text.n || span_index(before, '*') < before.n) {
        check_value(l, f, "P013", "is what the path begins with, without wildcards, and {} at its end: \"/bot{}\"");
        return;
    }
    if (path == NULL) {
        load_problem(l, f->at, "P003", "no memory for the path");
        return;
    }
    memcpy(path, before.p, before.n);
    path[before.n] = 'x';
    check_value(l, f, "P013", scalar_path(span_of(path, before.n + 1)));
}

static void check_slot(struct loader *l, enum slot_kind k, const struct item *f)
{
    switch (k) {
    case SLOT_COOKIE: check_value(l, f, "P008", scalar_is_word(f->text) ? NULL : "is no name of a cookie"); break;
    case SLOT_QUERY:
    case SLOT_FORM:
        check_value(l, f, "P008",
                    scalar_is_name(f->text)
                        ? NULL
                        : "is no name of a parameter: letters, digits, '.', '_' and '-', at most 64");
        break;
    case SLOT_JSON:
        check_value(l, f, "P013", f->text.n ? scalar_pointer(f->text) : "is the whole body: name a member of it");
        break;
    case SLOT_PATH: check_path(l, f); break;
    case SLOT_HEADER:
    case SLOT_KINDS: break;
    }
    if (k == SLOT_QUERY || k == SLOT_PATH)
        load_problem(l, f->at, "P122",
                     "the credential goes into the URL, which servers and what stands before them write into their "
                     "logs: where the service takes it in a header, send it there");
}

static void check_sign(struct loader *l, const struct m_sign *s)
{
    if (s->region.at && !sign_name_ok(s->region.text))
        check_value(l, &s->region, "P008", "is no name of a region");
    if (s->service.at && !sign_name_ok(s->service.text))
        check_value(l, &s->service, "P008", "is no name of a service");
}

/* ---- hmac: ---- */

static const struct item *format_of(const struct m_hmac *h, size_t i)
{
    static const struct item none;
    const struct pair *v = h->headers.v;
    return i < h->headers.n && v[i].values.n == 1 ? &v[i].values.v[0] : &none;
}

static bool is_set(const struct m_hmac *h, struct span name)
{
    const struct pair *v = h->headers.v;
    for (size_t i = 0; i < h->headers.n; i++)
        if (span_ieq(v[i].name.text, name))
            return true;
    return false;
}

static bool in_a_field(const struct m_hmac *h, enum sign_part_kind k)
{
    for (size_t i = 0; i < h->headers.n; i++)
        if (sign_template_has(format_of(h, i)->text, k))
            return true;
    return false;
}

/* Of what is signed: a time is of use to who can read it too, and a field is one that leaves as the client wrote it.
 */
static void check_signed(struct loader *l, const struct m_hmac *h)
{
    static const char *const gone[] = {"authorization", "cookie", "accept-encoding", NULL};
    struct span rest = h->sign.text, open = sign_template_open_end(h->sign.text);
    struct sign_part p;
    while (sign_part_next(&rest, &p) > 0) {
        if (p.kind >= PART_TIME && p.kind <= PART_ISO_TIME && !in_a_field(h, p.kind))
            load_problem(l, h->sign.at, "P015",
                         "{%.*s} is signed and stands in none of headers:, so nobody could verify it",
                         SPAN_FMT(p.text));
        bool leaves = !header_forbidden(p.field) || span_ieq(p.field, SPAN("content-type")) ||
                      span_ieq(p.field, SPAN("content-encoding")) || span_ieq(p.field, SPAN("date"));
        for (size_t i = 0; gone[i]; i++)
            leaves &= !span_ieq(p.field, span_str(gone[i]));
        if (p.kind == PART_HEADER && (!leaves || is_set(h, p.field)))
            load_problem(l, h->sign.at, "P015",
                         "{%.*s} is signed, and does not leave as the client wrote it: sign {host}, {date} or what "
                         "else headers: sets it to",
                         SPAN_FMT(p.text));
    }
    if (open.n)
        load_problem(l, h->sign.at, "P126",
                     "nothing behind {%.*s} tells where it ends, so that requests which differ can be signed alike: "
                     "if the service lets you, put there what it cannot have, such as \\n",
                     SPAN_FMT(open));
}

static void check_hmac_field(struct loader *l, const struct m_hmac *h, size_t i)
{
    const struct pair *all = h->headers.v, *one = &all[i];
    const struct item *f = format_of(h, i);
    bool date = span_ieq(one->name.text, SPAN("date"));
    if (one->name.at && (!scalar_is_word(one->name.text) || (header_forbidden(one->name.text) && !date)))
        check_value(l, &one->name, "P008", "is no header that a credential may stand in");
    for (size_t k = 0; k < i; k++)
        if (span_ieq(one->name.text, all[k].name.text))
            check_value(l, &one->name, "P004", "is there twice");
    if (f->at)
        check_value(l, f, "P008", sign_template_wrong(f->text, IN_FIELD));
}

static void check_hmac(struct loader *l, const struct m_hmac *h)
{
    size_t signatures = 0;
    if (h->at == NULL || h->sign.at == NULL || h->headers.at == NULL)
        return;
    const char *wrong = sign_template_wrong(h->sign.text, IN_TEMPLATE);
    check_value(l, &h->sign, "P008", wrong);
    for (size_t i = 0; i < h->headers.n; i++) {
        check_hmac_field(l, h, i);
        struct span rest = format_of(h, i)->text;
        struct sign_part p;
        while (sign_part_next(&rest, &p) > 0)
            signatures += p.kind == PART_SIGNATURE;
    }
    if (h->headers.n > SIGN_FIELDS_OUT)
        load_problem(l, h->headers.at, "P017", "headers: sets more than %d fields", SIGN_FIELDS_OUT);
    if (signatures != 1)
        load_problem(l, h->headers.at, "P015", "headers: must have {signature} in it, once");
    if (wrong == NULL)
        check_signed(l, h);
}

void check_inject(struct loader *l, const struct m_inject *j)
{
    bool signs = j->sigv4.at || j->tc3.at || j->hmac.at;
    size_t ways = (j->certificate.at != NULL) + j->basic + (j->header.at != NULL) + (j->sigv4.at != NULL) +
                  (j->tc3.at != NULL) + (j->hmac.at != NULL);
    bool bare = j->certificate.at || j->basic || j->slot[SLOT_COOKIE].at || signs;
    if (j->at == NULL)
        return;
    for (size_t k = 0; k < SLOT_KINDS; k++)
        ways += j->slot[k].at != NULL;
    if (j->certificate.at && (j->certificate.v == 0 || ways != 1 || j->format.at)) {
        load_problem(l, j->at, "P015", "client_certificate: is true, and then nothing else stands in inject:");
        return;
    }
    if (ways != 1 || (bare && j->format.at) || (j->header.at && !j->format.at))
        load_problem(l, j->at, "P015",
                     "inject: is { header: NAME, format: \"Bearer {}\" }, { basic: { user: NAME } }, "
                     "{ basic: true }, { cookie: NAME }, { query: NAME }, { path: \"/bot{}\" }, { form: NAME }, "
                     "{ json: POINTER }, { sigv4: { region: R, service: S } }, { tc3: { service: S } }, "
                     "{ hmac: { sign: TEMPLATE, headers: ... } } or { client_certificate: true }");
    if (j->header.at && (!scalar_is_word(j->header.text) || header_forbidden(j->header.text)))
        check_value(l, &j->header, "P008", "is no header that a credential may stand in");
    if (j->user.at && span_index(j->user.text, ':') < j->user.text.n)
        check_value(l, &j->user, "P008", "has a colon, which Basic cannot carry in a user name");
    check_sign(l, j->sigv4.at ? &j->sigv4 : &j->tc3);
    check_hmac(l, &j->hmac);
    if (j->format.at)
        check_format(l, &j->format);
    for (size_t k = 0; k < SLOT_KINDS; k++)
        if (j->slot[k].at)
            check_slot(l, (enum slot_kind)k, &j->slot[k]);
}
