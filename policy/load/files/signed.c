#include "policy/load/files/signed.h"

#include <stdio.h>
#include <unistd.h>

#define NAMESPACE SPAN("countersign-policy")

enum { SIGNERS_FILE_MAX = 64 * 1024, SIGNED_PATH_MAX = 4096 + 16 };

const struct signers *signers_read(const char *path, struct arena *a, struct err *e)
{
    struct err why = {""};
    struct span text = SPAN_NONE;
    struct signers *out = arena_alloc(a, sizeof(*out));
    if (out == NULL) {
        (void)err_set(e, "no memory for %s", path);
        return NULL;
    }
    if (policy_read_file(path, SIGNERS_FILE_MAX, a, &text, e) != 0)
        return NULL;
    if (signers_parse(text, NAMESPACE, out, &why) != 0) {
        (void)err_set(e, "the signers in %s: %s", path, why.text);
        return NULL;
    }
    return out;
}

int signed_check(const struct signers *s, const char *path, struct span text, struct arena *a, policy_saw_fn *saw,
                 void *saw_arg, struct err *e)
{
    static const struct {
        const char *suffix;
        enum signature_format format;
    } kinds[] = {{".sig", SIGNATURE_SSH}, {".minisig", SIGNATURE_MINISIGN}};
    for (size_t i = 0; i < 2; i++) {
        char name[SIGNED_PATH_MAX];
        struct span signature = SPAN_NONE;
        struct err why = {""};
        int n = snprintf(name, sizeof(name), "%s%s", path, kinds[i].suffix);
        if (n < 0 || (size_t)n >= sizeof(name))
            return err_set(e, "%.200s...: the path is too long", path);
        if (access(name, F_OK) != 0)
            continue;
        if (policy_read_file(name, SIGNATURE_TEXT_MAX, a, &signature, e) != 0)
            return -1;
        if (signature_check(s, kinds[i].format, NAMESPACE, signature, text, &why) != 0)
            return err_set(e, "the signature %s: %s", name, why.text);
        if (saw)
            saw(saw_arg, name, signature);
        return 0;
    }
    return err_set(
        e, "%s is not signed: there is no %s.sig (ssh-keygen -Y sign -n countersign-policy) and no %s.minisig", path,
        path, path);
}
