/* Which command of a started sandbox a connection is of. Each has an address of its own on loopback, which its
 * variables name as the proxy, and with them whatever it starts: also what goes on when it has ended. The gateway
 * hears it of each connection in front of its first byte. Who takes another one's address is taken for that one, in
 * here, where all are one user; no address is good for more than another. libc only. */
#ifndef SANDBOX_SHIM_INSIDE_STEPS_H
#define SANDBOX_SHIM_INSIDE_STEPS_H

#include <netinet/in.h>
#include <stdint.h>

enum {
    STEP_BITS = 22, /* of a command's number in its address */
    STEPS = 1 << STEP_BITS,
    STEP_HEADER = 16 + 3 + 12,
};
#define STEP_FIRST 0x7f800000u /* 127.128.0.0; with all bits it is 127.191.255.255, and none is lo's broadcast */

struct steps {
    uint64_t born; /* as the warden says; 0: it has not yet, and nothing is of a step */
    uint32_t newest;
    char host[INET_ADDRSTRLEN]; /* what stands in the variables of all, in the place of a command's own */
    uint8_t is[STEPS / 8];      /* the numbers of commands; what is done with files has one, and is none */
};

/* at: where the variables of all lead, and what is of no step. */
void steps_begin(struct steps *s, struct sockaddr_in *at);
void steps_add(struct steps *s, uint32_t run);
/* Of an accepted connection; 0: of none. */
uint32_t steps_of(const struct steps *s, int fd);
/* What the gateway reads in front of it: a PROXY v2 header, LOCAL, with born and number as the value of 0xE0. */
void steps_header(const struct steps *s, uint32_t run, uint8_t out[STEP_HEADER]);
/* In the child that becomes it: its variables lead by its own address. -1: no memory. */
int steps_environment(const struct steps *s, uint32_t run);

#endif
