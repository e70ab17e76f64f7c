#include "sandbox-shim/run/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

enum { ROWS = 24, COLUMNS = 80 };

bool terminal_here(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

int terminal_look(struct terminal *t, struct err *e)
{
    t->raw = false;
    return tcgetattr(STDIN_FILENO, &t->saved) == 0 ? 0 : err_errno(e, "the terminal cannot be looked at");
}

void terminal_size(unsigned *rows, unsigned *columns)
{
    struct winsize size;
    bool known = ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;

    *rows = known ? size.ws_row : ROWS;
    *columns = known ? size.ws_col : COLUMNS;
}

int terminal_raw(struct terminal *t, struct err *e)
{
    struct termios raw = t->saved;

    cfmakeraw(&raw);
    t->raw = true; /* before it is: who is interrupted between the two puts it back */
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0)
        return 0;
    t->raw = false;
    return err_errno(e, "the terminal cannot be switched");
}

void terminal_back(struct terminal *t)
{
    pid_t front = tcgetpgrp(STDIN_FILENO); /* -1: it is nobody's, its session has lost it with its leader */

    if (t->raw && (front < 0 || front == getpgrp())) /* in the background it would only stop us */
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t->saved);
    t->raw = false;
}
