/* What a held `npm publish` changes, found out inside a sandbox of its own: `countersign-shim --package-diff URL`.
 * The request, as it was held, is in PUSH_FILE; URL is where it goes, of which the list of versions is read, and the
 * file of the last one, by curl. Both are taken apart here, compared by git, and nothing of them is ever run. The
 * answer is DIFF_FILE, JSON that fits web-approval/diffs/diff.schema.json. Errors are words of that schema. libc
 * only. */
#ifndef SANDBOX_SHIM_INSIDE_DIFF_SHIM_PACKAGE_H
#define SANDBOX_SHIM_INSIDE_DIFF_SHIM_PACKAGE_H

#include "sandbox-shim/inside/diff/shim_diff.h"
#include "sandbox-shim/inside/diff/shim_json.h"

#define PACKAGE_OLD     "/workspace/old.tgz"
#define PACKAGE_NEW     "/workspace/new.tgz"
#define PACKAGE_HEADERS "/workspace/headers"
#define PACKAGE_FOLDER  "/workspace/unpacked"

enum {
    PACKAGE_TGZ_MAX = 48 * 1024 * 1024,
    PACKAGE_BYTES_MAX = 128 * 1024 * 1024, /* of one, unpacked */
    PACKAGE_LIST_MAX = 32 * 1024 * 1024,   /* of versions */
    PACKAGE_FILES_MAX = 5000,
    PACKAGE_DEEP = 64, /* folders in each other */
    PACKAGE_MANIFEST_MAX = 128 * 1024,
    PACKAGE_WORD_MAX = 300, /* of a name, a version, a tag */
    PACKAGE_URL_MAX = 4096,
    PACKAGE_FACTS_MAX = 200, /* shown */
    PACKAGE_FACT_MAX = 600,  /* bytes of what one of them says */
    PACKAGE_PAIRS_MAX = 4000,
    PACKAGE_WAIT_S = 50, /* for one answer */
    PACKAGE_TARGETS_MAX = 500,
    PACKAGE_TARGET_MAX = 1024,
};

/* argv: behind "--package-diff". Never returns: 0 where DIFF_FILE was written. */
void package_diff(char **argv) __attribute__((noreturn));

/* --- shim_package_read.c: the request, and the list of versions; NULL, or the error ------------------------------
 */

struct publish {
    char name[PACKAGE_WORD_MAX + 1], version[PACKAGE_WORD_MAX + 1];
    char tag[PACKAGE_WORD_MAX + 1]; /* that moves to it; empty: none */
    struct value integrity, shasum; /* that the request says it has; borrowed */
    struct value manifest, tarball; /* what it says of this version, and where it lies; borrowed */
    struct value access, beside;    /* who may read it; a member that no client writes, named: */
    char besides[PACKAGE_WORD_MAX + 1];
    char *tgz; /* malloc */
    size_t ntgz;
};
const char *publish_read(const char *body, size_t n, struct publish *p);

struct last {
    bool is, by_tag, already;           /* is: there is one; already: that what is published is in the list */
    char version[PACKAGE_WORD_MAX + 1]; /* by_tag: on which the tag stands; else the highest */
    struct value tarball, integrity, shasum;
};
const char *last_find(const char *list, size_t n, const struct publish *p, struct last *l);
/* Of versions as npm orders them: is a before b? One that is none is before all that are. */
bool version_before(const char *a, const char *b);

/* --- shim_package_fetch.c: the registry, and whether what came is what it says ------------------------------------
 */

/* Where the file of the last version is to be had, into url: at the host of base, and below that package's name.
 * False: it is said to be elsewhere. */
/* Is that the address of a package of this name, and does a request to publish it say that it will lie below that? */
bool package_address(const char *url, const char *name);
bool package_place(const char *base, const char *name, const char *version, const char *tarball);
bool package_url(const char *base, const char *name, const char *tarball, char url[PACKAGE_URL_MAX]);
/* What an answer means whose headers are these (a text): "denied" is the gateway's, "forbidden" the registry's own.
 */
const char *package_answer(int code, const char *headers);
/* NULL, or why not: "denied", "forbidden", "unauthorized", "not-found", "moved", "unreachable", "large",
 * "no-program". */
enum fetch { FETCH_STAYS = 0, FETCH_FOLLOWS }; /* follows: to where the answer says that it is, three times at most */
const char *package_fetch(const char *url, const char *accept, size_t max, enum fetch how, struct git_said *body);

/* Of an error of the last version's file: a word of the schema's for why it cannot be read, now or later; nothing
 * that follows it could be compared then, for good. NULL: it is none of these. */
