/* The head of an answer. */
#include <stdio.h>
#include <time.h>

#include "common/http/http.h"
#include "web-approval/route.h"
#include "web-approval/server.h"

#define CSP_PAGE                                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "                  \
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
#define CSP_DOWNLOAD "default-src 'none'; frame-ancestors 'none'; sandbox"

static void date_text(uint64_t wall_ms, char out[40])
{
    time_t t = (time_t)(wall_ms / 1000);
    struct tm tm;
    if (!gmtime_r(&t, &tm) || strftime(out, 40, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
        out[0] = '\0';
}

static int head_fields(const struct exchange *x, bool last, struct dynbuf *out)
{
    const char *csp = x->download[0] || x->inert ? CSP_DOWNLOAD : CSP_PAGE;
    char date[40], disposition[96], woke[24];
    const struct {
        const char *name, *value;
    } fields[] = {
        {"Date", date},
        {"Content-Type", x->type},
        {"Cache-Control", "no-store"},
        {"Content-Security-Policy", csp},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        /* Not no-referrer: with that a browser sends `Origin: null` even from our own forms. */
        {"Referrer-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Content-Disposition", x->download[0] ? disposition : NULL},
        {"Strict-Transport-Security", x->desk->guard.secure ? "max-age=31536000" : NULL},
        {"Location", x->away          ? x->away
                     : x->location[0] ? x->location
                                      : NULL},
        {"Refresh", x->onward ? "0; url=/" : NULL},
        {"Set-Cookie", x->cookie[0] ? x->cookie : NULL},
        {"Set-Cookie", x->browser[0] ? x->browser : NULL},
        {"Set-Cookie", x->flow[0] ? x->flow : NULL},
        {"Countersign-Restored", x->woke ? woke : NULL}, /* as which generation */
        {"Countersign-Image", x->woke && x->another ? "another" : NULL},
        {"Connection", last ? "close" : NULL},
    };

    (void)snprintf(woke, sizeof(woke), "%llu", (unsigned long long)x->woke);
    date_text(x->wall_ms, date);
    (void)snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"", x->download);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].value && http_write_field(out, span_str(fields[i].name), span_str(fields[i].value)) != 0)
            return -1;
    return 0;
}

static struct span reason_of(unsigned status)
{
    static const struct {
        unsigned status;
        const char *words;
    } words[] = {{200, "OK"},
                 {201, "Created"},
                 {202, "Accepted"},
                 {204, "No Content"},
                 {303, "See Other"},
                 {400, "Bad Request"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {410, "Gone"},
                 {411, "Length Required"},
                 {413, "Content Too Large"},
                 {414, "URI Too Long"},
                 {415, "Unsupported Media Type"},
                 {422, "Unprocessable Content"},
                 {429, "Too Many Requests"},
                 {431, "Request Header Fields Too Large"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {503, "Service Unavailable"},
                 {507, "Insufficient Storage"},
                 {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (words[i].status == status)
            return span_str(words[i].words);
    return SPAN("Status");
}

bool head_refused(enum desk_place place, const struct http_head *h, struct http_err *e)
{
    if (route_streams(place, h))
        return false;
    if (h->framing == HTTP_CHUNKED)
        *e = (struct http_err){411, "length", "send the body with a Content-Length"};
    else if (h->framing == HTTP_LENGTH && h->length > DESK_BODY_MAX)
        *e = (struct http_err){413, "large", "a body may have 64 KiB here"};
    else
        return false;
    return true;
}

int answer_head(const struct exchange *x, bool last, struct dynbuf *out)
{
    enum http_framing framing = x->stream ? HTTP_CHUNKED : x->status == 204 ? HTTP_NO_BODY : HTTP_LENGTH;

    return http_write_status_line(out, x->status, reason_of(x->status)) || head_fields(x, last, out) ||
                   http_write_end(out, framing, x->out.n + x->file_size)
               ? -1
               : 0;
}
