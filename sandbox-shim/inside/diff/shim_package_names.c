/* Names that are one file on some system: they differ in case, or in dots and blanks at the end of a part, or one is
 * a folder of the other. */
#include "sandbox-shim/inside/diff/shim_package.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Letters that a file system folds into ASCII, and characters that it leaves out: UTF-8. */
static const char *const folded[] = {
    "\xc5\xbf",     "\xc3\x9f",     "\xe1\xba\x9e", "\xe2\x84\xaa", "\xef\xac\x80", "\xef\xac\x81",
    "\xef\xac\x82", "\xef\xac\x83", "\xef\xac\x84", "\xef\xac\x85", "\xef\xac\x86", "\xe2\x80\x8b",
    "\xe2\x80\x8c", "\xe2\x80\x8d", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xaa", "\xe2\x80\xab",
    "\xe2\x80\xac", "\xe2\x80\xad", "\xe2\x80\xae", "\xe2\x81\xa0", "\xe2\x81\xaa", "\xe2\x81\xab",
    "\xe2\x81\xac", "\xe2\x81\xad", "\xe2\x81\xae", "\xe2\x81\xaf", "\xef\xbb\xbf", "\xc2\xad",
};

/* PACKAG~1.JSO is another file's second name on Windows; a colon leads to a stream of a file, or to a drive. */
static bool odd(const char *name)
{
    for (const char *p = name; *p; p++)
        if (*p == ':' || *p == '\\' || (*p == '~' && isdigit((unsigned char)p[1])))
            return true;
    for (size_t i = 0; i < sizeof(folded) / sizeof(folded[0]); i++)
        if (strstr(name, folded[i]))
            return true;
    return false;
}

/* In lower case, each part without what Windows leaves out at its end. */
static char *fold(const char *name)
{
    char *to = malloc(strlen(name) + 1);
    size_t n = 0;

    for (; to && *name; name++) {
        while (*name == '/' && n > 0 && (to[n - 1] == '.' || to[n - 1] == ' '))
            n--;
        to[n++] = (char)(*name >= 'A' && *name <= 'Z' ? *name - 'A' + 'a' : *name);
    }
    while (to && n > 0 && (to[n - 1] == '.' || to[n - 1] == ' '))
        n--;
    if (to)
        to[n] = '\0';
    return to;
}

const char *names_add(struct names *l, const char *name, bool is_folder)
{
    if (odd(name))
        return "odd";
    if (l->n == NAMES_MAX)
        return "large";
    if (!l->at && (l->at = calloc(NAMES_MAX, sizeof(*l->at))) == NULL)
        return "failed";
    char *is = fold(name);
    if (!is)
        return "failed";
    l->at[l->n++] = (struct name_of){is, is_folder};
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct name_of *)a)->is, ((const struct name_of *)b)->is);
}

bool names_differ(const struct names *l)
{
    if (l->n > 0)
        qsort(l->at, l->n, sizeof(*l->at), by_name);
    for (size_t i = 1; i < l->n; i++)
        if (by_name(&l->at[i - 1], &l->at[i]) == 0 && !(l->at[i].folder && l->at[i - 1].folder))
            return false;
    for (size_t i = 0; i < l->n; i++)
        for (char *slash = l->at[i].is; (slash = strchr(slash, '/')) != NULL; slash++) {
            *slash = '\0';
            const struct name_of *of = bsearch(&l->at[i], l->at, i, sizeof(*l->at), by_name);
            *slash = '/';
            if (of && !of->folder) /* what is in it is in a folder of its name */
                return false;
        }
    return true;
}

void names_free(struct names *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->at[i].is);
    free(l->at);
    *l = (struct names){.n = 0};
}
