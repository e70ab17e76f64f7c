/* Smaller, where it is too large to be shown. */
#include <stdlib.h>

#include "web-approval/viewer/view.h"

static uint32_t part(uint32_t of, uint32_t by, uint32_t from)
{
    uint64_t n = (uint64_t)of * by / from;

    return n > 0 ? (uint32_t)n : 1;
}

/* The largest with these proportions that is within the bounds. */
static void fit(uint32_t *w, uint32_t *h)
{
    uint32_t width = *w, height = *h, longest = width > height ? width : height;
    uint32_t side = longest < VIEW_SHOWN_SIDE_MAX ? longest : VIEW_SHOWN_SIDE_MAX;
    uint32_t low = 1, high = side;

    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        uint64_t pixels = (uint64_t)part(width, middle, longest) * part(height, middle, longest);
        if (pixels <= VIEW_SHOWN_MAX)
            low = middle;
        else
            high = middle - 1;
    }
    *w = part(width, low, longest);
    *h = part(height, low, longest);
}

/* What is clear counts for its colour as little as it is seen. */
static void mean(const struct raster *from, uint32_t x0, uint32_t x1, uint32_t y0, uint32_t y1, uint8_t to[4])
{
    uint64_t sum[4] = {0}, n = (uint64_t)(x1 - x0) * (y1 - y0);

    for (uint32_t y = y0; y < y1; y++) {
        const uint8_t *p = from->rgba + 4 * ((size_t)y * from->w + x0);
        for (uint32_t x = x0; x < x1; x++, p += 4) {
            for (size_t c = 0; c < 3; c++)
                sum[c] += (uint64_t)p[c] * p[3];
            sum[3] += p[3];
        }
    }
    for (size_t c = 0; c < 3; c++)
        to[c] = sum[3] ? (uint8_t)((sum[c] + sum[3] / 2) / sum[3]) : 0;
    to[3] = (uint8_t)((sum[3] + n / 2) / n);
}

bool view_scale(struct raster *r)
{
    struct raster to = {r->w, r->h, NULL};

    fit(&to.w, &to.h);
    if (to.w == r->w && to.h == r->h)
        return true;
    to.rgba = calloc((size_t)to.w * to.h, 4);
    if (!to.rgba)
        return false;
    for (uint32_t y = 0; y < to.h; y++) {
        uint32_t y0 = (uint32_t)((uint64_t)y * r->h / to.h), y1 = (uint32_t)((uint64_t)(y + 1) * r->h / to.h);
        for (uint32_t x = 0; x < to.w; x++)
            mean(r, (uint32_t)((uint64_t)x * r->w / to.w), (uint32_t)((uint64_t)(x + 1) * r->w / to.w), y0, y1,
                 to.rgba + 4 * ((size_t)y * to.w + x));
    }
    free(r->rgba);
    *r = to;
    return true;
}
