/* One picture's bytes, which are anybody's, into a fresh PNG of it. Pure: bytes in, bytes out; but the libraries that
 * it stands on are large and old, so it runs in a process that has nothing else (main.c). */
#ifndef WEB_APPROVAL_VIEWER_VIEW_H
#define WEB_APPROVAL_VIEWER_VIEW_H

#include "web-approval/viewer/viewed.h"

/* All of a picture, four bytes a pixel: red, green, blue, alpha. */
struct raster {
    uint32_t w, h;
    uint8_t *rgba; /* owned */
};

/* What it is, and as far as it can be shown a PNG into out, which is empty before (its limit: VIEW_PNG_MAX). */
void view_make(struct span picture, struct dynbuf *out, struct viewed *v);

/* A package's list (packed.h) into out; view_make's way for what begins as gzip. */
void view_package(struct span gz, struct dynbuf *out, struct viewed *v);

/* By its first bytes. */
enum view_format view_format_of(struct span picture);
/* Its size as its head says, kept in v: memory for it, all clear. False: it is more than is drawn, or there is none;
 * v says which. */
bool view_room(struct raster *r, struct viewed *v, uint64_t width, uint64_t height);

/* One format each: the first picture into r, what there is to say into v. False: v->end says why. */
bool view_png(struct span s, struct raster *r, struct viewed *v);
bool view_jpeg(struct span s, struct raster *r, struct viewed *v);
bool view_gif(struct span s, struct raster *r, struct viewed *v);
bool view_webp(struct span s, struct raster *r, struct viewed *v);

/* Make r small enough to be shown, each pixel the mean of those it stands for. False: no memory. */
bool view_scale(struct raster *r);
/* As PNG, with alpha if it is clear somewhere. False: no memory, or more than out takes. */
bool view_write(const struct raster *r, bool clear, struct dynbuf *out);

#endif
