/* What a held request says, made ready for the person who decides: its body taken apart, its codings opened, and what
 * in it is apt to deceive, each in one line. For showing alone: nothing is let through for what is found here; all
 * that may come of it is that the page offers no yes. Pure; its time grows with what it is given, its memory is the
 * arena's. */
#ifndef WEB_APPROVAL_READING_READING_H
#define WEB_APPROVAL_READING_READING_H

#include "common/arena.h"
#include "common/json/json.h"

enum {
    READING_FLAGS = 32,           /* said one by one; past it they are counted */
    READING_ALIKE = 4,            /* of one kind */
    READING_ROWS = 400,           /* values of a body in a list */
    READING_OPENED = 1024 * 1024, /* of a coded body, once it is opened */
    READING_LONG = 4096,          /* a value that pushes others out of sight */
    READING_PICTURES = 8,         /* of one request; one with more has no yes */
    READING_ARENA = 24 * 1024 * 1024,
    READING_REST = 3 * 1024 * 1024, /* an arena with less left has refused somebody */
};

/* words: our own. name: what it is about, value: what stands there or what comes of it; both foreign, both may be
 * empty. blocks: the page offers no yes. */
struct flag {
    const char *words;
    struct span name, value;
    bool blocks;
};

/* One value of the body. times: how many there are of it, in lists whose elements are told together. */
struct said {
    struct span name, value;
    struct span opened; /* the value without its encoding; empty: it has none */
    size_t times;
    uint32_t hash; /* of name */
};

/* Bytes that are a picture, by what is said of them or by how they begin. Nothing here reads it: it is for a viewer.
 */
struct picture {
    struct span name, type, bytes; /* where it stands; as it was said to be, or empty */
    bool package;                  /* no picture: what begins as gzip does, and may be a package */
};

/* All of it borrowed, for as long as what was made of it is used. */
struct asked {
    struct span method, host, path, query, effect, reason;
    const struct json *fields; /* [["name", "value"], ...] */
    const struct json *facts;  /* [{"label": ..., "value": ...}, ...] */
    struct span body;          /* as far as it is there */
    bool cut;                  /* there is more of it */
    struct span all;           /* of a cut one, all of it: for the pictures in it; or empty */
    const struct span *known;  /* hosts that are no strangers: those that credentials go to */
    size_t nknown;
};

struct reading {
    struct arena *arena;
    const struct asked *asked;
    struct flag flag[READING_FLAGS];
    size_t nflags, more; /* more: that were found beside them */
    bool blocks;
    const char *kind;         /* what the body is, in a word: "JSON"; NULL: nothing that is taken apart here */
    struct span type, coding; /* as they came; the type without parameters */
    bool opened;              /* text is the body without its coding */
    struct span text;
    struct said *said;
    size_t nsaid, max_said, values; /* values: how many there are in all */
    bool together;                  /* elements of lists are told together */
    bool files;                     /* there are files in it, of which no more is told than their size and name */
    bool whole;                     /* all that the body says is told: who compares that compares all of it */
    bool is_picture;                /* the body itself is picture[0] */
    struct picture picture[READING_PICTURES];
    size_t npictures;
};

/* One more, that was found elsewhere. words: as those of a flag, told apart by their address. */
void reading_flag(struct reading *r, const char *words, struct span name, struct span value);
/* The same of what cannot be shown: the page offers no yes. */
void reading_block(struct reading *r, const char *words, struct span name, struct span value);
/* What hides, turns or imitates in a text that was found elsewhere. */
void reading_look(struct reading *r, struct span name, struct span text);
void reading_make(const struct asked *q, struct arena *a, struct reading *r);
/* How many of what viewers open are pictures, or are packages. */
size_t reading_pictures(const struct reading *r);
size_t reading_packages(const struct reading *r);

/* beside.c. What differs between a request and another that was approved, or from all that wait beside it. */
struct differs {
    struct span name;
    struct span was, is; /* p NULL: there is none */
};
/* At most max into out; how many there are. */
size_t reading_differs(const struct reading *was, const struct reading *is, struct differs *out, size_t max);
/* What all others have alike and this one has not; none, unless there are two others at least. */
size_t reading_odd(const struct reading *others, size_t n, const struct reading *is, struct differs *out, size_t max);

#endif
