/* PNG in, and PNG out. */
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>

#include "web-approval/viewer/view.h"

enum { CHUNK_MAX = 1024 * 1024, CHUNKS_MAX = 1000, GAMMA_LEAST = 20000, GAMMA_MOST = 250000 /* of 100000 */ };

/* Everything lives here, not in variables of a function that an error jumps back to. */
struct png_in {
    struct span rest;
    png_structp png;
    png_infop info;
    png_bytep *rows;
};

static void fault(png_structp png, png_const_charp words)
{
    png_longjmp(png, 1);
}

static void warning(png_structp png, png_const_charp words)
{
}

static void take(png_structp png, png_bytep to, size_t n)
{
    struct png_in *in = png_get_io_ptr(png);

    if (n > in->rest.n)
        png_error(png, "cut");
    if (n > 0)
        memcpy(to, in->rest.p, n);
    in->rest = span_from(in->rest, n);
}

static uint32_t be32(struct span s)
{
    return (uint32_t)s.p[0] << 24 | (uint32_t)s.p[1] << 16 | (uint32_t)s.p[2] << 8 | s.p[3];
}

/* What stands before its pixels: an animation says so (acTL), of which libpng shows the picture alone that programs
 * show which know of none, be it of one frame; and with a gamma that is far from any screen's (gAMA), one picture is
 * seen by programs that go by it and another by others. False: that it has, or so much stands there that it is not
 * looked through. */
static bool head_look(struct span s, uint32_t *frames)
{
    size_t chunks = 0;
    bool plain = true, seen = false;

    for (s = span_from(s, 8); !seen && s.n >= 12 && chunks < CHUNKS_MAX; chunks++) {
        uint32_t n = be32(s);
        struct span name = span_first(span_from(s, 4), 4);
        seen = span_eq(name, SPAN("IDAT"));
        if (span_eq(name, SPAN("acTL"))) {
            *frames = n >= 4 ? be32(span_from(s, 8)) : 0;
            *frames = *frames < 2 ? 2 : *frames < VIEW_FRAMES_MAX ? *frames : VIEW_FRAMES_MAX;
        }
        if (span_eq(name, SPAN("gAMA")) && n >= 4)
            plain &= be32(span_from(s, 8)) >= GAMMA_LEAST && be32(span_from(s, 8)) <= GAMMA_MOST;
        s = span_from(s, (size_t)n + 12);
    }
    return plain && seen;
}

/* What is beside its pixels is not read at all: profiles, texts, times. */
static void pixels_alone(png_structp png)
{
    static const png_byte others[] = "bKGD\0cHRM\0eXIf\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0"
                                     "sRGB\0sTER\0tEXt\0tIME\0zTXt";

    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, others, (int)(sizeof others / 5));
    png_set_user_limits(png, VIEW_SIDE_MAX, VIEW_SIDE_MAX);
    png_set_chunk_malloc_max(png, CHUNK_MAX);
    png_set_chunk_cache_max(png, CHUNKS_MAX);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
}

static bool pixels(struct png_in *in, struct raster *r, struct viewed *v)
{
    png_read_info(in->png, in->info);
    if (!view_room(r, v, png_get_image_width(in->png, in->info), png_get_image_height(in->png, in->info)))
        return false;
    png_set_expand(in->png);
    png_set_scale_16(in->png);
    png_set_gray_to_rgb(in->png);
    png_set_add_alpha(in->png, 0xff, PNG_FILLER_AFTER);
    (void)png_set_interlace_handling(in->png);
    png_read_update_info(in->png, in->info);
    if (png_get_rowbytes(in->png, in->info) != (size_t)r->w * 4)
        png_error(in->png, "not four bytes a pixel");
    in->rows = calloc(r->h, sizeof *in->rows);
    if (!in->rows)
        return false;
    for (uint32_t y = 0; y < r->h; y++)
        in->rows[y] = r->rgba + (size_t)y * r->w * 4;
    png_read_image(in->png, in->rows);
    png_read_end(in->png, NULL);
    return true;
}

/* A head that says more than is drawn is no damage, and libpng says of it no more than that it does not like it. */
static bool is_large(struct span s, struct viewed *v)
{
    if (s.n < 24)
        return false;
    v->width = be32(span_from(s, 16));
    v->height = be32(span_from(s, 20));
    return v->width > VIEW_SIDE_MAX || v->height > VIEW_SIDE_MAX;
}

bool view_png(struct span s, struct raster *r, struct viewed *v)
{
    static struct png_in in;
    static bool good;

    in = (struct png_in){.rest = s};
    good = false;
    bool plain = head_look(s, &v->frames), large = is_large(s, v);
    if (large || !plain) {
        v->end = large ? VIEW_LARGE : VIEW_DAMAGED;
        return false;
    }
    in.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, fault, warning);
    in.info = in.png ? png_create_info_struct(in.png) : NULL;
    if (!in.info)
        goto out;
    if (setjmp(png_jmpbuf(in.png)) != 0) {
        good = false;
        v->end = VIEW_DAMAGED;
        goto out;
    }
    png_set_read_fn(in.png, &in, take);
    pixels_alone(in.png);
    good = pixels(&in, r, v);
    v->behind = in.rest.n;
out:
    png_destroy_read_struct(&in.png, &in.info, NULL);
    free(in.rows);
    return good;
}

/* --- out ---------------------------------------------------------------------------------- */

static void give(png_structp png, png_bytep from, size_t n)
{
    if (dynbuf_add(png_get_io_ptr(png), span_of(from, n)) != 0)
        png_error(png, "too long");
}

static void flush(png_structp png)
{
}

bool view_write(const struct raster *r, bool clear, struct dynbuf *out)
{
    static png_structp png;
    static png_infop info;
    static bool good;

    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, fault, warning);
    info = png ? png_create_info_struct(png) : NULL;
    good = false;
    if (!info)
        goto out;
    if (setjmp(png_jmpbuf(png)) != 0) {
        good = false;
        goto out;
    }
    png_set_write_fn(png, out, give, flush);
    png_set_compression_level(png, 3);
    png_set_IHDR(png, info, r->w, r->h, 8, clear ? PNG_COLOR_TYPE_RGB_ALPHA : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_BASE, PNG_FILTER_TYPE_BASE);
    png_write_info(png, info);
    if (!clear)
        png_set_filler(png, 0, PNG_FILLER_AFTER);
    for (uint32_t y = 0; y < r->h; y++)
        png_write_row(png, r->rgba + (size_t)y * r->w * 4);
    png_write_end(png, NULL);
    good = dynbuf_ok(out);
out:
    png_destroy_write_struct(&png, &info);
    return good;
}
