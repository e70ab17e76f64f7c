#include "proxy/dock/paths.h"

#include <stdio.h>
#include <time.h>

int path_take(struct call *x, struct span given, struct span *out)
{
    struct span rest = given, part;
    struct dynbuf b;
    bool up = false;

    dynbuf_init(&b, DOCK_PATH_MAX);
    if (!span_starts(given, SPAN("/")))
        (void)dynbuf_add(&b, SPAN(DOCK_WORKSPACE));
    while (rest.n > 0) {
        (void)span_cut(rest, '/', &part, &rest);
        up |= span_eq(part, SPAN(".."));
        if (part.n == 0 || span_eq(part, SPAN(".")))
            continue;
        (void)dynbuf_add_byte(&b, '/');
        (void)dynbuf_add(&b, part);
    }
    if (b.n == 0)
        (void)dynbuf_add_byte(&b, '/');
    bool bad = up || given.n == 0 || span_index(given, '\0') != given.n;
    *out = arena_keep(&x->arena, &b);
    if (!bad && out->p)
        return 0;
    reply_no(x, 400, "a path has 1 to %d bytes, no NUL and no `..`", DOCK_PATH_MAX);
    return -1;
}

struct span path_name(struct span path)
{
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    return span_from(path, at);
}

struct span path_folder(struct span path)
{
    struct span folder = span_first(path, path.n - path_name(path).n);

    folder.n -= folder.n > 0;
    return folder.n <= sizeof(DOCK_WORKSPACE) - 1 ? SPAN_NONE : folder;
}

static unsigned octal(struct span s)
{
    unsigned v = 0;

    for (size_t i = 0; i < s.n && i < 5; i++)
        v = v * 8 + (unsigned)(s.p[i] & 7);
    return v;
}

static void put_mode(struct jsonw *w, char kind, unsigned mode)
{
    static const char letters[] = "rwxrwxrwx";
    char text[11] = {kind, 0};

    for (unsigned i = 0; i < 9; i++)
        text[1 + i] = mode & 0400 >> i ? letters[i] : '-';
    jsonw_kv_u64(w, "mode", mode);
    jsonw_kv(w, "permissions", span_of(text, 10));
}

static void put_mtime(struct jsonw *w, const struct json *mtime)
{
    uint64_t s = 0;
    char text[40];
    struct tm tm;

    if (!mtime || span_u64(mtime->text, INT32_MAX * UINT64_C(64), &s) != 0)
        return;
    time_t t = (time_t)s;
    if (gmtime_r(&t, &tm) && strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
        jsonw_kv(w, "modifiedTime", span_str(text));
}

void path_put_entry(struct jsonw *w, struct span path, const struct json *e)
{
    struct span kind = json_text(e, SPAN("kind"));
    const struct json *size = json_get(e, SPAN("size"));
    bool folder = span_eq(kind, SPAN("folder")), link = span_eq(kind, SPAN("link"));

    jsonw_object(w);
    jsonw_kv(w, "name", path_name(path));
    jsonw_kv(w, "type",
             folder                        ? SPAN("FILE_TYPE_DIRECTORY")
             : link                        ? SPAN("FILE_TYPE_SYMLINK")
             : span_eq(kind, SPAN("file")) ? SPAN("FILE_TYPE_FILE")
                                           : SPAN("FILE_TYPE_UNSPECIFIED"));
    jsonw_kv(w, "path", path);
    jsonw_kv(w, "size", size ? size->text : SPAN("0")); /* 64 bits are a text in Connect's JSON */
    put_mode(w, folder ? 'd' : link ? 'l' : '-', octal(json_text(e, SPAN("mode"))));
    jsonw_kv(w, "owner", SPAN("user"));
    jsonw_kv(w, "group", SPAN("user"));
    put_mtime(w, json_get(e, SPAN("mtime")));
    if (link)
        jsonw_kv(w, "symlinkTarget", json_text(e, SPAN("target")));
    jsonw_end_object(w);
}
