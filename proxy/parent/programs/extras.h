/* What a sandbox of the warden's has beside its limits, given by the configuration (extras.c). */
#ifndef PROXY_PARENT_PROGRAMS_EXTRAS_H
#define PROXY_PARENT_PROGRAMS_EXTRAS_H

#include "proxy/parent/parent.h"

enum { GIVES_BYTES = 16 * 1024 };

/* For who becomes the sandbox, as variables of its environment; empty: none. */
struct box_gives {
    char mounts[GIVES_BYTES], devices[GIVES_BYTES];
};

/* Of wire_extras: what b may have, which holds its devices from now on, until its place is free. Why not, or NULL. */
const char *parent_extras_give(struct parent *p, struct running_box *b, struct span extras, bool strict,
                               struct box_gives *g);
/* Nothing of it is left, or it was not started. */
void parent_extras_end(struct running_box *b);

#endif
