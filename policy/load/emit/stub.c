/* Places that are answered with leases: those that SDKs know by heart, and an address of the policy's. */
#include "policy/load/check/derive.h"
#include "policy/load/emit/emit.h"

static const struct {
    enum stub_kind of, kind;
    const char *host, *path;
} known[] = {
    {STUB_AWS, STUB_AWS, "169.254.169.254", "/latest/"},
    {STUB_AWS, STUB_AWS_CONTAINER, "169.254.170.2", "/v2/credentials"},
    {STUB_GOOGLE, STUB_GOOGLE, "169.254.169.254", "/computeMetadata/"},
    {STUB_GOOGLE, STUB_GOOGLE, "169.254.169.254", "/"},
    {STUB_GOOGLE, STUB_GOOGLE, "metadata.google.internal", "/computeMetadata/"},
    {STUB_GOOGLE, STUB_GOOGLE, "metadata.google.internal", "/"},
};

void emit_stub(struct emit *w, const struct m_credential *c, uint32_t credential)
{
    struct token_url url;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (c->stub.v != known[i].of)
            continue;
        struct img_stub out = {.host = emit_str(w, span_str(known[i].host)),
                               .path = emit_str(w, span_str(known[i].path)),
                               .port = 80,
                               .scheme = SCHEME_HTTP,
                               .kind = known[i].kind,
                               .credential = credential};
        (void)emit_record(w, IMG_STUB, &out);
    }
    if (c->stub.v != STUB_OAUTH || derive_token_url(c->token_url.text, &url) != NULL)
        return;
    struct img_stub out = {.host = emit_str(w, url.host),
                           .path = emit_str(w, url.path),
                           .port = (uint32_t)url.port,
                           .scheme = SCHEME_HTTPS,
                           .kind = STUB_OAUTH,
                           .credential = credential};
    (void)emit_record(w, IMG_STUB, &out);
}
