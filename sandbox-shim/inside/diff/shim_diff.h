/* What a held push, or a held package, changes, found out inside a sandbox of its own by the git that is there.
 * A package: shim_package.h; an image: shim_image.h. A push: `countersign-shim --push-diff URL PACK_AT FORMAT (OLD
 * NEW)...`. The push, as it was held, is in PUSH_FILE; what it lacks is fetched from URL by id; the answer is
 * DIFF_FILE, JSON that fits web-approval/diffs/diff.schema.json, whatever the push or the repository has in it. libc
 * only. */
#ifndef SANDBOX_SHIM_INSIDE_DIFF_SHIM_DIFF_H
#define SANDBOX_SHIM_INSIDE_DIFF_SHIM_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PUSH_DIFF_SHIM    "/countersign/countersign-shim" /* INSIDE_SHIM of plan/plan.h */
#define PUSH_DIFF_MODE    "--push-diff"
#define PACKAGE_DIFF_MODE "--package-diff"
#define IMAGE_DIFF_MODE   "--image-diff"
#define PUSH_FILE         "/workspace/push"
#define DIFF_FILE         "/workspace/diff.json"
#define DIFF_GIT_DIR      "/workspace/repository"

enum {
    DIFF_REFS_MAX = 16,
    DIFF_LINE_MAX = 66,                    /* of one alone, with the end of its line */
    DIFF_ID_MAX = 64,                      /* of an object, in hexadecimal */
    DIFF_COMMITS_MAX = 50,                 /* of one ref, shown */
    DIFF_FILES_MAX = 300,                  /* of one ref, shown */
    DIFF_PATH_MAX = 1024,                  /* bytes of a name, shown */
    DIFF_WORDS_MAX = 300,                  /* of an author or a subject */
    DIFF_BLOB_MAX = 1024 * 1024,           /* a larger file is named, with its size */
    DIFF_PATCH_MAX = 192 * 1024,           /* of one file, shown */
    DIFF_TEXT_MAX = 480 * 1024,            /* of all patches, shown */
    DIFF_NAMES_MAX = 32 * 1024 * 1024,     /* of a list of what changed, read */
    DIFF_ADVERTISED_MAX = 4 * 1024 * 1024, /* of the refs there are */
    DIFF_COUNT_MAX = 10000,                /* commits that are counted */
    DIFF_RAW_MAX = 8 * 1024,               /* of a commit or a tag, shown */
    DIFF_IDS_MAX = 64 * 1024 * 1024,       /* of a list of objects, read */
    DIFF_RENAMES_MAX = 200,                /* files between which names are looked for */
};

/* argv: behind "--push-diff". Never returns: 0 where DIFF_FILE was written. */
void push_diff(char **argv) __attribute__((noreturn));

/* --- shim_git.c: git, as it is run here: nothing of its configuration, its hooks and filters, and none but our
 * environment. Words end with NULL. --------------------------------------------------------------------------- */

struct git_said {
    char *p; /* malloc; ended by a zero that is not counted */
    size_t n;
    bool cut; /* there was more */
};
/* What it says, at most max bytes of it; into_file: its standard input, or -1. Its status, -1: it ended otherwise. A
 * cut one has status 0. */
int git_say(struct git_said *out, size_t max, int input, const char *const *words);
/* The same of one whose words nobody reads: its complaint, into err (of size n, ended by a zero). */
int git_do(char *err, size_t n, int input, const char *const *words);
void git_begin(const char *scheme);
/* Another program, with the same environment: the first word, found by PATH. 127: it is not there. */
int program_say(struct git_said *out, size_t max, int input, const char *const *words);
/* The same of one whose words are read one after the other, from *says, which is to be closed. -1: it cannot be. */
pid_t program_open(int *says, int input, const char *const *words);
int program_over(pid_t pid); /* its status */
void said_free(struct git_said *s);
/* The one line that it says, without its end. False: it says none. */
bool git_line(char *to, size_t room, int input, const char *const *words);
/* DIFF_GIT_DIR, with the ids of nothing in this format (sha1, sha256). NULL, or the error, in its word. */
const char *git_repository(const char *format, char empty_blob[DIFF_LINE_MAX], char empty_tree[DIFF_LINE_MAX]);

/* --- shim_diff_json.c: the answer ---------------------------------------------------------------------------- */

void out_begin(const char *file); /* DIFF_FILE */
void out_raw(const char *text);
/* Bytes as a JSON text of at most max of them; those that are no UTF-8 as \xNN, and *odd is set then. False: there
 * were more. */
bool out_text(const char *p, size_t n, size_t max, bool *odd);
bool text_is_utf8(const char *p, size_t n);   /* strictly; empty: yes */
void out_number(const char *key, uint64_t v); /* ,"key":v */
/* In place, and closed. -1: it cannot be written. */
int out_end(void);
/* There is none, for this reason (a word of the schema's), and that was all. */
void over(const char *error) __attribute__((noreturn));

/* --- shim_diff_files.c: files between two trees ----------------------------------------------------------------- */

/* One that changed: two modes, two objects, how, and its name or names. */
struct changed {
    unsigned mode[2]; /* 0: it is not there */
    char id[2][DIFF_ID_MAX + 1];
    char how;
    const char *path, *from; /* from: NULL, unless it was renamed */
};

/* A file list and where it stands. */
struct files {
    const char *empty_blob; /* the id of nothing */
    size_t *budget;         /* bytes of text that may still be shown */
    uint64_t shown, total;
    bool cut;
    bool (*notable)(const struct changed *c); /* these are shown first, too; NULL: no others */
    /* Of one that is no text, and begins so: may it run? NULL: what is notable may. */
    bool (*runs)(const struct changed *c, const char *p, size_t n);
};
bool file_is_text(const char *id, const struct files *f);
/* "files":[...], not closed yet, of these. False: no memory. */
bool files_list(struct files *f, const struct changed *list, size_t n);
/* The same of what git says. False: git does not say, or its list breaks off. */
bool files_put(struct files *f, const char *from, const char *to);
/* Behind these what this one commit brings that is in none of them: it leaves too. */
bool files_between(struct files *f, const char *commit, bool merge);
void files_end(const struct files *f);

/* --- shim_diff_hidden.c: what leaves and is not shown ----------------------------------------------------------- */

/* tips: of what the other side has, as rev-list takes them, ended by NULL. False: it cannot be told. */
bool hidden_begin(const char *const *tips);
bool hidden_is_known(const char *id); /* the other side has it */
/* An object is shown, under this name; ids of commits and tags with "". False: no memory. */
bool hidden_show(const char *id, const char *path);
bool hidden_is_shown(const char *id, const char *path);
/* Objects that are here, that the other side has not, and that nobody sees. news: what the refs lead to, tips as of
 * hidden_begin. False: it cannot be told. */
bool hidden_count(const char *const *news, const char *const *tips, uint64_t *n);

#endif
