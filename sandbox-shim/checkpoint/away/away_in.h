/* Inside away/ only: objects of the store elsewhere, sealed and opened (parts.c); what is to go from there (gone.c).
 */
#ifndef SANDBOX_SHIM_CHECKPOINT_AWAY_AWAY_IN_H
#define SANDBOX_SHIM_CHECKPOINT_AWAY_AWAY_IN_H

#include "sandbox-shim/checkpoint/away/away.h"

enum { AWAY_FOLDER = 32, AWAY_TMP = 4 + ID_TEXT, KEY_MARK = AWAY_FOLDER + AWAY_PLACE };

/* Object i of the n that a file there has. */
struct part {
    char tenant[AWAY_FOLDER + 1], folder[AWAY_FOLDER + 1], name[SHELF_FILE + 1];
    unsigned i, n;
};

/* Names in a listing, each with its NUL; all begin so. */
struct listing {
    char begins[2 * (AWAY_FOLDER + 1) + 1];
    size_t heard; /* bytes of all names that came */
    struct dynbuf names;
};

/* The key of one purpose; of: of which shelf's or tenant's, empty where it is of all. */
int key_for(const struct away *a, const char *purpose, struct span of, uint8_t out[AWAY_KEY]) MUSTCHECK;
/* The folder of a shelf, or (tenant) of a tenant. All of these: 0, or -1 in words. */
int folder_of(const struct away *a, const char *purpose, struct span of, char folder[AWAY_FOLDER + 1],
              struct err *e) MUSTCHECK;
/* Where a file of the shelf lies. */
int part_of(const struct away *a, const struct shelf *s, const char *name, struct part *p, struct err *e) MUSTCHECK;

/* A name of its own for what is being written, which goes with whatever else was half written. */
int tmp_name(char tmp[AWAY_TMP + 1]) MUSTCHECK;

/* The object's name below the prefix. */
void part_key(const struct part *p, char key[AWAY_KEY_MAX]);
/* room: plain.n + AEAD_EXTRA bytes. */
int part_put(const struct away *a, const uint8_t k[AWAY_KEY], const struct part *p, struct span plain, uint8_t *room,
             struct err *e) MUSTCHECK;
/* Its bytes behind what is in out. 1: there is none. */
int part_get(const struct away *a, const uint8_t k[AWAY_KEY], const struct part *p, struct dynbuf *out,
             struct err *e) MUSTCHECK;
/* A file of the shelf, which is called name there. */
int file_up(const struct away *a, const struct shelf *s, const char *file, const char *name, struct err *e) MUSTCHECK;
/* And back: it has its name when all of it is on the disk. 1: it was removed here meanwhile, and does not come. */
int file_down(const struct away *a, const struct shelf *s, const struct part *of, struct err *e) MUSTCHECK;

/* How many parts a file of so many bytes has. */
unsigned parts_in(const struct away *a, off_t bytes);
/* away_packs_up, with a list of what is there (list_of) that nobody has changed since. */
int packs_up(const struct away *a, const struct shelf *s, const struct pieces *all, struct span list,
             struct err *e) MUSTCHECK;

/* All names that begin so. The caller frees l->names, also after -1. */
int list_all(const struct away *a, const char *begins, struct listing *l, struct err *e) MUSTCHECK;
int list_of(const struct away *a, const struct shelf *s, struct listing *l, struct err *e) MUSTCHECK;
/* The next part in a listing, behind which rest is then; what is not of our form is none. */
bool list_next(struct span *rest, struct part *p);

/* Marks beside what lies on a shelf (shelf.h): what-name. */
enum { MARK_NAME = sizeof("gone-") - 1 + SHELF_FILE };
bool is_here(int dir, const char *name);
bool mark_is(const struct shelf *s, const char *what, const char *name);
/* Of a mark: its bytes are on the disk before it has its name. -1 with errno. */
int mark(int dir, const char *what, const char *name, struct span bytes) MUSTCHECK;
int unmark(const struct shelf *s, const char *what, const char *name) MUSTCHECK;
/* It was removed here; or, of a checkpoint, is to go there, or is just being written there. -1: that cannot be read.
 */
int is_dead(const struct shelf *s, const char *name) MUSTCHECK;
int unwritten(struct err *e);
/* Those with a piece that is. */
void packs_wanted(const struct pieces *all, bool wanted[PACKS_MAX]);

#endif
