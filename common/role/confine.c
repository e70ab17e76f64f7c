/* The walls of a process, once it has all that it needs. See role.h. */
#include <openssl/crypto.h>

#include "common/log.h"
#include "common/role/role_in.h"

/* Without its configuration file, which a confined process could not read. */
void role_open_crypto(void)
{
    if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
        log_die("OpenSSL cannot be set up");
}

void role_shut(const struct wall *w, bool has_parent)
{
    struct err e = {""};
    int abi = 0;
    if (wall_no_privileges(&e) != 0)
        log_die("cannot give up privileges: %s", e.text);
    if (has_parent)
        role_die_with_parent();
    if (wall_landlock(w, &abi, &e) != 0)
        log_die("cannot be confined: %s", e.text);
    if (abi == 0)
        log_warn(
            "THIS KERNEL HAS NO LANDLOCK: files are kept from this process by its user and its system calls alone");
#ifdef COUNTERSIGN_DEV
    log_warn("sanitizer build: system calls are NOT restricted");
#else
    if (wall_seccomp(w, &e) != 0)
        log_die("cannot be confined: %s", e.text);
#endif
    log_debug("confined: Landlock ABI %d", abi);
}

void role_confine_alone(const struct wall *w)
{
    role_open_crypto();
    role_wipe_environment();
    role_shut(w, false);
}
