#include "proxy/judge/tickets/retry.h"

#include "common/arena.h"
#include "common/json/json.h"
#include "common/text/multipart.h"

enum { JSON_ARENA = 4 * 1024 * 1024, LEFT_OUT_MAX = 5, UUID_TEXT = 36 };

static void number(struct digest_ctx *d, uint64_t v)
{
    uint8_t raw[8];
    for (int i = 0; i < 8; i++)
        raw[i] = (uint8_t)(v >> (56 - 8 * i));
    digest_add(d, span_of(raw, sizeof(raw)));
}

/* The one field of this name; NULL: there is none, or there are more. */
static const struct http_field *one_field(const struct wire_request *r, struct span name)
{
    const struct http_field *found = NULL;
    size_t n = 0;
    for (size_t i = 0; i < r->nfields; i++)
        if (span_ieq(r->field[i].name, name)) {
            found = &r->field[i];
            n++;
        }
    return n == 1 ? found : NULL;
}

/* The media type of the body without its parameters. */
static bool is_type(const struct wire_request *r, struct span wanted)
{
    const struct http_field *f = one_field(r, SPAN("content-type"));
    return f != NULL && span_ieq(span_trim(span_first(f->value, span_index(f->value, ';'))), wanted);
}

/* What goes into a digest stands behind a word for what it is, so that no row of parts reads like another. */
enum tag { TAG_TYPE = 1, TAG_PARAMETER, TAG_PART, TAG_END, TAG_LEFT_OUT, TAG_JSON };

static void add(struct digest_ctx *d, enum tag tag, struct span s)
{
    number(d, tag);
    digest_add_field(d, s);
}

/* ---- multipart: the boundary ---- */

/* The type and its other parameters count, and each part to the byte. */
static bool multipart(const struct wire_request *r, struct span body, struct retry *out, struct digest_ctx *d)
{
    const struct http_field *type = one_field(r, SPAN("content-type"));
    enum multipart_next next;
    struct multipart_type is;
    struct span part;
    if (type == NULL || multipart_type(type->value, &is) != 0)
        return false;
    add(d, TAG_TYPE, is.type);
    for (size_t i = 0; i < is.nothers; i++)
        add(d, TAG_PARAMETER, is.other[i]);
    struct multipart m = {.boundary = is.boundary, .rest = body};
    while ((next = multipart_next(&m, &part)) == MULTIPART_PART)
        add(d, TAG_PART, part);
    add(d, TAG_END, m.rest);
    out->without_type = out->has_body = true;
    return next == MULTIPART_END;
}

/* ---- uploads to an OCI registry: the id of the upload, and its state ---- */

static bool is_uuid(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (i == 8 || i == 13 || i == 18 || i == 23 ? s.p[i] != '-' : hex_digit(s.p[i]) < 0)
            return false;
    return s.n == UUID_TEXT;
}

/* _state, which changes with the upload, and digest, which says what it is to become. */
static bool upload_query(const struct wire_request *r, struct retry *out)
{
    struct span part, rest = r->query, digest = SPAN_NONE;
    bool more = r->has_query, state = false;
    while (more) {
        more = span_cut(rest, '&', &part, &rest);
        if (span_starts(part, SPAN("digest=")) && digest.n == 0)
            digest = part;
        else if (span_starts(part, SPAN("_state=")) && !state)
            state = true;
        else
            return false;
    }
    out->query = digest;
    out->has_query = digest.n > 0;
    return true;
}

/* PATCH and PUT of /v2/NAME/blobs/uploads/ID. Where the first of them went, its answer says in Location, which every
 * client follows; and what a registry keeps in the end is known by its digest. */
static bool oci_upload(const struct wire_request *r, struct span body, struct retry *out, struct digest_ctx *d)
{
    const struct span place = SPAN("/blobs/uploads/");
    size_t n = r->path.n < UUID_TEXT ? 0 : r->path.n - UUID_TEXT;
    struct span before = span_first(r->path, n);
    bool upload = span_eq(r->method, SPAN("PATCH")) || span_eq(r->method, SPAN("PUT"));
    if (!upload || !is_uuid(span_from(r->path, n)) || !span_starts(before, SPAN("/v2/")) ||
        !span_ends(before, place) || before.n <= 4 + place.n)
        return false;
    out->path = before;
    return upload_query(r, out);
}

/* ---- tokens by which AWS knows an effect that it is asked for twice ---- */

/* An API of the query protocol (EC2, RDS ...): a form with Action, Version and, written by the SDK, ClientToken. */
static bool aws_form(const struct wire_request *r, struct span body, struct retry *out, struct digest_ctx *d)
{
    struct span part, rest = body;
    size_t action = 0, version = 0, token = 0;
    bool more = body.n > 0;
    if (!is_type(r, SPAN("application/x-www-form-urlencoded")) || !span_eq(r->method, SPAN("POST")))
        return false;
    while (more) {
        more = span_cut(rest, '&', &part, &rest);
        action += span_starts(part, SPAN("Action="));
        version += span_starts(part, SPAN("Version="));
        if (span_starts(part, SPAN("ClientToken="))) {
            add(d, TAG_LEFT_OUT, SPAN_NONE);
            token++;
        } else {
            add(d, TAG_PART, part);
        }
    }
    out->has_body = true;
    return action == 1 && version == 1 && token == 1;
}

/* ---- JSON: members that are left out ---- */

struct left_out {
    const struct json *at[LEFT_OUT_MAX];
    size_t n;
};

