#include "proxy/carrier/swap/swap.h"

#include "common/json/xml.h"
#include "common/time/instant.h"

enum {
    WORD_MAX = 32, /* the longest are such as refresh_token_expires_in */
    NAMESPACE_MAX = 96
};
enum { TREE_MAX = 512 * 1024 }; /* many sandboxes' are held at once while the ledger writes */

static int check(const struct json *j, struct err *e)
{
    return j->type == JSON_STRING && j->text.n >= SWAP_TOKEN_MIN
               ? 0
               : err_set(e, "what stands in the place of its token is no text, or too short to be one");
}

/* What must be there with it. */
static int find_part(struct span pointer, const struct json *answer, const struct json **part, struct err *e)
{
    *part = pointer.n ? json_pointer(answer, pointer) : NULL;
    if (pointer.n && *part == NULL)
        return err_set(e, "it has a part of the keys, and not all of them");
    return pointer.n ? check(*part, e) : 0;
}

/* Where the tokens of one credential are. */
static int find(struct swap_token *t, const struct json *answer, struct err *e)
{
    if (find_part(t->what.key, answer, &t->key, e) != 0 || find_part(t->what.session, answer, &t->session, e) != 0)
        return -1;
    for (size_t i = 0; i < t->what.ntoken; i++) {
        const struct json *j = json_pointer(answer, t->what.token[i]);
        if (j == NULL)
            continue;
        if (check(j, e) != 0)
            return -1;
        if (t->nnodes > 0 && !span_eq(j->text, t->node[0]->text))
            return err_set(e, "it has two tokens where one is expected");
        t->node[t->nnodes++] = j;
    }
    return t->nnodes > 0 ? 0 : err_set(e, "it has no token where one is expected");
}

static const struct json *number_or_text(const struct json *answer, struct span pointer)
{
    static const struct json neither = {.type = JSON_NULL};
    const struct json *j = pointer.n ? json_pointer(answer, pointer) : NULL;
    return j == NULL || j->type == JSON_NUMBER || j->type == JSON_STRING ? j : &neither;
}

static void at_most(struct swap_token *t, uint64_t ms)
{
    if (ms < t->lives_ms)
        t->lives_ms = ms;
}

/* Seconds, or when (common/time/instant.h). Some write a number as a text. */
static int life(struct swap_token *t, const struct json *answer, uint64_t now_ms, struct err *e)
{
    const struct json *in = number_or_text(answer, t->what.expires), *at = number_or_text(answer, t->what.ends);
    uint64_t ms = 0;
    t->lives_ms = t->what.lifetime_ms;
    if (in != NULL && (instant_seconds(in->text, &ms) != 0 || ms == 0))
        return err_set(e, "it does not say in seconds how long its token lives");
    if (in != NULL)
        at_most(t, ms);
    if (at == NULL)
        return 0;
    if (instant_left(at->text, now_ms, &ms) != 0)
        return err_set(e, "it does not say, with its zone, until when its token lives");
    at_most(t, ms);
    return ms > 1 ? 0 : err_set(e, "its token has ended");
}

static const struct json *parse(struct swap *s, struct span body)
{
    size_t i = 0;
    while (i < body.n && (body.p[i] == ' ' || body.p[i] == '\t' || body.p[i] == '\r' || body.p[i] == '\n'))
        i++;
    s->is_xml = i < body.n && body.p[i] == '<';
    return s->is_xml ? xml_parse(body, &s->a) : json_parse(body, &s->a);
}

int swap_read(struct swap *s, struct span swaps, struct span body, uint64_t now_ms, struct err *e)
{
    struct msg_in m = msg_in(swaps);
    *s = (struct swap){.n = 0};
    arena_init(&s->a, TREE_MAX);
    uint8_t n = msg_get_u8(&m);
    if (n == 0 || n > SWAPS_MAX)
        return err_set(e, "it is not known which tokens it has");
    if (body.n > SWAP_BODY_MAX || (s->answer = parse(s, body)) == NULL)
        return err_set(e, "it is neither JSON nor plain XML, longer than %d bytes, or has too many parts",
                       SWAP_BODY_MAX);
    for (uint8_t i = 0; i < n; i++) {
        struct swap_token *t = &s->token[i];
        if (wire_get_swap(&m, &t->what) != 0)
            return err_set(e, "it is not known which tokens it has");
        if (find(t, s->answer, e) != 0 || life(t, s->answer, now_ms, e) != 0)
            return -1;
    }
    if (msg_end(&m) != 0)
        return err_set(e, "it is not known which tokens it has");
    s->n = n;
    return 0;
}

struct span swap_value(const struct swap *s, size_t i, enum swap_part part)
{
    const struct swap_token *t = &s->token[i];
    const struct json *j = part == SWAP_KEY ? t->key : part == SWAP_SESSION ? t->session : t->node[0];
    return j != NULL ? j->text : SPAN_NONE;
}

