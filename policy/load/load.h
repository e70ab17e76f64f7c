/* YAML policy files -> one image. Strict: unknown and duplicate keys, aliases,
 * anchors, merge keys, tags, further documents, wrong types and YAML 1.1
 * surprises are refused, each with file:line:col and a suggestion. */
#ifndef POLICY_LOAD_LOAD_H
#define POLICY_LOAD_LOAD_H

#include "common/dynbuf.h"
#include "common/err.h"

enum {
    POLICY_FILE_MAX = 8 * 1024 * 1024,
    POLICY_DEPTH_MAX = 16,
    POLICY_IMAGE_MAX = 16 * 1024 * 1024,
    POLICY_FILES_MAX = 64
};

struct policy_file {
    const char *name; /* as shown in errors and audit, e.g. "policy.yaml" */
    struct span text;
    bool floors; /* the operator's floors file: only decide: deny */
};

/* Gives the text of what a policy names: a pack ("git@1"), a CA file, an included file (both by the path that the
 * folder of the file that names them and the name make together) or a time zone's TZif data ("Europe/Berlin").
 * POLICY_REF_SIGNED has no text: 0 says that all that was and will be given is signed, as require_signed: asks. The
 * span must live until policy_load returns; one file by two names is one span. -1: not found. 0 with words in *e, of
 * a CA file: what in it keeps chains from being held to RFC 5280 to the letter, which is a warning. */
enum policy_ref { POLICY_REF_PACK = 1, POLICY_REF_CA, POLICY_REF_INCLUDE, POLICY_REF_ZONE, POLICY_REF_SIGNED };
typedef int policy_fetch_fn(void *arg, enum policy_ref kind, struct span name, struct span *text, struct err *e);

/* Every problem found, in file order; `severity` 'E' refuses, 'W' warns. */
struct policy_problem {
    char code[8]; /* "P001" */
    char severity;
    char where[300]; /* file:line:col */
    char text[512];
};
struct policy_problems {
    struct policy_problem *v;
    size_t n, max;
};

/* 0 and the image in out (born with POLICY_IMAGE_MAX by the caller), or -1 with the first
 * error in *e and all of them in problems (may be NULL). now_ms: Unix time, against which learning: is held; the
 * image of the same files is the same at any time. */
int policy_load(const struct policy_file *files, size_t nfiles, policy_fetch_fn *fetch, void *arg, uint64_t now_ms,
                struct dynbuf *out, struct policy_problems *problems, struct err *e) MUSTCHECK;

#endif
