#include "sandbox-shim/run/home.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int home_base(char base[PATH_MAX], struct err *e)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    const struct passwd *pw = home && home[0] == '/' ? NULL : getpwuid(geteuid());
    int n;

    if (pw)
        home = pw->pw_dir;
    if (data && data[0] == '/')
        n = snprintf(base, PATH_MAX, "%s/countersign/homes", data);
    else if (home && home[0] == '/')
        n = snprintf(base, PATH_MAX, "%s/.local/share/countersign/homes", home);
    else
        return err_set(e, "you have no home directory: HOME is not set to one");
    return n > 0 && n < PATH_MAX ? 0 : err_set(e, "the path of your home directory is too long");
}

int home_make(const char *base, const char *name, char out[PATH_MAX], struct err *e)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", base, name);

    if (n <= 0 || n >= PATH_MAX)
        return err_set(e, "the path of the home %s is too long", name);
    for (char *at = out; (at = strchr(at + 1, '/')) != NULL;) {
        *at = '\0';
        int rc = mkdir(out, 0700);
        *at = '/';
        if (rc != 0 && errno != EEXIST)
            return err_errno(e, "%s cannot be made", out);
    }
    return mkdir(out, 0700) == 0 || errno == EEXIST ? 0 : err_errno(e, "%s cannot be made", out);
}
