/* Real pictures of each format, made by the libraries that read them: w by h, its left half of one colour, its right
 * half of another. */
#ifndef TESTS_UNIT_DESK_PICTURES_DRAWN_H
#define TESTS_UNIT_DESK_PICTURES_DRAWN_H

#include <stdint.h>

#include "common/dynbuf.h"

struct drawn {
    uint32_t w, h;
    uint8_t left[4], right[4]; /* red, green, blue, alpha */
    unsigned pictures;         /* of a GIF, one after the other */
    bool interlaced;           /* PNG and GIF; a JPEG in several scans */
};

void drawn_png(const struct drawn *d, struct dynbuf *out);
void drawn_jpeg(const struct drawn *d, struct dynbuf *out);
void drawn_gif(const struct drawn *d, struct dynbuf *out);
void drawn_webp(const struct drawn *d, struct dynbuf *out);

#endif
