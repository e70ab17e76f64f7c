/* What an OCI layout says of its image: the index, the manifest for this machine, the configuration. Every document
 * is verified by its digest and read strictly: what is not known is refused in words. */
#ifndef SANDBOX_SHIM_IMAGES_LAYOUT_H
#define SANDBOX_SHIM_IMAGES_LAYOUT_H

#include "common/arena.h"
#include "proxy/carrier/scrub/coder.h"
#include "sandbox-shim/images/blob.h"

enum {
    LAYOUT_LAYERS_MAX = 128,
    LAYOUT_ENV_MAX = 64 * 1024, /* bytes of variables that are taken */
    LAYOUT_NOTED_MAX = 32,      /* of what is left aside, named */
};

struct layout_layer {
    struct blob_name blob;
    enum coding coding;
    struct digest plain; /* of the tar stream that it decodes to */
};

struct layout {
    struct digest digest; /* of its manifest: what the image is known by */
    size_t nlayers;
    struct layout_layer layer[LAYOUT_LAYERS_MAX];
    struct dynbuf env; /* NAME=VALUE, each with its NUL */
    /* What it says that has no meaning here, and variables that are not taken: their names. */
    size_t nignored, nvariables; /* of variables: also those that are not named below */
    struct span ignored[LAYOUT_NOTED_MAX], variables[LAYOUT_NOTED_MAX];
};

/* The machine's name in such documents, "amd64"; empty: it has none. */
struct span layout_machine(void);
/* May an image set this one (NAME=VALUE)? Not what leads or limits a sandbox, and nothing that could not be printed.
 */
bool layout_variable_ok(const char *assignment);
/* dir: the layout, open. ref: what the index calls the image, or NULL: there is one. -1 in words; layout_free in
 * either case. What is noted lives as long as the arena. */
int layout_read(struct layout *l, int dir, const char *ref, struct arena *a, struct err *e) MUSTCHECK;
void layout_free(struct layout *l);

#endif
