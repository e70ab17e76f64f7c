#include "sandbox-shim/checkpoint/form.h"

/* --- the head ------------------------------------------------------------------------- */

void form_put_head(struct dynbuf *b, const struct form_head *h)
{
    msg_put_span(b, h->id);
    msg_put_span(b, h->tenant);
    msg_put_span(b, h->owner);
    msg_put_span(b, h->name);
    msg_put_span(b, h->sandbox);
    msg_put_u64(b, h->generation);
    msg_put_u64(b, h->created_ms);
    msg_put_u64(b, h->files);
    msg_put_u64(b, h->folders);
    msg_put_u64(b, h->links);
    msg_put_u64(b, h->left_out);
    msg_put_u64(b, h->bytes);
    msg_put_u64(b, h->added);
    msg_put_span(b, h->reach);
}

static int get(struct msg_in *m, struct form_head *h, bool kept)
{
    h->id = msg_get_span(m, FORM_ID);
    h->tenant = msg_get_span(m, FORM_OWNER_MAX);
    h->owner = msg_get_span(m, FORM_OWNER_MAX);
    h->name = msg_get_span(m, FORM_NAME_MAX);
    h->sandbox = msg_get_span(m, FORM_NAME_MAX);
    h->generation = msg_get_u64(m);
    h->created_ms = msg_get_u64(m);
    h->files = msg_get_u64(m);
    h->folders = msg_get_u64(m);
    h->links = msg_get_u64(m);
    h->left_out = msg_get_u64(m);
    h->bytes = msg_get_u64(m);
    h->added = msg_get_u64(m);
    h->reach = kept && m->rest.n == 0 ? SPAN_NONE : msg_get_span(m, FORM_REACH_MAX);
    if (!m->bad && form_is_id(h->id) && form_is_called(h->name) && h->sandbox.n > 0)
        return 0;
    m->bad = true;
    return -1;
}

int form_get_head(struct msg_in *m, struct form_head *h)
{
    return get(m, h, false);
}

int form_get_kept(struct span head, struct form_head *h)
{
    struct msg_in m = msg_in(head);

    return get(&m, h, true) == 0 ? msg_end(&m) : -1;
}

/* --- rows ------------------------------------------------------------------------------- */

uint64_t form_pieces(uint64_t size)
{
    return size / FORM_PIECE + (size % FORM_PIECE != 0);
}

void form_put_row(struct dynbuf *b, const struct form_row *r)
{
    msg_put_u8(b, (uint8_t)r->type);
    msg_put_u16(b, (uint16_t)r->mode);
    msg_put_u64(b, r->size);
    msg_put_u64(b, (uint64_t)r->mtime);
    msg_put_span(b, r->name);
    msg_put_span(b, r->target);
}

/* Parts between slashes, none of them empty, `.` or `..`. */
static bool name_ok(struct span s)
{
    struct span part;
    bool more = true;

    if (s.n == 0 || s.n > TAR_NAME_MAX || span_index(s, '\0') != s.n)
        return false;
    while (more) {
        more = span_cut(s, '/', &part, &s);
        if (part.n == 0 || span_eq(part, SPAN(".")) || span_eq(part, SPAN("..")))
            return false;
    }
    return true;
}

static bool row_ok(const struct form_row *r)
{
    bool link = r->type == TAR_LINK, file = r->type == TAR_FILE;

    return (link || file || r->type == TAR_FOLDER) && r->mode <= 07777 && (file || r->size == 0) &&
           name_ok(r->name) && link == (r->target.n > 0) && span_index(r->target, '\0') == r->target.n;
}

int form_get_row(struct msg_in *m, struct form_row *r)
{
    r->type = (enum tar_type)msg_get_u8(m);
    r->mode = msg_get_u16(m);
    r->size = msg_get_u64(m);
    r->mtime = (int64_t)msg_get_u64(m);
    r->name = msg_get_span(m, TAR_NAME_MAX);
    r->target = msg_get_span(m, TAR_NAME_MAX);
    r->pieces = SPAN_NONE;
    uint64_t n = m->bad ? 0 : form_pieces(r->size);
    if (m->bad || !row_ok(r) || n > m->rest.n / FORM_MAC) {
        m->bad = true;
        return -1;
    }
    r->pieces = span_first(m->rest, (size_t)n * FORM_MAC);
    m->rest = span_from(m->rest, r->pieces.n);
    return 0;
}

/* --- the file ------------------------------------------------------------------------- */

static struct span take(struct span *rest, size_t n)
{
    struct span got = span_first(*rest, n);

    *rest = span_from(*rest, got.n);
    return got;
}

int form_split(struct span file, struct form_file *f)
{
    if (!span_starts(file, FORM_CHECKPOINT))
        return -1;
    struct msg_in m = msg_in(span_from(file, FORM_MAGIC));
    f->head = msg_get_span(&m, FORM_HEAD_MAX);
    f->head_mac = take(&m.rest, FORM_MAC);
    f->rows = msg_get_span(&m, FORM_ROWS_MAX);
    f->rows_mac = take(&m.rest, FORM_MAC);
    return msg_end(&m) == 0 && f->head_mac.n == FORM_MAC && f->rows_mac.n == FORM_MAC ? 0 : -1;
}

/* --- what one is called ------------------------------------------------------------------ */

bool form_is_id(struct span s)
{
    struct id id;

    return span_starts(s, SPAN("ck-")) && id_parse(span_from(s, 3), &id) == 0;
}

bool form_is_name(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || (c != '-' && c != '.' && c != '_')))
            return false;
    }
    return s.n > 0 && s.n <= FORM_NAME_MAX && !span_starts(s, SPAN("ck-"));
}

bool form_is_called(struct span s)
{
    return s.n == 0 || form_is_name(s) || form_stays_here(s);
}

bool form_stays_here(struct span name)
{
    return span_eq(name, FORM_OF_FORK) || span_eq(name, FORM_OF_UNDO) || span_eq(name, FORM_OF_IDLE);
}
