/* What the warden and the first process of a sandbox say to each other, over a stream socket. Both include this; the
 * code of each is its own, since this one has libc alone.
 *
 *   frame: u32 length of the payload | u8 type | u32 run | payload          numbers are big-endian
 *
 * A run is one command; the warden numbers them, never twice. A text is a u32 length and its bytes, without NUL. Who
 * says what is not in this list, or more than it may, is not understood any more: the sandbox ends. */
#ifndef SANDBOX_SHIM_INSIDE_TALK_H
#define SANDBOX_SHIM_INSIDE_TALK_H

enum {
    TALK_VERSION = 1,
    TALK_HEAD = 9,
    TALK_PAYLOAD_MAX = 128 * 1024,
    TALK_PIECE_MAX = 32 * 1024, /* of output, in one frame */
    TALK_RUNS_MAX = 64,         /* at once */
    TALK_WORDS_MAX = 1024,      /* arguments and variables of one, together */
    TALK_WINDOW = 256 * 1024,   /* bytes of output of one that were said and not yet taken */
    TALK_WHY_MAX = 256,
};

enum talk_type {
    TALK_NONE = 0,
    TALK_HELLO = 1,  /* S>W run 0; u32 TALK_VERSION: ready */
    TALK_RUN = 2,    /* W>S u16 arguments, u16 variables, then their texts, and the text of the directory */
    TALK_SIGNAL = 3, /* W>S u8 signal: to its process group */
    TALK_CREDIT = 4, /* W>S u32: so many bytes of output were taken */
    TALK_OUT = 5,    /* S>W bytes of standard output */
    TALK_ERR = 6,    /* S>W bytes of standard error */
    TALK_END = 7,    /* S>W u8 enum talk_how, u8 status or signal, u64 user us, u64 system us, u64 most memory KiB,
                        text why (TALK_FAILED alone): nothing more comes of this run */
};

enum talk_how { TALK_LOST = 0, TALK_EXITED = 1, TALK_SIGNALLED = 2, TALK_FAILED = 3 /* it was not started */ };

#endif
