/* JPEG. What the library would only warn of is damage here: programs differ in what they make of it. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <jpeglib.h>

#include "web-approval/viewer/view.h"

enum { SCANS_MAX = 200 }; /* passes over one picture: a small file may ask for thousands */

struct jpeg_in {
    struct jpeg_error_mgr errors; /* first: the library knows no more of this */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct d;
    jmp_buf back;
};

static void fault(j_common_ptr d)
{
    struct jpeg_in *in = (struct jpeg_in *)(void *)d->err;

    longjmp(in->back, 1);
}

static void message(j_common_ptr d, int level)
{
    if (level < 0)
        fault(d);
}

static void silent(j_common_ptr d)
{
}

static void progress(j_common_ptr d)
{
    if (d->is_decompressor && ((j_decompress_ptr)d)->input_scan_number > SCANS_MAX)
        fault(d);
}

static bool pixels(struct jpeg_in *in, struct span s, struct raster *r, struct viewed *v)
{
    struct jpeg_decompress_struct *d = &in->d;

    jpeg_mem_src(d, s.p, s.n);
    (void)jpeg_read_header(d, TRUE);
    if (d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK) {
        v->end = VIEW_KIND;
        return false;
    }
    if (!view_room(r, v, d->image_width, d->image_height))
        return false;
    d->out_color_space = JCS_EXT_RGBA;
    (void)jpeg_start_decompress(d);
    while (d->output_scanline < d->output_height) {
        JSAMPROW row = r->rgba + (size_t)d->output_scanline * r->w * 4;
        (void)jpeg_read_scanlines(d, &row, 1);
    }
    (void)jpeg_finish_decompress(d);
    v->behind = d->src->bytes_in_buffer;
    return true;
}

bool view_jpeg(struct span s, struct raster *r, struct viewed *v)
{
    static struct jpeg_in in;
    static bool good;

    memset(&in, 0, sizeof in);
    good = false;
    in.d.err = jpeg_std_error(&in.errors);
    in.errors.error_exit = fault;
    in.errors.emit_message = message;
    in.errors.output_message = silent;
    in.progress.progress_monitor = progress;
    if (setjmp(in.back) != 0) {
        good = false;
        v->end = VIEW_DAMAGED;
        goto out;
    }
    jpeg_create_decompress(&in.d);
    in.d.progress = &in.progress;
    good = pixels(&in, s, r, v);
out:
    jpeg_destroy_decompress(&in.d);
    return good;
}
