/* Where the gateway keeps its state: the same answer for every verb. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/control/api.h"

static int path_put(char out[PATH_MAX], const char *dir, const char *below, struct err *e)
{
    char cwd[PATH_MAX] = "";
    int n;

    if (dir[0] != '/') {
        if (!getcwd(cwd, sizeof(cwd) - 1))
            return err_errno(e, "cannot tell the current directory");
        n = snprintf(out, PATH_MAX, "%s/%s%s", cwd, dir, below);
    } else {
        n = snprintf(out, PATH_MAX, "%s%s", dir, below);
    }
    return n < 0 || n >= PATH_MAX ? err_set(e, "the path of the state directory is too long") : 0;
}

int api_state_dir(const char *flag, char out[PATH_MAX], struct err *e)
{
    const char *dir = flag ? flag : getenv("COUNTERSIGN_STATE");
    const struct passwd *pw;

    if (flag && !*flag)
        return err_set(e, "--state-dir needs a directory");
    if (dir && *dir)
        return path_put(out, dir, "", e);
    if (geteuid() == 0)
        return path_put(out, "/var/lib/countersign", "", e);
    dir = getenv("XDG_STATE_HOME");
    if (dir && dir[0] == '/') /* the XDG rules ignore a relative one */
        return path_put(out, dir, "/countersign", e);
    dir = getenv("HOME");
    if (!dir || dir[0] != '/') {
        pw = getpwuid(geteuid());
        dir = pw ? pw->pw_dir : NULL;
    }
    if (!dir || dir[0] != '/')
        return err_set(e, "no home directory is known: say --state-dir or set COUNTERSIGN_STATE");
    return path_put(out, dir, "/.local/state/countersign", e);
}

int api_socket(const char *flag, char out[PATH_MAX], struct err *e)
{
    char dir[PATH_MAX];

    if (api_state_dir(flag, dir, e) != 0)
        return -1;
    return path_put(out, dir, "/control.sock", e);
}
