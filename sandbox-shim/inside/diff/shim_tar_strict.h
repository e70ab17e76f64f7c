/* What is read in one way only: a package is refused where its headers say one thing to this reader and another to
 * npm's (or to a registry's). NULL, or why not, in words. Inside of shim_tar.c; libc only. */
#ifndef SANDBOX_SHIM_INSIDE_TAR_STRICT_H
#define SANDBOX_SHIM_INSIDE_TAR_STRICT_H

#include <stddef.h>
#include <stdint.h>

/* One record of an extended header of this type, x or g, whose length begins at `length`. */
const char *tar_strict_record(unsigned type, const uint8_t *length, const uint8_t *key, size_t nkey,
                              const uint8_t *value, size_t n);
/* A block of TAR_BLOCK bytes that is a header. */
const char *tar_strict_header(const uint8_t *b);
/* A member: path is what a record says, NULL where none does. */
const char *tar_strict_member(const uint8_t *b, const char *path);

#endif