/* A text or a number is there or not; only what it says is left out. */
static void leave_out(struct left_out *o, const struct json *j, struct span pointer)
{
    const struct json *at = json_pointer(j, pointer);
    if (at != NULL && (at->type == JSON_STRING || at->type == JSON_NUMBER) && o->n < LEFT_OUT_MAX)
        o->at[o->n++] = at;
}

/* The value as everybody reads it: its members in their order, numbers as they are written. At most JSON_DEPTH_MAX
 * nested. */
static void add_json(struct digest_ctx *d, const struct json *j, const struct left_out *o)
{
    bool out = false;
    for (size_t i = 0; i < o->n; i++)
        out |= o->at[i] == j;
    add(d, out ? TAG_LEFT_OUT : TAG_JSON, j->key);
    number(d, j->type);
    number(d, j->truth);
    number(d, j->count);
    digest_add_field(d, out ? SPAN_NONE : j->text);
    for (const struct json *at = j->child; at; at = at->next)
        add_json(d, at, o);
}

static bool is_text(const struct json *j, struct span key, struct span *out)
{
    const struct json *at = json_get(j, key);
    *out = at ? at->text : SPAN_NONE;
    return at != NULL && at->type == JSON_STRING;
}

/* An id that can be put into an answer as it is. */
static bool plain_id(const struct json *id, struct retry *out)
{
    const bool quoted = id->type == JSON_STRING;
    const size_t n = id->text.n;
    uint64_t number;
    if (n == 0 || n + 2 > sizeof(out->id) || (!quoted && (id->type != JSON_NUMBER || n > 15)))
        return false;
    if (quoted ? !span_is_of(id->text, SPAN("-_.:")) : span_u64(id->text, UINT64_MAX, &number) != 0)
        return false;
    out->id[0] = '"';
    memcpy(out->id + quoted, id->text.p, n);
    out->id[n + quoted] = '"';
    out->nid = n + 2 * (size_t)quoted;
    return true;
}

/* A request of JSON-RPC 2.0, and so of MCP over HTTP, with an id. Batches count as they are. */
static bool json_rpc(const struct wire_request *r, const struct json *j, struct left_out *o, struct retry *out)
{
    struct span version, method;
    const struct json *id = json_get(j, SPAN("id"));
    if (!span_eq(r->method, SPAN("POST")) || !is_text(j, SPAN("jsonrpc"), &version) ||
        !span_eq(version, SPAN("2.0")) || !is_text(j, SPAN("method"), &method) || id == NULL || !plain_id(id, out))
        return false;
    leave_out(o, j, SPAN("/id"));
    leave_out(o, j, SPAN("/params/_meta/progressToken")); /* the SDK of MCP makes it from the id */
    leave_out(o, j, SPAN("/params/_meta/traceparent"));   /* as the fields of these names (digest.c) */
    leave_out(o, j, SPAN("/params/_meta/tracestate"));
    leave_out(o, j, SPAN("/params/_meta/baggage"));
    return true;
}

/* The JSON protocols of AWS say in a field which operation it is. */
static bool aws_json(const struct wire_request *r, const struct json *j, struct left_out *o, struct retry *out)
{
    const struct http_field *f = one_field(r, SPAN("x-amz-target"));
    if (f == NULL)
        return false;
    leave_out(o, j, SPAN("/ClientToken"));
    leave_out(o, j, SPAN("/clientToken"));
    if (span_starts(f->value, SPAN("DynamoDB_"))) /* elsewhere it may be the name of what is made */
        leave_out(o, j, SPAN("/ClientRequestToken"));
    return o->n > 0;
}

/* ---- the table ---- */

/* The first row that fits says what counts, in *out and the digest; each says of which type its JSON is. */
static const struct {
    bool (*is)(const struct wire_request *r, struct span body, struct retry *out, struct digest_ctx *d);
    struct span types[3];
    bool (*is_json)(const struct wire_request *r, const struct json *j, struct left_out *o, struct retry *out);
} rows[] = {
    {.is = multipart},
    {.is = oci_upload},
    {.is = aws_form},
    {.types = {SPAN("application/x-amz-json-1.0"), SPAN("application/x-amz-json-1.1")}, .is_json = aws_json},
    {.types = {SPAN("application/json")}, .is_json = json_rpc},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool fits_json(const struct wire_request *r, struct span body, size_t row, struct retry *out,
                      struct digest_ctx *d)
{
    struct left_out o = {.n = 0};
    struct arena a;
    bool type = false, fits = false;
    for (size_t i = 0; i < sizeof(rows[row].types) / sizeof(rows[row].types[0]); i++)
        type |= rows[row].types[i].n > 0 && is_type(r, rows[row].types[i]);
    if (!type || body.n == 0 || body.n > RETRY_JSON_MAX)
        return false;
    arena_init(&a, JSON_ARENA);
    const struct json *j = json_parse(body, &a);
    if (j != NULL && rows[row].is_json(r, j, &o, out)) {
        add_json(d, j, &o);
        fits = true;
    }
    arena_free(&a);
    return fits;
}

void retry_of(const struct wire_request *r, struct span body, struct retry *out)
{
    const struct retry all = {.path = r->path, .query = r->query, .has_query = r->has_query};
    for (size_t i = 0; i < ROWS; i++) {
        *out = all;
        out->has_body = rows[i].is == NULL;
        struct digest_ctx *d = digest_begin();
        bool fits = rows[i].is ? rows[i].is(r, body, out, d) : fits_json(r, body, i, out, d);
        digest_end(d, &out->body);
        out->row = (uint32_t)i + 1;
        if (fits)
            return;
    }
    *out = all;
}