/* Names that answers with tokens have in RFC 6749, 8628, 8693 and in those of registries and STSs. */
static bool has_usual_name(struct span key)
{
    static const char *const names[] = {"token_type", "scope",      "expires_in", "expires_on", "expires_at",
                                        "issued_at",  "not_before", "expiration", "resource",   "issued_token_type",
                                        "requestid"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (span_ieq(key, span_str(names[i])))
            return true;
    return false;
}

/* A name can be a secret as well as a text can: sessions by their tokens. What is short, and of letters, is none. */
static bool is_word(struct span key)
{
    for (size_t i = 0; i < key.n; i++) {
        uint8_t c = key.p[i] | 0x20;
        if (!(c >= 'a' && c <= 'z') && key.p[i] != '_' && key.p[i] != '-' && key.p[i] != '.')
            return false;
    }
    return key.n > 0 && key.n <= WORD_MAX;
}

static bool is_kept(const struct swap *s, const struct json *j)
{
    for (size_t i = 0; i < s->nkept; i++)
        if (s->kept[i] == j)
            return true;
    return false;
}

static struct span lease_of(const struct swap *s, const struct json *j, const struct swap_lease *lease)
{
    for (size_t i = 0; i < s->n; i++) {
        if (s->token[i].key == j)
            return lease[i].secret;
        if (s->token[i].session == j)
            return lease[i].text;
        for (size_t k = 0; k < s->token[i].nnodes; k++)
            if (s->token[i].node[k] == j)
                return lease[i].text;
    }
    return SPAN_NONE;
}

/* Is it, or is below it, what the policy names? */
static bool is_asked_for(const struct swap *s, const struct json *j, const struct swap_lease *lease)
{
    bool is = is_kept(s, j) || lease_of(s, j, lease).n > 0;
    for (const struct json *c = j->child; c != NULL && !is; c = c->next)
        is = is_asked_for(s, c, lease);
    return is;
}

static void put_scalar(struct jsonw *w, const struct json *j, struct span lease)
{
    if (lease.n)
        jsonw_string(w, lease);
    else if (j->type == JSON_STRING)
        jsonw_string(w, j->text);
    else if (j->type == JSON_NUMBER)
        jsonw_raw(w, j->text);
    else if (j->type == JSON_BOOL)
        jsonw_bool(w, j->truth);
    else
        jsonw_raw(w, SPAN("null"));
}

/* What goes on of what stands in something: all (kept), or texts without names of their own too (usual). */
struct below {
    bool kept, usual;
};

/* Does c, which stands in j, go on, and what of what stands in c? */
static bool goes(const struct swap *s, const struct json *j, const struct json *c, const struct swap_lease *lease,
                 struct below in, struct below *below)
{
    bool object = j->type == JSON_OBJECT, kept = in.kept || is_kept(s, c);
    bool common = object ? has_usual_name(c->key) : in.usual;
    *below = (struct below){kept, common && c->type == JSON_ARRAY};
    if (c->type == JSON_STRING && !kept && !common && lease_of(s, c, lease).n == 0)
        return false;
    return !object || kept || is_word(c->key) || is_asked_for(s, c, lease);
}

static void put_name(struct swap *s, struct jsonw *w, struct span name)
{
    char *key = arena_alloc(&s->a, name.n + 1);
    if (key == NULL) {
        w->out->failed = true;
        return;
    }
    if (name.n)
        memcpy(key, name.p, name.n);
    key[name.n] = '\0';
    jsonw_key(w, key);
}

static void put(struct swap *s, struct jsonw *w, const struct json *j, const struct swap_lease *lease,
                struct below in)
{
    bool object = j->type == JSON_OBJECT;
    struct below below;
    if (!object && j->type != JSON_ARRAY) {
        put_scalar(w, j, lease_of(s, j, lease));
        return;
    }
    (object ? jsonw_object : jsonw_array)(w);
    for (const struct json *c = j->child; c != NULL; c = c->next) {
        if (!goes(s, j, c, lease, in, &below))
            continue;
        if (object)
            put_name(s, w, c->key);
        put(s, w, c, lease, below);
    }
    (object ? jsonw_end_object : jsonw_end_array)(w);
}

/* In the form of an address, as an STS has one; a secret in its place would not be. */
static bool is_namespace(struct span s)
{
    return s.n <= NAMESPACE_MAX && span_is_of(s, SPAN("-._:/")) &&
           (span_starts(s, SPAN("http://")) || span_starts(s, SPAN("https://")) || span_starts(s, SPAN("urn:")));
}

static void open_element(struct dynbuf *out, struct span name, const struct json *j)
{
    (void)dynbuf_addf(out, "<%.*s", SPAN_FMT(name));
    if (j->type == JSON_OBJECT && is_namespace(j->text))
        (void)dynbuf_addf(out, " xmlns=\"%.*s\"", SPAN_FMT(j->text));
    (void)dynbuf_add_byte(out, '>');
}

/* The elements in j; name: of those of a list. */
static void put_xml(struct swap *s, struct dynbuf *out, const struct json *j, struct span name,
                    const struct swap_lease *lease, struct below in)
{
    struct below below;
    for (const struct json *c = j->child; c != NULL; c = c->next) {
        struct span own = j->type == JSON_ARRAY ? name : c->key, instead = lease_of(s, c, lease);
        bool element = c->type != JSON_ARRAY;
        if (!goes(s, j, c, lease, in, &below))
            continue;
        if (element)
            open_element(out, own, c);
        if (c->type == JSON_STRING)
            xml_put_text(out, instead.n ? instead : c->text);
        else
            put_xml(s, out, c, own, lease, below);
        if (element)
            (void)dynbuf_addf(out, "</%.*s>", SPAN_FMT(own));
    }
}

int swap_write(struct swap *s, const struct swap_lease *lease, struct dynbuf *out)
{
    struct jsonw w;
    s->nkept = 0;
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->token[i].what.nkeep; k++)
            if ((s->kept[s->nkept] = json_pointer(s->answer, s->token[i].what.keep[k])) != NULL)
                s->nkept++;
    jsonw_begin(&w, out);
    if (s->is_xml)
        put_xml(s, out, s->answer, SPAN_NONE, lease, (struct below){false, false});
    else
        put(s, &w, s->answer, lease, (struct below){false, false});
    return dynbuf_ok(out) ? 0 : -1;
}

void swap_end(struct swap *s)
{
    arena_wipe(&s->a);
    *s = (struct swap){.n = 0};
}
