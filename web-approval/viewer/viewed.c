#include "web-approval/viewer/viewed.h"

#include "web-approval/viewer/packed.h"

void viewed_put(struct dynbuf *b, const struct viewed *v)
{
    msg_put_u8(b, (uint8_t)v->end);
    msg_put_u8(b, (uint8_t)v->format);
    msg_put_u32(b, v->width);
    msg_put_u32(b, v->height);
    msg_put_u32(b, v->w);
    msg_put_u32(b, v->h);
    msg_put_u32(b, v->frames);
    msg_put_u64(b, v->behind);
    msg_put_u8(b, v->clear);
}

int viewed_get(struct msg_in *m, struct viewed *v)
{
    unsigned end = msg_get_u8(m), format = msg_get_u8(m);

    *v = (struct viewed){.width = msg_get_u32(m)};
    v->height = msg_get_u32(m);
    v->w = msg_get_u32(m);
    v->h = msg_get_u32(m);
    v->frames = msg_get_u32(m);
    v->behind = msg_get_u64(m);
    v->clear = msg_get_bool(m);
    bool good = msg_end(m) == 0 && end < VIEW_BUSY && format < VIEW_FORMATS && v->behind <= VIEW_BYTES_MAX &&
                v->frames <= VIEW_FRAMES_MAX && v->w <= VIEW_SHOWN_SIDE_MAX && v->h <= VIEW_SHOWN_SIDE_MAX &&
                (uint64_t)v->w * v->h <= VIEW_SHOWN_MAX;
    if (end == VIEW_SHOWN && format == VIEW_PACKAGE)
        good = good && v->width > 0 && v->width <= PACKED_FILES_MAX && v->w == 0 && v->h == 0 && !v->clear;
    else if (end == VIEW_SHOWN)
        good = good && format != VIEW_NO_FORMAT && v->w > 0 && v->h > 0 && v->frames > 0 && v->w <= v->width &&
               v->h <= v->height && v->width <= VIEW_SIDE_MAX && v->height <= VIEW_SIDE_MAX;
    v->end = (enum view_end)end;
    v->format = (enum view_format)format;
    if (!good)
        *v = (struct viewed){.end = VIEW_FAILED};
    return good ? 0 : -1;
}

const char *viewed_format(const struct viewed *v)
{
    static const char *const names[VIEW_FORMATS] = {"a picture", "PNG", "JPEG", "GIF", "WebP", "a package"};

    return names[v->format];
}

static uint32_t be32(struct span s, size_t at)
{
    return (uint32_t)s.p[at] << 24 | (uint32_t)s.p[at + 1] << 16 | (uint32_t)s.p[at + 2] << 8 | s.p[at + 3];
}

bool viewed_png(struct span png, const struct viewed *v)
{
    static const uint8_t head[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13, 'I', 'H', 'D', 'R'};
    static const uint8_t tail[] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};

    return png.n > sizeof head + 8 + sizeof tail && png.n <= VIEW_PNG_MAX &&
           span_starts(png, span_of(head, sizeof head)) && span_ends(png, span_of(tail, sizeof tail)) &&
           be32(png, sizeof head) == v->w && be32(png, sizeof head + 4) == v->h;
}

bool viewed_made(struct span made, const struct viewed *v)
{
    return v->format == VIEW_PACKAGE ? made.n <= PACKED_LIST_MAX && packed_good(made, v->width) : viewed_png(made, v);
}
