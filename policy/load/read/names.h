/* Host names as people write them: other scripts become A-labels (IDNA2008, libidn2), and a wildcard over a name
 * under which anybody can register is known as such (the public suffix list, libpsl). */
#ifndef POLICY_LOAD_READ_NAMES_H
#define POLICY_LOAD_READ_NAMES_H

#include "policy/load/read/grammar.h"

/* Every host of a file, and of a pack, in the form it has on the wire. What is no name is a problem at its place. */
void names_of_file(struct loader *l, struct m_file *f);
void names_of_pack(struct loader *l, struct m_pack *k);
/* The A-labels of a name that has other scripts, NUL-terminated; an ASCII name stays. -1: no name of IDNA2008, and
 * *why as the end of a sentence. */
enum { NAMES_TEXT_MAX = 1024 };
int names_to_ascii(struct span name, char out[NAMES_TEXT_MAX], const char **why) MUSTCHECK;
/* NULL, or why the pattern's names belong to anybody, as the end of a sentence that begins with the pattern. */
const char *names_too_wide(struct span pattern);
/* A well-known service under which everybody has a name of their own, though no public suffix: worth a warning. */
bool names_shared(struct span pattern);

#endif
