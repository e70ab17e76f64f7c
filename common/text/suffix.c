#include "common/text/suffix.h"

#include <libpsl.h>
#include <stdio.h>

enum { NAME_TEXT_MAX = 256 };

bool suffix_is_public(struct span name)
{
    char text[NAME_TEXT_MAX];
    const psl_ctx_t *list = psl_builtin();
    if (name.n >= sizeof(text))
        return true;
    snprintf(text, sizeof(text), "%.*s", SPAN_FMT(name));
    return list != NULL && psl_is_public_suffix2(list, text, PSL_TYPE_ICANN | PSL_TYPE_NO_STAR_RULE) != 0;
}
