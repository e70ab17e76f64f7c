/* A small part of XML, read strictly: elements with attributes that are skipped, text, and the five entities. What
 * else XML has (declarations of types, other entities, sections, comments, instructions) is refused. */
#ifndef PROXY_FETCHER_JOB_XML_H
#define PROXY_FETCHER_JOB_XML_H

#include "common/arena.h"

enum { XML_DEPTH_MAX = 16, XML_TEXT_MAX = 64 * 1024 };

struct xml_want {
    const char *path; /* "Response/Result/Key": names of elements, without a prefix, from the outermost on */
    struct span text; /* found; its p is NULL when it is not there */
};
/* The texts of n elements, without the blanks around them; they live in a. The whole document is read: -1 when it is
 * not well-formed, has what is refused, or an element that is wanted twice. */
int xml_read(struct span document, struct xml_want *want, size_t n, struct arena *a) MUSTCHECK;

#endif
