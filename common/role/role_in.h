/* What a role (role.c) and a program that is started for one (job.c) have in common. A program that needs no more
 * than that is linked with no more: one is started for each sandbox, and OpenSSL alone doubles what that takes. */
#ifndef COMMON_ROLE_ROLE_IN_H
#define COMMON_ROLE_ROLE_IN_H

#include <stdbool.h>

#include "common/role/wall.h"

enum { ROLE_PARENT_FD = 3 };

/* -1: stay who we are. */
struct role_user {
    long uid, gid;
};

/* begin.c. All end the process, in words, if it cannot be done. */
/* From the environment, which role_wipe_environment clears. */
void role_user_read(struct role_user *u);
void role_user_become(const struct role_user *u);
void role_wipe_environment(void);
/* Descriptor 3, which is called so, is made to block and not to outlive an exec. */
void role_take_channel(const char *what);
void role_close_inherited(void);
void role_limits(void);
/* Also if it has ended already. */
void role_die_with_parent(void);
/* Has who is at descriptor 3 gone? Then nothing is wrong: the process ends, and says so. */
bool role_is_alone(void);
void role_end_if_alone(void);

/* confine.c */
void role_open_crypto(void);
/* no_new_privs, Landlock, seccomp. has_parent: it goes on to die with it. */
void role_shut(const struct wall *w, bool has_parent);

#endif
