#include "web-approval/viewer/packed.h"

void packed_begin(struct dynbuf *out, unsigned manifests, struct span manifest)
{
    msg_put_u16(out, manifests > UINT16_MAX ? UINT16_MAX : (uint16_t)manifests);
    msg_put_span(out, manifest);
}

void packed_put(struct dynbuf *out, const struct packed_file *f)
{
    msg_put_u8(out, (uint8_t)f->type);
    msg_put_u32(out, f->mode);
    msg_put_u64(out, f->size);
    msg_put_span(out, f->name);
    msg_put_span(out, f->target);
}

int packed_open(struct span list, struct packed *p)
{
    *p = (struct packed){.m = msg_in(list)};
    p->manifests = msg_get_u16(&p->m);
    p->manifest = msg_get_span(&p->m, PACKED_MANIFEST_MAX);
    return p->m.bad ? -1 : 0;
}

int packed_next(struct packed *p, struct packed_file *f)
{
    if (!p->m.bad && p->m.rest.n == 0)
        return 0;
    unsigned type = msg_get_u8(&p->m);
    *f = (struct packed_file){.type = (enum packed_type)type, .mode = msg_get_u32(&p->m)};
    f->size = msg_get_u64(&p->m);
    f->name = msg_get_span(&p->m, PACKED_NAME_MAX);
    f->target = msg_get_span(&p->m, PACKED_NAME_MAX);
    return p->m.bad || type == PACKED_NONE || type >= PACKED_TYPES || f->mode > 07777 ? -1 : 1;
}

bool packed_good(struct span list, uint32_t files)
{
    struct packed p;
    struct packed_file f;
    uint32_t n = 0;
    int got;

    if (packed_open(list, &p) != 0)
        return false;
    while ((got = packed_next(&p, &f)) == 1)
        n++;
    return got == 0 && n == files;
}
