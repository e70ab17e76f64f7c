/* Who may sign a policy's files, and whether one is signed: FILE.sig by ssh-keygen -Y sign -n countersign-policy, or
 * FILE.minisig by minisign, beside it. The keys are named by the operator, never by a policy. */
#ifndef POLICY_LOAD_FILES_SIGNED_H
#define POLICY_LOAD_FILES_SIGNED_H

#include "common/crypto/signature.h"
#include "policy/load/disk.h"

/* The list in a file, in the arena; NULL: *e says why. */
const struct signers *signers_read(const char *path, struct arena *a, struct err *e) MUSTCHECK;
/* -1: *e says what is wrong with the signature of text, which is what path held. saw (may be NULL) is told of it. */
int signed_check(const struct signers *s, const char *path, struct span text, struct arena *a, policy_saw_fn *saw,
                 void *saw_arg, struct err *e) MUSTCHECK;

#endif
