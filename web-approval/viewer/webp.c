/* WebP. */
#include <webp/decode.h>

#include "web-approval/viewer/view.h"

enum { RIFF_HEAD = 8 };

bool view_webp(struct span s, struct raster *r, struct viewed *v)
{
    WebPBitstreamFeatures f;
    uint64_t size = s.n < 12 ? 0 : s.p[4] | (uint64_t)s.p[5] << 8 | (uint64_t)s.p[6] << 16 | (uint64_t)s.p[7] << 24;

    v->end = VIEW_DAMAGED;
    size += RIFF_HEAD + (size & 1);
    if (size > s.n)
        return false;
    v->behind = s.n - size;
    s = span_first(s, (size_t)size);
    if (WebPGetFeatures(s.p, s.n, &f) != VP8_STATUS_OK || f.width < 0 || f.height < 0)
        return false;
    if (f.has_animation) {
        v->width = (uint32_t)f.width;
        v->height = (uint32_t)f.height;
        v->end = VIEW_MOVES;
        return false;
    }
    v->end = VIEW_FAILED;
    if (!view_room(r, v, (uint64_t)f.width, (uint64_t)f.height))
        return false;
    v->end = VIEW_DAMAGED;
    return WebPDecodeRGBAInto(s.p, s.n, r->rgba, (size_t)r->w * r->h * 4, (int)r->w * 4) != NULL;
}
