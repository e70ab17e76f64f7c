/* Detached Ed25519 signatures of files, in the two formats that people have a tool for: `ssh-keygen -Y sign` (SSHSIG,
 * PROTOCOL.sshsig) and minisign (both of its algorithms). Who may sign is a list of keys, one a line, in the format
 * of either: ssh-keygen(1) ALLOWED SIGNERS, or a minisign public key. Everything is read strictly; what a signer's
 * line says that is not understood here refuses the whole list. */
#ifndef COMMON_CRYPTO_SIGNATURE_H
#define COMMON_CRYPTO_SIGNATURE_H

#include "common/err.h"
#include "common/span.h"

enum { SIGNERS_MAX = 64, SIGNATURE_KEY = 32, SIGNATURE_TEXT_MAX = 16 * 1024 };

enum signature_format { SIGNATURE_NONE = 0, SIGNATURE_SSH, SIGNATURE_MINISIGN };

struct signer_key {
    enum signature_format format;
    uint8_t key[SIGNATURE_KEY];
    uint8_t id[8]; /* minisign */
};
struct signers {
    struct signer_key v[SIGNERS_MAX];
    size_t n;
};

/* ns: the namespace a key is used in, which a line with namespaces="..." must name. -1: *e says which line and why.
 */
int signers_parse(struct span text, struct span ns, struct signers *out, struct err *e) MUSTCHECK;
/* Is text a signature of that format over message, in namespace ns (SSHSIG), by one of the keys? -1: *e says why not.
 */
int signature_check(const struct signers *s, enum signature_format format, struct span ns, struct span text,
                    struct span message, struct err *e) MUSTCHECK;

#endif
