#include "sandbox-shim/inside/shim_terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

void terminal_resize(int ours, unsigned rows, unsigned columns)
{
    const struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};

    (void)ioctl(ours, TIOCSWINSZ, &size);
}

int terminal_open(unsigned rows, unsigned columns, int *ours, int *theirs)
{
    struct termios modes;
    char name[64];

    *theirs = -1;
    *ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*ours < 0 || grantpt(*ours) != 0 || unlockpt(*ours) != 0 || ptsname_r(*ours, name, sizeof(name)) != 0 ||
        fcntl(*ours, F_SETFL, O_NONBLOCK) != 0 || (*theirs = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0 ||
        tcgetattr(*theirs, &modes) != 0)
        goto fail;
    modes.c_iflag |= IUTF8; /* so that a character is erased whole */
    if (tcsetattr(*theirs, TCSANOW, &modes) != 0)
        goto fail;
    terminal_resize(*ours, rows, columns);
    return 0;
fail:
    if (*ours >= 0)
        close(*ours);
    if (*theirs >= 0)
        close(*theirs);
    *ours = *theirs = -1;
    return -1;
}

int terminal_take(int theirs)
{
    if (setsid() < 0 || ioctl(theirs, TIOCSCTTY, 0) != 0)
        return -1;
    for (int fd = 0; fd < 3; fd++)
        if (dup2(theirs, fd) != fd)
            return -1;
    return 0;
}
