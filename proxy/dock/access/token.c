#include "proxy/dock/dock.h"

#include <stdio.h>

/* It follows from the key, so that nobody needs to keep it: who shows the key again is given the same again. The
 * key's 160 bits of randomness are what makes it unforgeable, and each field is written behind its length. */
void token_access(struct span key, struct span sandbox, uint64_t restored, char out[ACCESS_TEXT + 1])
{
    struct digest_ctx *c = digest_begin();
    struct digest d;
    char times[24];

    digest_add_field(c, SPAN("countersign dock access"));
    digest_add_field(c, key);
    digest_add_field(c, sandbox);
    if (restored > 0) {
        (void)snprintf(times, sizeof(times), "%llu", (unsigned long long)restored);
        digest_add_field(c, span_str(times));
    }
    digest_end(c, &d);
    memcpy(out, "at_", 3);
    hex_text(span_of(d.b, DIGEST_BYTES), out + 3);
}

void token_hash(struct span text, struct digest *out)
{
    digest_of(text, out);
}
