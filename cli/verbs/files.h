/* What the verbs about files of started sandboxes share (files.c, trees.c). */
#ifndef CLI_VERBS_FILES_H
#define CLI_VERBS_FILES_H

#include "cli/verb.h"

enum { FILES_PATH_ROOM = 16 * 1024 };

/* NAME:PATH of a started sandbox's workspace. */
struct remote {
    char name[64];
    char path[PATH_MAX]; /* `.`: the workspace */
};

/* /api/v1/sandboxes/NAME/files, `more` of it ("", "/tar" ...) and the query with the path; more options go behind it.
 */
void files_path(struct dynbuf *to, const struct remote *r, const char *more);
/* `&name=value`, percent-encoded. */
void files_option(struct dynbuf *to, const char *name, struct span value);
/* All of it, for who asks: as long as it is. */
const char *files_target(struct dynbuf *to);
/* What an answer of another status than was asked for says; CLI_RUNTIME. */
int files_refused(unsigned status, const struct dynbuf *answer);

/* A folder of ours, or, from NULL, a tar stream on standard input, into one in the sandbox, and the other way round:
 * into one of ours, which need not exist, or, NULL, onto standard output. What comes out of a sandbox cannot lead out
 * of that folder. What to exit with. */
int tree_up(const struct gateway_call *g, const char *from, const struct remote *to) MUSTCHECK;
int tree_down(const struct gateway_call *g, const struct remote *from, const char *most, const char *to) MUSTCHECK;

#endif
