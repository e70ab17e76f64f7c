/* Which signature a service wants over a request, and the words of it that a policy may name. */
#ifndef COMMON_SIGN_SCHEME_H
#define COMMON_SIGN_SCHEME_H

#include "common/span.h"

/* Before SIGN_SCHEMES: those whose words claim.h knows. SIGN_HMAC: as the policy's template says (template.h). */
enum sign_scheme { SIGN_NONE = 0, SIGN_AWS4, SIGN_TC3, SIGN_SCHEMES, SIGN_HMAC = SIGN_SCHEMES, SIGN_WAYS };

/* Of SIGN_HMAC: with which hash, and how its bytes, and those of its key, are written. SHA-1 is here for services
 * that know nothing else: in an HMAC it is not broken, as it is for signatures over documents. */
enum sign_hash { SIGN_SHA256 = 0, SIGN_SHA512, SIGN_SHA1, SIGN_HASHES };
enum sign_coding { SIGN_AS_TEXT = 0, SIGN_HEX, SIGN_BASE64, SIGN_BASE64URL, SIGN_CODINGS };
/* What of its secret a template names: it is a key alone, ID:KEY, or ID:KEY:TOKEN. */
enum sign_secret { SIGN_KEY_ALONE = 0, SIGN_ID_KEY, SIGN_ID_KEY_TOKEN, SIGN_SECRETS };

/* Can it stand in the scope of a signature (region, service, the id of a key)? Visible ASCII without '/' and ','. */
static inline bool sign_name_ok(struct span s)
{
    if (s.n == 0 || s.n > 128)
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] >= 0x7f || s.p[i] == '/' || s.p[i] == ',')
            return false;
    return true;
}

#endif
