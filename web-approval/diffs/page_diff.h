/* What the parts of a diff's page share: files with their hunks are the same of a push and of a package. */
#ifndef WEB_APPROVAL_DIFFS_PAGE_DIFF_H
#define WEB_APPROVAL_DIFFS_PAGE_DIFF_H

#include "web-approval/diffs/diffs.h"

/* Of a result, which fits its schema: 0, false, where it is not there. */
uint64_t diff_number(const struct json *j, const char *key);
bool diff_truth(const struct json *j, const char *key);
bool diff_says(const struct json *j, const char *key, const char *word);

/* A word of our own beside something. */
void diff_tag(struct exchange *x, const char *words, bool grave);
/* Lines that come and go. */
void diff_counts(struct exchange *x, uint64_t more, uint64_t less);

struct sums {
    uint64_t files, more, less, workflows, programs, links, modules, binaries, dense, large;
};
/* Of what has "files", added to those. */
void diff_sum(const struct json *of, struct sums *s);
/* What is not there; why NULL: all is. */
void diff_missing(struct exchange *x, const char *why);
/* How much it is, and what is not there. */
void diff_summary(struct exchange *x, const struct sums *s, const char *why);

struct found {
    uint64_t n;
    const char *noun;
};
/* Of those that are more than none; nothing where all are none. */
void diff_look_first(struct exchange *x, const struct found *found, size_t n);

/* How many were put on the page, and of these opened, with how many bytes; whether they are a package's. */
struct put {
    size_t files, opened, bytes;
    bool package;
};
/* The files of what has them. */
void diff_files(struct exchange *x, const struct json *of, struct put *p);

/* page_diff_package.c. why: as of diff_summary. */
void page_diff_package(struct exchange *x, const struct json *package, const char *why);
/* page_diff_image.c. */
void page_diff_image(struct exchange *x, const struct json *image, const char *why);

#endif
