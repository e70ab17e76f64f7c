#include "web-approval/events.h"

#include "common/json/json.h"

void events_hello(struct dynbuf *out, uint64_t seq)
{
    (void)dynbuf_addf(out, "id: %llu\nevent: hello\ndata: {}\n\n", (unsigned long long)seq);
}

void events_write(struct dynbuf *out, uint64_t seq, struct span kind, struct span subject)
{
    bool ticket = span_eq(kind, SPAN("ticket"));
    struct jsonw w;

    (void)dynbuf_addf(out, "id: %llu\nevent: %s\ndata: ", (unsigned long long)seq, ticket ? "ticket" : "sandbox");
    /* JSON has no line ends of its own: nothing in a subject can end the data field. */
    jsonw_begin(&w, out);
    jsonw_object(&w);
    jsonw_kv(&w, "kind", kind);
    jsonw_kv(&w, "subject", subject);
    jsonw_end_object(&w);
    (void)dynbuf_add(out, SPAN("\n\n"));
}
