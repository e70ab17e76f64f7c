#include "web-approval/viewer/view.h"

#include <stdlib.h>

enum view_format view_format_of(struct span s)
{
    if (span_starts(s, SPAN("\x89PNG\r\n\x1a\n")))
        return VIEW_PNG;
    if (span_starts(s, SPAN("\xff\xd8\xff")))
        return VIEW_JPEG;
    if (span_starts(s, SPAN("GIF87a")) || span_starts(s, SPAN("GIF89a")))
        return VIEW_GIF;
    if (span_starts(s, SPAN("RIFF")) && span_starts(span_from(s, 8), SPAN("WEBP")))
        return VIEW_WEBP;
    if (span_starts(s, SPAN("\x1f\x8b")))
        return VIEW_PACKAGE;
    return VIEW_NO_FORMAT;
}

bool view_room(struct raster *r, struct viewed *v, uint64_t width, uint64_t height)
{
    v->width = width > UINT32_MAX ? UINT32_MAX : (uint32_t)width;
    v->height = height > UINT32_MAX ? UINT32_MAX : (uint32_t)height;
    if (width == 0 || height == 0) {
        v->end = VIEW_DAMAGED;
        return false;
    }
    if (width > VIEW_SIDE_MAX || height > VIEW_SIDE_MAX || width * height > VIEW_PIXELS_MAX) {
        v->end = VIEW_LARGE;
        return false;
    }
    *r = (struct raster){(uint32_t)width, (uint32_t)height, calloc((size_t)(width * height), 4)};
    return r->rgba != NULL;
}

static bool is_clear(const struct raster *r)
{
    size_t n = (size_t)r->w * r->h;

    for (size_t i = 0; i < n; i++)
        if (r->rgba[4 * i + 3] != 0xff)
            return true;
    return false;
}

static bool read_it(struct span s, struct raster *r, struct viewed *v)
{
    switch (v->format) {
    case VIEW_PNG: return view_png(s, r, v);
    case VIEW_JPEG: return view_jpeg(s, r, v);
    case VIEW_GIF: return view_gif(s, r, v);
    case VIEW_WEBP: return view_webp(s, r, v);
    default: v->end = VIEW_KIND; return false;
    }
}

void view_make(struct span picture, struct dynbuf *out, struct viewed *v)
{
    struct raster r = {0, 0, NULL};

    *v = (struct viewed){.end = VIEW_FAILED, .format = view_format_of(picture), .frames = 1};
    if (picture.n > VIEW_BYTES_MAX) {
        v->end = VIEW_LARGE;
        return;
    }
    if (v->format == VIEW_PACKAGE) {
        view_package(picture, out, v);
        return;
    }
    if (read_it(picture, &r, v)) {
        v->clear = is_clear(&r);
        if (view_scale(&r) && view_write(&r, v->clear, out)) {
            v->end = VIEW_SHOWN;
            v->w = r.w;
            v->h = r.h;
        }
    }
    free(r.rgba);
}
