/* Where values come from: a file the parent opened, the environment at start, the
 * sealed store; and what is fetched (fetch.h). Whatever a source had before in this process's life is kept (the
 * last SOURCES_PREVIOUS values), because an upstream may still echo it.
 *
 * Files belong to a policy: those of the next one are put beside them and take their place, all of them and no
 * others, with that policy. A file is known by its path, never by the name of a credential, which the next policy may
 * give to another one. */
#ifndef PROXY_KEEPER_SOURCES_H
#define PROXY_KEEPER_SOURCES_H

#include <sys/stat.h>

#include "common/id.h"
#include "policy/policy.h"
#include "proxy/keeper/vault.h"

enum { SOURCES_FILES = 64, SOURCES_PATH = 4096, SOURCES_PREVIOUS = 3, SOURCES_ENV_MAX = 512 * 1024 };

struct sources;
struct fetches;

/* May a secret be read from this file (SOURCE_FILE, SOURCE_SYSTEMD)? It is root's, ours or owner's, and nobody else's
 * to read. 0, or -1 with words. */
int sources_file_ok(enum source_kind kind, unsigned owner, const struct stat *st, struct err *e) MUSTCHECK;

/* owner: a uid that may own source files, beside root's and our own. */
struct sources *sources_new(unsigned owner) MUSTCHECK;
/* Where SOURCE_STORE looks; borrowed. Until then it finds nothing. */
void sources_store(struct sources *s, const struct vault *vault);
/* Who knows what was fetched; borrowed. Until then no such source has a value. */
void sources_fetches(struct sources *s, struct fetches *f);
void sources_free(struct sources **s);
/* Copy the environment into locked memory and wipe it where it was. Once, at start, before
 * role_confine, which leaves nothing of it. */
int sources_take_env(struct sources *s, char **environment, struct err *e) MUSTCHECK;
/* An open file (SOURCE_FILE, SOURCE_SYSTEMD) of the policy with this digest, which is not in force yet; takes fd
 * over. What was put there for another policy is forgotten. */
int sources_add_file(struct sources *s, const struct digest *policy, enum source_kind kind, struct span path, int fd,
                     struct err *e) MUSTCHECK;
/* That policy is in force from now on: its files, and none of the one before. */
void sources_switch(struct sources *s, const struct digest *policy);
/* The checked value now, or NULL with words that name the credential and never the value. */
struct secret *sources_value(struct sources *s, const struct credential *c, struct err *e) MUSTCHECK;
/* The same of what is not fetched, by where it is. */
struct secret *sources_stored(struct sources *s, enum source_kind kind, struct span where, struct err *e) MUSTCHECK;
/* Its earlier values, newest first; NULL past the last. */
struct secret *sources_previous(const struct sources *s, const struct credential *c, size_t i) MUSTCHECK;

#endif
