/* A form with files for the answers to the questions of conditions: a part for each name, of a field or a file. */
#include "cli/policy/diff/diff_body.h"

#define BOUNDARY "countersign-policy-diff"
#define TYPE     "multipart/form-data; boundary=" BOUNDARY
const struct span diff_multipart_type = {(const uint8_t *)TYPE, sizeof(TYPE) - 1};

/* What stands in one part, of all those of its name. */
struct form_part {
    struct span name, field, file, type;
};

/* Without what a part's head is not understood with (policy/body/multipart.c). */
bool diff_multipart_can_be(struct span key, struct span text)
{
    bool field = span_starts(key, SPAN("field ")), good = true;
    for (size_t i = 0; i < text.n && !field; i++)
        good &= text.p[i] >= ' ' && text.p[i] != 0x7f && span_index(SPAN("\"\\;"), text.p[i]) == 3;
    if (span_starts(key, SPAN("content_type ")))
        good &= span_index(text, '/') < text.n && span_index(text, ' ') == text.n;
    return good && span_find(text, SPAN(BOUNDARY)) == text.n;
}

static struct span name_of(struct span key)
{
    return span_from(key, span_index(key, ' ') + 1);
}

static struct form_part part_of(const struct stands *v, size_t n, struct span name, bool second)
{
    struct form_part p = {.name = name};
    for (size_t i = 0; i < n; i++) {
        struct span text = second && v[i].second.p ? v[i].second : v[i].text;
        if (!span_eq(name_of(v[i].key), name))
            continue;
        if (span_starts(v[i].key, SPAN("file ")))
            p.file = text;
        else if (span_starts(v[i].key, SPAN("content_type ")))
            p.type = text;
        else
            p.field = text;
    }
    return p;
}

static void put_part(struct dynbuf *b, const struct form_part *p)
{
    (void)dynbuf_addf(b, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"");
    (void)dynbuf_add(b, p->name);
    if (p->file.p) {
        (void)dynbuf_add(b, SPAN("\"; filename=\""));
        (void)dynbuf_add(b, p->file);
    }
    (void)dynbuf_add(b, SPAN("\"\r\n"));
    if (p->type.p) {
        (void)dynbuf_add(b, SPAN("Content-Type: "));
        (void)dynbuf_add(b, p->type);
        (void)dynbuf_add(b, SPAN("\r\n"));
    }
    (void)dynbuf_add(b, SPAN("\r\n"));
    (void)dynbuf_add(b, p->field.p ? p->field : SPAN("x"));
    (void)dynbuf_add(b, SPAN("\r\n"));
}

int diff_write_multipart(struct dynbuf *b, const struct stands *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct span name = name_of(v[i].key);
        bool first = true, twice = false;
        for (size_t k = 0; k < n; k++) {
            bool same = span_eq(name_of(v[k].key), name);
            first &= !same || k >= i;
            twice |= same && v[k].second.p != NULL;
        }
        struct form_part one = part_of(v, n, name, false), other = part_of(v, n, name, true);
        if (one.field.p && one.file.p)
            return -1;
        if (first)
            put_part(b, &one);
        if (first && twice)
            put_part(b, &other);
    }
    (void)dynbuf_addf(b, "--" BOUNDARY "--\r\n");
    return 0;
}
