/* Codings of a body, taken off once: what lies below a second one nobody sees, and is blocked. */
#include "web-approval/reading/parts.h"

#include <zlib.h>

/* 0: all of in was one stream, opened into out; -1: it was not, or was longer than out takes. */
static int inflate_all(struct span in, struct dynbuf *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)in.p, .avail_in = (uInt)in.n};
    int rc = inflateInit2(&z, 15 + 32); /* gzip or zlib, by its head */
    bool begun = rc == Z_OK;

    while (rc == Z_OK) {
        uint8_t *room = dynbuf_room(out, 16 * 1024);
        if (!room)
            break;
        z.next_out = room;
        z.avail_out = 16 * 1024;
        rc = inflate(&z, Z_NO_FLUSH);
        dynbuf_grew(out, 16 * 1024 - z.avail_out);
    }
    if (begun)
        (void)inflateEnd(&z);
    return rc == Z_STREAM_END && z.avail_in == 0 && dynbuf_ok(out) ? 0 : -1;
}

static bool is_compressed(struct span s)
{
    return span_starts(s, SPAN("\x1f\x8b")) || span_starts(s, SPAN("\x28\xb5\x2f\xfd"));
}

bool coding_open(struct reading *r)
{
    struct span coding = span_trim(r->coding);
    struct dynbuf b;

    /* Data in signed chunks: it is not changed by it. */
    if (coding.n == 0 || span_ieq(coding, SPAN("identity")) || span_ieq(coding, SPAN("aws-chunked")))
        return true;
    if (!span_ieq(coding, SPAN("gzip")) && !span_ieq(coding, SPAN("x-gzip")) && !span_ieq(coding, SPAN("deflate"))) {
        flag_block(r, "The body is in a coding that is not opened here", SPAN("Content-Encoding"), coding);
        return false;
    }
    dynbuf_init(&b, READING_OPENED + 16 * 1024);
    bool whole = !r->asked->cut && inflate_all(r->asked->body, &b) == 0 && b.n <= READING_OPENED;
    r->text = whole ? arena_copy(r->arena, dynbuf_span(&b)) : SPAN_NONE;
    r->opened = whole && r->text.n == b.n;
    dynbuf_free(&b);
    if (!r->opened) {
        r->text = r->asked->body;
        flag_block(r, "The body cannot be opened as its coding says, or is more than is shown here",
                   SPAN("Content-Encoding"), coding);
        return false;
    }
    if (is_compressed(r->text)) {
        flag_block(r, "The body is compressed inside what is compressed: what it says is not shown",
                   SPAN("Content-Encoding"), coding);
        return false;
    }
    return true;
}
