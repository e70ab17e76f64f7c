/* What a browser says of a passkey, whatever it says: nothing is read past its end, and nothing is a passkey that has
 * no key. Input: u16 length of clientDataJSON, it, then the attestation object or authenticatorData. */
#include "proxy/keeper/passkey/cbor.h"
#include "proxy/keeper/passkey/webauthn.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const struct webauthn_site site = {SPAN("https://approve.example"), SPAN("approve.example")};
    static const struct digest challenge = {{1}};
    struct webauthn_key key;
    struct err e = {{0}};
    uint32_t count = 0;
    if (n < 2)
        return 0;
    size_t json = (size_t)data[0] << 8 | data[1];
    struct span all = span_of(data + 2, n - 2), said = span_first(all, json), rest = span_from(all, said.n);
    uint8_t *own_json = fuzz_copy(said), *own = fuzz_copy(rest);
    struct span object = span_of(own, rest.n), left = object;
    if (webauthn_made(&site, &challenge, span_of(own_json, said.n), object, &key, &e) == 0)
        MUST_HOLD(key.nspki > 0 && key.id.n > 0 && key.id.p >= own && key.id.p + key.id.n <= own + rest.n);
    const struct webauthn_signed w = {span_of(own_json, said.n), object, span_first(object, 64)};
    MUST_HOLD(webauthn_signed_by(&site, &challenge, &w, span_first(object, 91), &count, &e) != 0);
    while (left.n > 0 && cbor_skip(&left) == 0)
        MUST_HOLD(left.n < rest.n);
    free(own_json);
    free(own);
    return 0;
}
