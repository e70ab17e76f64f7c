/* Folders of the sandboxes that the gateway itself starts, as tar streams. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/verbs/started/files.h"
#include "sandbox-shim/inside/shim_tree.h"

enum { PIECE = 64 * 1024 };

/* --- into a sandbox ------------------------------------------------------------------ */

static int put(void *arg, const uint8_t *p, size_t n)
{
    return api_upload_put(arg, span_of(p, n)) == 0 ? 0 : (errno = EPIPE, -1);
}

/* Standard input, as it is: 0, or -1 with errno; EPIPE: the gateway takes no more. */
static int pass_on(struct api_upload *u)
{
    static uint8_t piece[PIECE];
    ssize_t n;

    while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && put(u, piece, (size_t)n) != 0)
            return -1;
    return n < 0 ? -1 : 0;
}

static int send_folder(struct api_upload *u, const char *from, struct pack *k)
{
    int rc, dir = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return -1;
    k->put = put;
    k->arg = u;
    k->most = UINT64_MAX;
    rc = pack_folder(k, dir);
    int why = errno;
    close(dir);
    errno = why;
    return rc;
}

int tree_up(const struct gateway_call *g, const char *from, const struct remote *to)
{
    static struct pack k;
    struct api_upload *u = files_send(g, to, "/tar", NULL);
    int rc = CLI_OK;

    if (!u)
        return CLI_STORE;
    if ((from ? send_folder(u, from, &k) : pass_on(u)) != 0 && errno != EPIPE)
        rc = verb_fail(CLI_RUNTIME, "cannot read %s%s%s: %s", from ? from : "standard input", k.m.name[0] ? "/" : "",
                       k.m.name, strerror(errno));
    return files_sent(&u, rc);
}

/* --- out of a sandbox ------------------------------------------------------------------ */

/* A name of the sandbox's own is not shown as it is. */
static int unpack_piece(void *ctx, struct span piece, struct err *e)
{
    struct unpack *u = ctx;

    if (unpack_take(u, piece.p, piece.n) == 0)
        return 0;
    return u->why ? err_set(e, "it cannot be unpacked: %s", u->why) : err_errno(e, "it cannot be unpacked");
}

int tree_down(const struct gateway_call *g, const struct remote *from, const char *most, const char *to)
{
    static struct unpack u;
    int out = STDOUT_FILENO;

    if (!to && isatty(out)) /* what is in it may be meant for that */
        return verb_fail(CLI_USAGE, "a tar stream is nothing for a terminal: send it to a file or a program");
    if (!to)
        return files_get(g, from, "/tar", most, files_write, &out);
    bool made = mkdir(to, 0777) == 0;
    int root = made || errno == EEXIST ? open(to, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (root < 0)
        return verb_fail(CLI_RUNTIME, "cannot write into %s: %s", to, strerror(errno));
    unpack_begin(&u, root, true);
    int rc = files_get(g, from, "/tar", most, unpack_piece, &u);
    if (rc == CLI_OK && unpack_end(&u) != 0)
        rc = verb_fail(CLI_RUNTIME, "it cannot be unpacked: %s", u.why ? u.why : strerror(errno));
    unpack_drop(&u);
    close(root);
    if (rc == CLI_OK && u.left_out > 0)
        rc = verb_fail(CLI_RUNTIME,
                       "%u were left out: links that lead out of the folder, and what is neither a file nor a folder",
                       u.left_out);
    return rc;
}
