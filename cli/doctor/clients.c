/* countersign doctor: connections that were refused because of how their program speaks */
#include "cli/doctor/findings.h"

void doctor_clients(struct findings *f, const struct json *status)
{
    static const struct {
        struct span code;
        const char *words;
    } known[] = {
        {SPAN("tls-alpn"),
         "speaks no HTTP/1.1 in TLS, but HTTP/2 alone, as gRPC does: set it to HTTP/1.1, or to REST"},
        {SPAN("http2-preface"), "speaks HTTP/2 without being asked, as gRPC does: set it to HTTP/1.1, or to REST"},
        {SPAN("ssh"), "speaks SSH, which does not pass: for Git use https:// addresses"},
        {SPAN("postgresql"), "speaks PostgreSQL, which does not pass: only HTTP and HTTPS do"},
        {SPAN("client-silent"), "waits for its server to speak first (mail, MySQL, FTP): only HTTP and HTTPS pass"},
        {SPAN("ca-not-trusted"),
         "does not trust the gateway's CA: `countersign doctor --from-sandbox` there says why"},
    };
    const struct json *refused = json_get(status, SPAN("refused"));

    for (const struct json *r = refused ? refused->child : NULL; r; r = r->next)
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            uint64_t n = member_u64(r, "count");
            struct span where = member_text(r, "listener");
            if (span_eq(member_text(r, "code"), known[i].code))
                finding(f, FINDING_NOTE, "clients", NULL, NULL, "refused %llu time%s at %.*s: a program that %s",
                        (unsigned long long)n, n == 1 ? "" : "s", SPAN_FMT(where), known[i].words);
        }
}
