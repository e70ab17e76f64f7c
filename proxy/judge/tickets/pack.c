#include "proxy/judge/tickets/pack.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <zlib.h>

#include "proxy/judge/tickets/pack_delta.h"

enum { WINDOW = 64 * 1024 };
enum object_type { OBJ_COMMIT = 1, OBJ_TREE, OBJ_BLOB, OBJ_TAG, OBJ_OFS_DELTA = 6, OBJ_REF_DELTA };

struct reading {
    struct pack *p;
    struct span all;
    size_t at;
    uint64_t inflated;
    z_stream z;
    EVP_MD_CTX *md;
    uint8_t *window;
};

struct object {
    size_t at;
    enum object_type type;
    uint64_t size;
    const struct pack_entry *base; /* of a delta, when it is one of ours */
};

static int stop(struct reading *r, const char *why)
{
    r->p->stopped = why;
    return -1;
}

static int next_byte(struct reading *r, uint8_t *c)
{
    if (r->at >= r->all.n)
        return stop(r, "it is cut short");
    *c = r->all.p[r->at++];
    return 0;
}

/* They stand in the order in which they were met. */
static const struct pack_entry *entry_at(const struct pack *p, size_t at)
{
    size_t lo = 0, hi = p->nentries;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (p->entry[mid].at == at)
            return &p->entry[mid];
        if (p->entry[mid].at < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static const struct pack_entry *entry_of(const struct pack *p, const uint8_t *id)
{
    for (size_t i = 0; i < p->nentries; i++)
        if (memcmp(p->entry[i].id, id, p->id_bytes) == 0)
            return &p->entry[i];
    return NULL;
}

/* Each further byte counts one more than it says, so that no offset can be written in two ways. */
static int ofs_base(struct reading *r, struct object *o)
{
    uint8_t c;
    uint64_t back;
    if (next_byte(r, &c) != 0)
        return -1;
    back = c & 0x7f;
    while (c & 0x80) {
        if (back >= r->all.n)
            return stop(r, "a delta points out of it");
        if (next_byte(r, &c) != 0)
            return -1;
        back = (back + 1) << 7 | (c & 0x7f);
    }
    if (back == 0 || back > o->at)
        return stop(r, "a delta points out of it");
    o->base = entry_at(r->p, o->at - (size_t)back);
    return 0;
}

static int object_head(struct reading *r, struct object *o)
{
    uint8_t c;
    *o = (struct object){.at = r->at};
    if (next_byte(r, &c) != 0)
        return -1;
    o->type = (enum object_type)(c >> 4 & 7);
    o->size = c & 0x0f;
    for (unsigned shift = 4; c & 0x80; shift += 7) {
        if (shift > 46)
            return stop(r, "an object in it says it is impossibly large");
        if (next_byte(r, &c) != 0)
            return -1;
        o->size |= (uint64_t)(c & 0x7f) << shift;
    }
    if (o->type == OBJ_OFS_DELTA)
        return ofs_base(r, o);
    if (o->type == OBJ_REF_DELTA) {
        if (r->all.n - r->at < r->p->id_bytes)
            return stop(r, "it is cut short");
        o->base = entry_of(r->p, r->all.p + r->at);
        r->at += r->p->id_bytes;
        return 0;
    }
    return o->type >= OBJ_COMMIT && o->type <= OBJ_TAG ? 0 : stop(r, "there is an object of no known type in it");
}

/* One zlib stream of exactly `size` bytes: into `to`, or, when that is NULL, nowhere. */
static int inflate_object(struct reading *r, uint64_t size, uint8_t *to)
{
    z_stream *z = &r->z;
    uint64_t out = 0;
    int rc = Z_OK;
    if (inflateReset(z) != Z_OK)
        return stop(r, "there was no memory to read it");
    z->next_in = (uint8_t *)(uintptr_t)(r->all.p + r->at);
    z->avail_in = (uInt)(r->all.n - r->at < UINT32_MAX ? r->all.n - r->at : UINT32_MAX);
    uInt in = z->avail_in;
    while (rc == Z_OK) {
        uint64_t left = size - out, room = left < WINDOW ? left : WINDOW;
        z->next_out = to ? to + out : r->window;
        z->avail_out = (uInt)room;
        rc = inflate(z, Z_NO_FLUSH);
        uint64_t got = room - z->avail_out;
        out += got;
        r->inflated += got;
        if (r->inflated > r->p->max_inflate)
            return stop(r, "it holds more than is looked through here");
        if (rc == Z_OK && got == 0 && (room > 0 || z->avail_in == 0))
            break;
    }
    r->at += in - z->avail_in;
    if (rc == Z_STREAM_END)
        return out == size ? 0 : stop(r, "an object in it is shorter than it says");
    return stop(r, z->avail_in == 0 ? "it is cut short" : "an object in it is damaged or longer than it says");
}

static int object_id(struct reading *r, bool is_tag, struct span text, uint8_t *id)
{
    char head[48];
    unsigned n = 0;
    uint8_t full[EVP_MAX_MD_SIZE];
    const EVP_MD *md = r->p->id_bytes == 32 ? EVP_sha256() : EVP_sha1();
    int len = snprintf(head, sizeof(head), "%s %zu", is_tag ? "tag" : "commit", text.n);
    if (EVP_DigestInit_ex(r->md, md, NULL) != 1 || EVP_DigestUpdate(r->md, head, (size_t)len + 1) != 1 ||
        EVP_DigestUpdate(r->md, text.p, text.n) != 1 || EVP_DigestFinal_ex(r->md, full, &n) != 1 ||
        n != r->p->id_bytes)
        return stop(r, "an object's id could not be computed");
    memcpy(id, full, n);
    return 0;
}

static int list(struct reading *r, const struct object *o, bool is_tag, struct span text)
{
    struct pack *p = r->p;
    struct pack_entry *e = &p->entry[p->nentries];
    *e = (struct pack_entry){.at = o->at, .text = text, .is_tag = is_tag};
    if (object_id(r, is_tag, text, e->id) != 0)
        return -1;
    p->nentries++;
    return 0;
}

/* A place for the text of one more entry, or NULL: it will not be listed. */
static uint8_t *place(struct pack *p, uint64_t size)
{
    return p->nentries < p->max_listed && size <= PACK_TEXT_MAX ? arena_alloc(&p->arena, (size_t)size + 1) : NULL;
}

static int take_text(struct reading *r, const struct object *o)
{
    uint8_t *to = place(r->p, o->size);
    if (inflate_object(r, o->size, to) != 0)
        return -1;
    if (to != NULL)
        return list(r, o, o->type == OBJ_TAG, span_of(to, (size_t)o->size));
    r->p->unlisted++;
    return 0;
}

/* A delta of a commit or tag that is listed is one itself. */
static int take_delta(struct reading *r, const struct object *o)
{
    struct pack *p = r->p;
    bool is_tag = o->base->is_tag;
    uint64_t from, size;
    uint8_t *to = NULL, *delta = o->size <= WINDOW ? r->window + WINDOW : NULL;
    if (inflate_object(r, o->size, delta) != 0)
        return -1;
    *(is_tag ? &p->tags : &p->commits) += 1;
    if (delta != NULL) {
        struct span ops = span_of(delta, (size_t)o->size);
        if (delta_sizes(&ops, &from, &size) != 0 || from != o->base->text.n)
            return stop(r, "a delta in it does not fit what it is of");
        to = place(p, size);
        if (to != NULL && delta_apply(o->base->text, ops, to, (size_t)size) != 0)
            return stop(r, "a delta in it does not fit what it is of");
    }
    if (to != NULL)
        return list(r, o, is_tag, span_of(to, (size_t)size));
    p->unlisted++;
    return 0;
}

static int take_object(struct reading *r)
{
    struct pack *p = r->p;
    struct object o;
    if (object_head(r, &o) != 0)
        return -1;
    if (o.base != NULL)
        return take_delta(r, &o);
    switch (o.type) {
    case OBJ_COMMIT: p->commits++; return take_text(r, &o);
    case OBJ_TAG: p->tags++; return take_text(r, &o);
    case OBJ_TREE: p->trees++; break;
    case OBJ_BLOB: p->blobs++; break;
    case OBJ_OFS_DELTA:
    case OBJ_REF_DELTA: p->deltas++; break;
    }
    return inflate_object(r, o.size, NULL);
}

static uint32_t number(const uint8_t *b)
{
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static int walk(struct reading *r)
{
    struct pack *p = r->p;
    if (r->all.n < 12 || !span_starts(r->all, SPAN("PACK")) || number(r->all.p + 4) != 2)
        return stop(r, "it does not begin as a pack of version 2");
    p->declared = number(r->all.p + 8);
    for (r->at = 12; p->count < p->declared; p->count++) {
        if (p->count == p->max_objects)
            return stop(r, "it holds more objects than are looked through here");
        if (take_object(r) != 0)
            return -1;
    }
    /* The checksum itself is the upstream's to verify. */
    return r->all.n - r->at == p->id_bytes ? 0
                                           : stop(r, "there is more or less after its last object than a checksum");
}

void pack_init(struct pack *p, bool sha256)
{
    *p = (struct pack){.id_bytes = sha256 ? 32 : 20,
                       .max_listed = PACK_LISTED_MAX,
                       .max_objects = PACK_OBJECTS_MAX,
                       .max_inflate = PACK_INFLATE_MAX};
    arena_init(&p->arena, PACK_KEPT_MAX);
}

void pack_read(struct pack *p, struct span bytes)
{
    struct reading r = {.p = p, .all = bytes};
    bool open = inflateInit(&r.z) == Z_OK;
    r.md = EVP_MD_CTX_new();
    r.window = arena_alloc(&p->arena, 2 * (size_t)WINDOW);
    p->entry = arena_alloc(&p->arena, p->max_listed * sizeof(*p->entry));
    if (!open || r.md == NULL || r.window == NULL || p->entry == NULL)
        p->stopped = "there was no memory to read it";
    else if (walk(&r) != 0 && p->stopped == NULL)
        p->stopped = "it could not be read";
    if (open)
        inflateEnd(&r.z);
    EVP_MD_CTX_free(r.md);
}

void pack_free(struct pack *p)
{
    arena_free(&p->arena);
}