const char *package_lost(const char *error);

enum hash { HASH_NONE = 0, HASH_GOOD, HASH_WRONG };
/* Has that file the hash which these say? *kind: the strongest one that is said; NULL: none is. */
enum hash package_hash(const char *file, struct value integrity, struct value shasum, const char **kind);

/* --- shim_package_files.c: a package as files ----------------------------------------------------------------------
 */

struct entry {
    char *name; /* below the first folder, which installers leave out */
    unsigned mode;
    char id[DIFF_ID_MAX + 1];
};
struct unpacked {
    struct entry *entry; /* by name, each name once */
    size_t n;
    char *manifest; /* NULL: there is none, or it is too long */
    size_t nmanifest;
    const char *why;               /* after "odd": a word of the schema's */
    char at[PACKAGE_WORD_MAX + 1]; /* and after that or "twice": of which file; empty: of none */
};
/* In this folder, which is made, and in which nothing is left. NULL, or why not: "damaged", "large", "odd", "twice",
 * "no-program", "failed". */
const char *package_unpack(const char *file, const char *folder, struct unpacked *u);
void package_drop(struct unpacked *u); /* also after an error */
/* What is different, package.json first; old NULL: all is new. malloc; NULL: no memory. */
struct changed *package_changes(const struct unpacked *old, const struct unpacked *new, size_t *n);

/* --- shim_package_notable.c ---------------------------------------------------------------------------------------
 */

/* What its package.json names that runs. */
struct targets {
    char at[PACKAGE_TARGETS_MAX][PACKAGE_TARGET_MAX + 1];
    bool star[PACKAGE_TARGETS_MAX];          /* whatever begins so */
    bool script[PACKAGE_TARGETS_MAX];        /* as JavaScript; else as a program */
    size_t n;                                /* of these */
    char scripts[PACKAGE_MANIFEST_MAX + 64]; /* of the installation, and those that they lead to, one per line */
    bool any;                                /* nobody can tell which */
};
void package_targets(const struct unpacked *u, struct targets *t);
/* Is a file named there? by_scripts: as JavaScript, too. */
bool package_named(const struct targets *t, const char *path, bool by_scripts);
/* Of a file that is as it was: is it named now, in a way in which it was not in the last version? What was named only
 * because nobody could tell was not. */
bool package_named_now(const struct targets *old, const struct targets *new, const char *path);
/* What runs where it is installed or used, or is built there, by its name. */
bool package_notable(const struct targets *t, const char *path);
/* Of a file that is no text, which begins with these bytes: may it run? All may that are not known as data. */
bool package_runs(const struct targets *t, const char *path, const char *p, size_t n);

/* --- shim_package_data.c ------------------------------------------------------------------------------------------
 */

/* Is a file that begins with these bytes a picture, a font, sound or film, and nothing that JavaScript reads? */
bool package_data(const char *path, const char *p, size_t n);

/* --- shim_package_names.c -----------------------------------------------------------------------------------------
 */

enum { NAMES_MAX = 2 * PACKAGE_FILES_MAX };
struct name_of {
    char *is;
    bool folder;
};
struct names {
    struct name_of *at;
    size_t n;
};
/* NULL, or why not: "odd", "large", "failed". */
const char *names_add(struct names *l, const char *name, bool is_folder);
/* NULL: each of them is another file on every system, and none the folder of another. Else one that is not. */
const char *names_differ(const struct names *l);
void names_free(struct names *l);

/* --- shim_package_npm.c: what npm makes of package.json when it publishes -----------------------------------------
 */

/* Its package.json, without the mark that npm leaves out; n == 0: there is none, or it is no JSON. */
struct value package_json(const struct unpacked *u);
/* A path in it, in place: below the folder of the package, with slashes alone, nothing that leads up. */
void package_path(char *text);
/* What npm writes into the request of a text in this section of the file, in place where it fits into room. */
void package_npm(const char *which, char *text, size_t room);

/* --- shim_package_facts.c: what package.json says ------------------------------------------------------------------
 */

/* Is its package.json read here? name: of the package. */
bool package_legible(const struct unpacked *u, const char *name);
/* "facts":[...] with scripts, dependencies and programs that are added, changed or removed. False: one of the two is
 * not read here, and "unread" says which, and "unread_key" what in it; there are no "facts", or no "facts_total". old
 * NULL: there is none. name: of the package. request: where it says otherwise than the file is a fact, too; NULL: it
 * is not asked. */
bool package_facts(const struct unpacked *old, const struct unpacked *new, const char *name,
                   const struct publish *request);

#endif
