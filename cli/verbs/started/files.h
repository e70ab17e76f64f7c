/* What the verbs about files of started sandboxes share (files.c, trees.c). */
#ifndef CLI_VERBS_FILES_H
#define CLI_VERBS_FILES_H

#include "cli/verb.h"

/* NAME:PATH of a started sandbox's workspace. */
struct remote {
    char name[64];
    char path[PATH_MAX]; /* `.`: the workspace */
};

/* What is sent into a sandbox: to its path, `more` of the files there ("", "/tar"); mode: octal, or NULL. NULL: not
 * begun, and that was said (CLI_STORE). */
struct api_upload *files_send(const struct gateway_call *g, const struct remote *to, const char *more,
                              const char *mode) MUSTCHECK;
/* All of it was put; or (rc) not, why was said, and the gateway sees it cut short. What to exit with. */
int files_sent(struct api_upload **u, int rc) MUSTCHECK;
/* What comes out of one, at most `most` bytes (a number, or NULL), to fn. What to exit with. */
int files_get(const struct gateway_call *g, const struct remote *from, const char *more, const char *most,
              api_piece_fn *fn, void *ctx) MUSTCHECK;
/* To a descriptor: ctx is an int *. */
int files_write(void *ctx, struct span piece, struct err *e);

/* A folder of ours, or, from NULL, a tar stream on standard input, into one in the sandbox, and the other way round:
 * into one of ours, which need not exist, or, NULL, onto standard output, if that is no terminal. What comes out of a
 * sandbox cannot lead out of that folder. What to exit with. */
int tree_up(const struct gateway_call *g, const char *from, const struct remote *to) MUSTCHECK;
int tree_down(const struct gateway_call *g, const struct remote *from, const char *most, const char *to) MUSTCHECK;

#endif
