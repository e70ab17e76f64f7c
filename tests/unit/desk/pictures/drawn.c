#include "tests/unit/desk/pictures/drawn.h"

#include <gif_lib.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <jpeglib.h>
#include <webp/encode.h>

static uint8_t *pixels(const struct drawn *d)
{
    uint8_t *p = calloc((size_t)d->w * d->h, 4);

    for (uint32_t y = 0; p && y < d->h; y++)
        for (uint32_t x = 0; x < d->w; x++)
            memcpy(p + 4 * ((size_t)y * d->w + x), x < d->w / 2 ? d->left : d->right, 4);
    if (!p)
        abort();
    return p;
}

static void give(png_structp png, png_bytep from, size_t n)
{
    (void)dynbuf_add(png_get_io_ptr(png), span_of(from, n));
}

static void flush(png_structp png)
{
}

void drawn_png(const struct drawn *d, struct dynbuf *out)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_bytep *rows = calloc(d->h, sizeof *rows);
    uint8_t *p = pixels(d);

    for (uint32_t y = 0; rows && y < d->h; y++)
        rows[y] = p + (size_t)y * d->w * 4;
    png_set_write_fn(png, out, give, flush);
    png_set_IHDR(png, info, d->w, d->h, 8, PNG_COLOR_TYPE_RGB_ALPHA,
                 d->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
                 PNG_FILTER_TYPE_BASE);
    png_write_info(png, info);
    png_write_image(png, rows);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(rows);
    free(p);
}

void drawn_jpeg(const struct drawn *d, struct dynbuf *out)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *made = NULL;
    unsigned long n = 0;
    uint8_t *p = pixels(d);

    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &made, &n);
    c.image_width = d->w;
    c.image_height = d->h;
    c.input_components = 4;
    c.in_color_space = JCS_EXT_RGBA;
    jpeg_set_defaults(&c);
    if (d->interlaced)
        jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = p + (size_t)c.next_scanline * d->w * 4;
        (void)jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    (void)dynbuf_add(out, span_of(made, n));
    jpeg_destroy_compress(&c);
    free(made);
    free(p);
}

static int put(GifFileType *gif, const GifByteType *from, int n)
{
    return dynbuf_add(gif->UserData, span_of(from, (size_t)n)) == 0 ? n : 0;
}

/* Colour 0 is the left one, 1 the right one; with an alpha of 0 it is the clear one. Later pictures have them the
 * other way round. */
static void gif_picture(GifFileType *gif, const struct drawn *d, bool turned)
{
    static const uint32_t begins[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    GifPixelType *line = calloc(d->w, 1);

    if (!line)
        abort();
    for (uint32_t x = 0; x < d->w; x++)
        line[x] = (x < d->w / 2) == turned;
    (void)EGifPutImageDesc(gif, 0, 0, (int)d->w, (int)d->h, d->interlaced, NULL);
    for (size_t pass = 0; pass < (d->interlaced ? 4 : 1); pass++)
        for (uint32_t y = d->interlaced ? begins[pass] : 0; y < d->h; y += d->interlaced ? steps[pass] : 1)
            (void)EGifPutLine(gif, line, (int)d->w);
    free(line);
}

void drawn_gif(const struct drawn *d, struct dynbuf *out)
{
    GifColorType colours[2] = {{d->left[0], d->left[1], d->left[2]}, {d->right[0], d->right[1], d->right[2]}};
    ColorMapObject *map = GifMakeMapObject(2, colours);
    const GifByteType clear[] = {1, 0, 0, 1};
    int why;
    GifFileType *gif = EGifOpen(out, put, &why);

    if (!gif || !map)
        abort();
    EGifSetGifVersion(gif, true);
    (void)EGifPutScreenDesc(gif, (int)d->w, (int)d->h, 8, 0, map);
    for (unsigned i = 0; i < (d->pictures ? d->pictures : 1); i++) {
        if (d->right[3] == 0)
            (void)EGifPutExtension(gif, GRAPHICS_EXT_FUNC_CODE, sizeof clear, clear);
        gif_picture(gif, d, i > 0);
    }
    (void)EGifCloseFile(gif, &why);
    GifFreeMapObject(map);
}

void drawn_webp(const struct drawn *d, struct dynbuf *out)
{
    uint8_t *p = pixels(d), *made = NULL;
    size_t n = WebPEncodeLosslessRGBA(p, (int)d->w, (int)d->h, (int)d->w * 4, &made);

    (void)dynbuf_add(out, span_of(made, n));
    WebPFree(made);
    free(p);
}
