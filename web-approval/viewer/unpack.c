/* A package: a gzipped tar, as registries take them. What is in it is listed, and nothing of it is written. What
 * programs would unpack differently is damaged, and so not shown. */
#include <stdlib.h>

#include <zlib.h>

#include "sandbox-shim/inside/shim_tar.h"
#include "web-approval/viewer/packed.h"
#include "web-approval/viewer/view.h"

enum { STEP = 64 * 1024 };

struct unpack {
    struct tar tar;
    z_stream z;
    uint8_t plain[STEP];
    struct dynbuf files, manifest;
    uint64_t bytes;
    uint32_t nfiles;
    unsigned manifests;
    bool in_manifest, ended;
};

/* "package/package.json": installers leave the first folder out, whatever it is called. */
static bool is_manifest(const struct tar_member *m)
{
    struct span name = span_str(m->name), first, rest;

    return m->type == TAR_FILE && span_cut(name, '/', &first, &rest) && span_eq(rest, SPAN("package.json"));
}

static enum packed_type type_of(enum tar_type t)
{
    static const enum packed_type is[] = {[TAR_FILE] = PACKED_FILE,
                                          [TAR_FOLDER] = PACKED_FOLDER,
                                          [TAR_LINK] = PACKED_LINK,
                                          [TAR_HARD_LINK] = PACKED_HARD_LINK,
                                          [TAR_OTHER] = PACKED_OTHER};
    return is[t];
}

static bool list_member(struct unpack *u, struct viewed *v)
{
    const struct tar_member *m = &u->tar.member;
    bool link = m->type == TAR_LINK || m->type == TAR_HARD_LINK;

    u->in_manifest = is_manifest(m);
    if (u->in_manifest) {
        u->manifests++;
        dynbuf_reset(&u->manifest); /* the last one is what is left there */
    }
    packed_put(&u->files, &(struct packed_file){type_of(m->type), m->mode, m->size, span_str(m->name),
                                                link ? span_str(m->target) : SPAN_NONE});
    if (++u->nfiles > PACKED_FILES_MAX || !dynbuf_ok(&u->files)) {
        v->end = VIEW_LARGE;
        return false;
    }
    return true;
}

/* False: v->end says why nothing more is read. */
static bool take(struct unpack *u, struct span s, struct viewed *v)
{
    while (s.n > 0) {
        size_t used = 0;
        enum tar_got got = tar_step(&u->tar, s.p, s.n, &used);
        s = span_from(s, used);
        switch (got) {
        case TAR_BAD: v->end = u->nfiles ? VIEW_DAMAGED : VIEW_KIND; return false;
        case TAR_MEMBER:
            if (!list_member(u, v))
                return false;
            break;
        case TAR_DATA:
            if (u->in_manifest && dynbuf_add(&u->manifest, span_of(u->tar.data, u->tar.ndata)) != 0) {
                v->end = VIEW_LARGE;
                return false;
            }
            break;
        case TAR_END:
            u->ended = true;
            for (size_t i = 0; i < s.n; i++) /* zeros fill up its last record */
                v->behind += s.p[i] != 0;
            return true;
        default: break;
        }
    }
    return true;
}

static bool inflate_all(struct unpack *u, struct span gz, struct viewed *v)
{
    int rc = Z_OK;

    u->z.next_in = (Bytef *)(uintptr_t)gz.p;
    u->z.avail_in = (uInt)gz.n;
    while (rc == Z_OK) {
        u->z.next_out = u->plain;
        u->z.avail_out = STEP;
        rc = inflate(&u->z, Z_NO_FLUSH);
        size_t n = STEP - u->z.avail_out;
        u->bytes += n;
        if (u->bytes > PACKED_BYTES_MAX) {
            v->end = VIEW_LARGE;
            return false;
        }
        if (u->ended) {
            for (size_t i = 0; i < n; i++)
                v->behind += u->plain[i] != 0;
        } else if (!take(u, span_of(u->plain, n), v)) {
            return false;
        }
    }
    v->end = u->nfiles ? VIEW_DAMAGED : VIEW_KIND;
    v->behind += u->z.avail_in; /* another stream, which some programs go on with */
    return rc == Z_STREAM_END && u->ended && u->nfiles > 0;
}

void view_package(struct span gz, struct dynbuf *out, struct viewed *v)
{
    struct unpack *u = calloc(1, sizeof(*u));

    *v = (struct viewed){.end = VIEW_FAILED, .format = VIEW_PACKAGE};
    if (u == NULL)
        return;
    u->tar.strict = true;
    dynbuf_init(&u->files, PACKED_LIST_MAX);
    dynbuf_init(&u->manifest, PACKED_MANIFEST_MAX);
    if (inflateInit2(&u->z, 15 + 16) == Z_OK) { /* gzip alone */
        if (inflate_all(u, gz, v)) {
            packed_begin(out, u->manifests, dynbuf_span(&u->manifest));
            (void)dynbuf_add(out, dynbuf_span(&u->files));
            v->width = u->nfiles;
            v->end = dynbuf_ok(out) && out->n <= PACKED_LIST_MAX ? VIEW_SHOWN : VIEW_LARGE;
        }
        (void)inflateEnd(&u->z);
    }
    if (v->behind > VIEW_BYTES_MAX)
        v->behind = VIEW_BYTES_MAX;
    dynbuf_free(&u->manifest);
    dynbuf_free(&u->files);
    free(u);
}
