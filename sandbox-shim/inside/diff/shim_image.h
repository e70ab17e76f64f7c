/* What a held push of an image changes, found out inside a sandbox of its own: `countersign-shim --image-diff URL
 * TYPE`. The manifest, as it was held, is in PUSH_FILE; URL is where it is put (/v2/NAME/manifests/TAG), of which the
 * one that has the name now is read, and the configurations of both, by curl; TYPE is what the request says it is.
 * Nothing of it is unpacked or run. The answer is DIFF_FILE, JSON that fits web-approval/diffs/diff.schema.json.
 * Errors are words of that schema. libc only.
 * Sources: OCI image specification 1.1 (manifest, index, config), OCI distribution specification 1.1. */
#ifndef SANDBOX_SHIM_INSIDE_DIFF_SHIM_IMAGE_H
#define SANDBOX_SHIM_INSIDE_DIFF_SHIM_IMAGE_H

#include "sandbox-shim/inside/diff/shim_diff.h"
#include "sandbox-shim/inside/diff/shim_json.h"

#define IMAGE_FILE "/workspace/fetched"

enum {
    IMAGE_MANIFEST_MAX = 4 * 1024 * 1024, /* what registries take */
    IMAGE_CONFIG_MAX = 4 * 1024 * 1024,
    IMAGE_PARTS_MAX = 300, /* layers of one, or images of a list */
    IMAGE_DIGEST_MAX = 7 + 64,
    IMAGE_WORD_MAX = 300,         /* of a name, a tag, a type */
    IMAGE_URL_MAX = 4096,         /* of an address */
    IMAGE_NAME_MAX = 255,         /* of a repository */
    IMAGE_KNOWN_MAX = 2000,       /* facts that one of them says */
    IMAGE_FACT_MAX = 512 * 1024,  /* bytes of what one of them says */
    IMAGE_SAID_MAX = 1024 * 1024, /* of all of them, shown: what hides or reorders takes many times that on a page */
    IMAGE_OPENED_MAX = 64,        /* images of a list that are looked into */
    IMAGE_TWICE_MAX = 256,        /* members of an object within another */
};

/* argv: behind "--image-diff". Never returns: 0 where DIFF_FILE was written. */
void image_diff(char **argv) __attribute__((noreturn));

/* --- shim_image_read.c ------------------------------------------------------------------- */

/* Where it is put: .../v2/NAME/manifests/REFERENCE, nothing of it escaped. */
struct place {
    char base[IMAGE_URL_MAX]; /* .../v2/NAME */
    char name[IMAGE_NAME_MAX + 1], reference[IMAGE_DIGEST_MAX + 64];
    bool by_digest;
};
bool image_place(const char *url, struct place *p);
bool image_is_digest(const char *text); /* sha256:, and 64 digits in lower case */

/* A layer, or an image of a list. Borrowed. */
struct part {
    char digest[IMAGE_DIGEST_MAX + 1], type[IMAGE_WORD_MAX + 1];
    uint64_t size;
    struct value is;   /* all that is said of it */
    struct value id;   /* of a layer: of what it is unpacked to, as the configuration says it; else none */
    struct value step; /* of a layer: by what it is said to be made */
    bool elsewhere;    /* it is to be had at other addresses */
    bool more;         /* there is more said of it than type, digest and size */
};
struct manifest {
    bool list; /* of images: an index */
    struct value is;
    struct part config, *part; /* malloc */
    size_t n;
};
/* Is nothing in it said twice, at any depth, nor in another case? Of maps (labels, annotations, ports, volumes) the
 * names are data: there another case is another one. */
bool json_once(struct value v);
/* Bytes that are one, and that every program takes for the same: NULL, or "bad-manifest". type: what they are said to
 * be; NULL: nothing is. */
const char *manifest_read(const char *bytes, size_t n, const char *type, struct manifest *m);
/* That its configuration says of each layer what it is unpacked to, and of nothing else: containerd finds layers by
 * that. False: it does not. One of another type than an image's says nothing of the kind. */
bool manifest_layers(struct manifest *m, struct value config);
bool manifest_is_run(const struct manifest *m); /* by its type its configuration is an image's */
void manifest_drop(struct manifest *m);         /* also after an error */
/* How each part of the new one came about, in order: 's'ame, 'm'oved, 'A' new; how the old ones: 's', 'm', 'D'. Same
 * is what is said of it word for word, and what it is unpacked to; in the order in which it was. */
void parts_compare(const struct manifest *old, const struct manifest *new, char *was, char *is);

/* --- shim_image_facts.c ------------------------------------------------------------------ */

enum side { OLD, NEW };
/* All that a manifest and a configuration say, but for their layers. config n == 0: there is none. False: something
 * is said twice, or it is more than is read here. */
/* raw: a configuration of something else than an image to be run that is no JSON. */
bool facts_take(enum side side, const struct manifest *m, struct value config, struct value raw);
/* "facts":[...],"facts_total":n of what differs. */
void facts_put(void);
void facts_forget(enum side side);
/* A value as it is shown: the text that it is, or as it is written. False: it is longer than is shown. */
bool value_put(const char *key, struct value v);
/* Bytes that are no JSON. */
bool raw_put(const char *key, struct value v);

#endif
