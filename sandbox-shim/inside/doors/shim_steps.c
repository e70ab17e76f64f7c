#include "sandbox-shim/inside/doors/shim_steps.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void address(uint32_t run, char to[INET_ADDRSTRLEN])
{
    const struct in_addr a = {.s_addr = htonl(STEP_FIRST | (run & (STEPS - 1)))};

    (void)inet_ntop(AF_INET, &a, to, INET_ADDRSTRLEN);
}

void steps_begin(struct steps *s, struct sockaddr_in *at)
{
    (void)inet_ntop(AF_INET, &at->sin_addr, s->host, sizeof(s->host));
    at->sin_addr.s_addr = htonl(INADDR_ANY); /* all of them; there is nothing but loopback in here */
}

void steps_add(struct steps *s, uint32_t run)
{
    uint32_t bit = run & (STEPS - 1);

    s->newest = run;
    s->is[bit / 8] |= (uint8_t)(1u << bit % 8);
}

uint32_t steps_of(const struct steps *s, int fd)
{
    struct sockaddr_in a = {.sin_family = AF_UNSPEC};
    socklen_t n = sizeof(a);

    if (s->born == 0 || getsockname(fd, (struct sockaddr *)&a, &n) != 0 || a.sin_family != AF_INET)
        return 0;
    uint32_t at = ntohl(a.sin_addr.s_addr), bit = at & (STEPS - 1);
    if ((at & ~(uint32_t)(STEPS - 1)) != STEP_FIRST || !(s->is[bit / 8] >> bit % 8 & 1))
        return 0;
    uint32_t run = (s->newest & ~(uint32_t)(STEPS - 1)) | bit; /* the last one with these bits */
    return run <= s->newest ? run : run - STEPS;
}

static uint8_t *put(uint8_t *at, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
    return at + bytes;
}

void steps_header(const struct steps *s, uint32_t run, uint8_t out[STEP_HEADER])
{
    static const uint8_t signature[] = {0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a};
    uint8_t *at = out + sizeof(signature);

    memcpy(out, signature, sizeof(signature));
    at = put(at, 0x2000, 2); /* version 2, LOCAL, of no family */
    at = put(at, STEP_HEADER - 16, 2);
    at = put(at, 0xe0, 1);
    at = put(at, 12, 2);
    at = put(at, s->born, 8);
    (void)put(at, run, 4);
}

/* One variable, with the command's own address in each place. NULL: no memory. */
static char *own(const char *variable, const char *host, const char *mine)
{
    size_t n = strlen(host), m = strlen(mine), places = 0;

    for (const char *p = variable; (p = strstr(p, host)) != NULL; p += n)
        places++;
    char *made = malloc(strlen(variable) + places * (m > n ? m - n : 0) + 1), *to = made;
    if (made == NULL)
        return NULL;
    for (const char *p; (p = strstr(variable, host)) != NULL; variable = p + n) {
        memcpy(to, variable, (size_t)(p - variable));
        to += p - variable;
        memcpy(to, mine, m);
        to += m;
    }
    memcpy(to, variable, strlen(variable) + 1);
    return made;
}

int steps_environment(const struct steps *s, uint32_t run)
{
    char mine[INET_ADDRSTRLEN];

    address(run, mine);
    for (char **v = environ; *v != NULL; v++)
        if (strstr(*v, s->host) != NULL && (*v = own(*v, s->host, mine)) == NULL)
            return -1;
    return 0;
}
