/* The host side of a sandbox. */
#include "sandbox-shim/run.h"

#include <stdio.h>

#include "cli/exit.h"

int run_main(int argc, char **argv)
{
    fputs("countersign run: not built yet\n", stderr);
    return CLI_RUNTIME;
}
