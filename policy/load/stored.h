/* A version of a policy as it is kept: STATE_DIR/policies/DIGEST/ has every text that went into the image of that
 * digest, under names of our own, and a manifest of what they were called and their SHA-256. Compiled from these
 * alone, they make the same image again: the names in errors and in the audit are the original ones. */
#ifndef POLICY_LOAD_STORED_H
#define POLICY_LOAD_STORED_H

#include "common/arena.h"
#include "common/id.h"
#include "policy/load/disk.h"

enum {
    STORED_FILES_MAX = 512,
    STORED_FILE_NAME = 96,
    STORED_MANIFEST_MAX = 4 * 1024 * 1024,
    STORED_BYTES_MAX = 128 * 1024 * 1024,
    STORED_HEX = 2 * DIGEST_BYTES,
    STORED_PREFIX_MIN = 6
};
#define STORED_MANIFEST "manifest"

struct stored_file {
    uint8_t kind;     /* enum policy_input */
    struct span name; /* as it was asked for; shown in errors and audit */
    char file[STORED_FILE_NAME];
    struct digest sha256;
    uint64_t size;
    struct span text;    /* two of one file are one span */
    const uint8_t *from; /* where it was when it was added */
};

struct stored {
    struct arena a;
    char hex[STORED_HEX + 1]; /* the image's digest */
    struct span name;         /* the policy's */
    uint64_t rules, stored_ms;
    uint64_t used_ms; /* last put in force: when the manifest was last touched */
    struct stored_file *v;
    size_t n;
};

/* Empty, to be filled with stored_add. Free with stored_free also after a failure. */
int stored_begin(struct stored *s, struct err *e) MUSTCHECK;
void stored_free(struct stored *s);
/* A policy_input_fn; more than STORED_FILES_MAX, or no memory: s->n stays above it. */
void stored_add(void *s, enum policy_input kind, struct span name, struct span text);
/* Names and digests of the files are known: what a manifest says, and reading it again. */
int stored_finish(struct stored *s, struct err *e) MUSTCHECK;
/* From the child that compiles to the one that stores: the manifest, and every file's bytes once. */
void stored_put(const struct stored *s, struct dynbuf *out);
int stored_get(struct span bundle, struct stored *s, struct err *e) MUSTCHECK;
/* The first file of these bytes: what is written once. */
bool stored_first(const struct stored *s, size_t i);
void stored_manifest(const struct stored *s, struct dynbuf *out);

/* dir: the folder of all versions. The one whose digest begins so (at least STORED_PREFIX_MIN hex digits); -1: none,
 * or several. */
int stored_find(const char *dir, struct span prefix, char hex[STORED_HEX + 1], struct err *e) MUSTCHECK;
/* Its manifest. */
int stored_open(const char *dir, const char *hex, struct stored *s, struct err *e) MUSTCHECK;
/* And its files, each compared with its digest. */
int stored_read(const char *dir, struct stored *s, struct err *e) MUSTCHECK;
/* Was it read with signers, so that every signature was checked then? */
bool stored_is_signed(const struct stored *s);
/* The image again, or -1: a file is not what it was, this program makes another image of them, or it is not signed
 * and must be. */
int stored_compile(const char *dir, const char *hex, bool must_be_signed, uint64_t now_ms, struct dynbuf *out,
                   struct err *e) MUSTCHECK;
/* "policy", "floors", "pack" ... */
const char *stored_kind(uint8_t kind);

#endif
