/* Names below which registries give names to anybody: com, co.uk. Pure. Not those of hosting services (github.io,
 * s3.amazonaws.com): their own certificates are wildcards over them. */
#ifndef COMMON_TEXT_SUFFIX_H
#define COMMON_TEXT_SUFFIX_H

#include "common/span.h"

/* name: canonical, without a dot at its end. */
bool suffix_is_public(struct span name);

#endif
