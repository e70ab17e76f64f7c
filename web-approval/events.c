#include "web-approval/events.h"

#include "common/json/json.h"

void events_hello(struct dynbuf *out, uint64_t seq)
{
    (void)dynbuf_addf(out, "id: %llu\nevent: hello\ndata: {}\n\n", (unsigned long long)seq);
}

void events_write(struct dynbuf *out, uint64_t seq, struct span kind, struct span subject)
{
    const char *name = span_eq(kind, SPAN("ticket"))    ? "ticket"
                       : span_eq(kind, SPAN("asker"))   ? "asker"
                       : span_eq(kind, SPAN("refused")) ? "refused"
                       : span_eq(kind, SPAN("diff"))    ? "diff"
                                                        : "sandbox";
    struct jsonw w;

    if (seq > 0)
        (void)dynbuf_addf(out, "id: %llu\n", (unsigned long long)seq);
    (void)dynbuf_addf(out, "event: %s\ndata: ", name);
    /* JSON has no line ends of its own: nothing in a subject can end the data field. */
    jsonw_begin(&w, out);
    jsonw_object(&w);
    jsonw_kv(&w, "kind", kind);
    jsonw_kv(&w, "subject", subject);
    jsonw_end_object(&w);
    (void)dynbuf_add(out, SPAN("\n\n"));
}
