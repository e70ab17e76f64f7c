/* Which signature a service wants over a request, and the words of it that a policy may name. */
#ifndef COMMON_SIGN_SCHEME_H
#define COMMON_SIGN_SCHEME_H

#include "common/span.h"

enum sign_scheme { SIGN_NONE = 0, SIGN_AWS4, SIGN_TC3, SIGN_SCHEMES };

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
