/* Where a PostgreSQL is: the one form of it that we take, for who reads the configuration and who goes there. */
#ifndef COMMON_POSTGRES_WHERE_H
#define COMMON_POSTGRES_WHERE_H

#include "common/err.h"

enum { PG_NAME_MAX = 63, PG_HOST_MAX = 255, PG_PATH_MAX = 1023, PG_FOLDER_MAX = 90, PG_PASSWORD_MAX = 1024 };

/* folder: of a Unix socket; else empty, and it is TCP, to address (digits). */
struct pg_where {
    char user[PG_NAME_MAX + 1], database[PG_NAME_MAX + 1];
    char folder[PG_FOLDER_MAX + 1], address[PG_HOST_MAX + 1];
    char name[PG_HOST_MAX + 1];  /* what its certificate is for; empty: the address */
    char roots[PG_PATH_MAX + 1]; /* whose certificates are believed; empty: without TLS */
    uint16_t port;
};

/* postgresql://USER@HOST[:PORT]/DATABASE[?hostaddr=ADDRESS&sslmode=verify-full&sslrootcert=FILE]
 *
 * HOST: an address, or a name whose hostaddr= says the address (nothing is resolved), or the folder of a Unix socket,
 * as %2Frun%2Fpostgresql. Off this machine it is TLS and sslmode=verify-full, or refused. A password has no place in
 * it. 0, or -1 with words that name no part of what was given but by its kind. */
int pg_where_read(struct span url, struct pg_where *out, struct err *e) MUSTCHECK;

#endif
