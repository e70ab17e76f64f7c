/* GIF: the first picture of it, and how many there are. */
#include <gif_lib.h>
#include <stdlib.h>

#include "web-approval/viewer/view.h"

static int take(GifFileType *gif, GifByteType *to, int n)
{
    struct span *rest = gif->UserData;
    size_t got = n < 0 ? 0 : rest->n < (size_t)n ? rest->n : (size_t)n;

    if (got > 0)
        memcpy(to, rest->p, got);
    *rest = span_from(*rest, got);
    return (int)got;
}

/* An index of its colours, or -1: none is clear. */
static int clear_index(const GifByteType *extension)
{
    return extension[0] >= 4 && extension[1] & 1 ? extension[4] : -1;
}

static void row(struct raster *r, const GifImageDesc *at, const ColorMapObject *map, uint32_t y,
                const GifPixelType *line, int clear)
{
    for (uint32_t i = 0; i < (uint32_t)at->Width; i++) {
        uint8_t *to = r->rgba + 4 * (((size_t)at->Top + y) * r->w + (size_t)at->Left + i);
        if (line[i] == clear || line[i] >= map->ColorCount)
            continue;
        to[0] = map->Colors[line[i]].Red;
        to[1] = map->Colors[line[i]].Green;
        to[2] = map->Colors[line[i]].Blue;
        to[3] = 0xff;
    }
}

static bool first_picture(GifFileType *gif, struct raster *r, int clear)
{
    static const uint32_t begins[] = {0, 4, 2, 1}, steps[] = {8, 8, 4, 2};
    const GifImageDesc *at = &gif->Image;
    const ColorMapObject *map = at->ColorMap ? at->ColorMap : gif->SColorMap;
    uint32_t height = (uint32_t)at->Height;
    bool good = true;

    if (!map || at->Left < 0 || at->Top < 0 || at->Width <= 0 || at->Height <= 0 ||
        (uint32_t)at->Left + (uint32_t)at->Width > r->w || (uint32_t)at->Top + height > r->h)
        return false;
    GifPixelType *line = malloc((size_t)at->Width);
    if (!line)
        return false;
    for (size_t pass = 0; pass < (at->Interlace ? 4 : 1); pass++)
        for (uint32_t y = at->Interlace ? begins[pass] : 0; y < height && good;
             y += at->Interlace ? steps[pass] : 1) {
            good = DGifGetLine(gif, line, at->Width) == GIF_OK;
            if (good)
                row(r, at, map, y, line, clear);
        }
    free(line);
    return good;
}

static bool later_picture(GifFileType *gif)
{
    GifByteType *block;
    int size;

    if (DGifGetCode(gif, &size, &block) != GIF_OK)
        return false;
    while (block)
        if (DGifGetCodeNext(gif, &block) != GIF_OK)
            return false;
    return true;
}

static bool extension(GifFileType *gif, int *clear)
{
    GifByteType *block;
    int code;

    if (DGifGetExtension(gif, &code, &block) != GIF_OK)
        return false;
    while (block) {
        if (code == GRAPHICS_EXT_FUNC_CODE)
            *clear = clear_index(block);
        if (DGifGetExtensionNext(gif, &block) != GIF_OK)
            return false;
    }
    return true;
}

static bool records(GifFileType *gif, struct raster *r, struct viewed *v)
{
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    int clear = -1;
    bool good = true;

    v->frames = 0;
    while (good && type != TERMINATE_RECORD_TYPE && v->frames < VIEW_FRAMES_MAX) {
        good = DGifGetRecordType(gif, &type) == GIF_OK && type != UNDEFINED_RECORD_TYPE;
        if (good && type == EXTENSION_RECORD_TYPE)
            good = extension(gif, &clear);
        if (good && type == IMAGE_DESC_RECORD_TYPE) {
            good =
                DGifGetImageDesc(gif) == GIF_OK && (v->frames++ ? later_picture(gif) : first_picture(gif, r, clear));
            clear = -1;
        }
    }
    return good && v->frames > 0;
}

bool view_gif(struct span s, struct raster *r, struct viewed *v)
{
    struct span rest = s;
    int why = 0;
    GifFileType *gif = DGifOpen(&rest, take, &why);
    bool good = false;

    v->end = gif || why == D_GIF_ERR_NOT_ENOUGH_MEM ? VIEW_FAILED : VIEW_DAMAGED;
    if (gif && gif->SWidth >= 0 && gif->SHeight >= 0 &&
        view_room(r, v, (uint64_t)gif->SWidth, (uint64_t)gif->SHeight)) {
        good = records(gif, r, v);
        v->end = VIEW_DAMAGED;
        v->behind = rest.n;
    }
    if (gif)
        (void)DGifCloseFile(gif, &why);
    return good;
}
