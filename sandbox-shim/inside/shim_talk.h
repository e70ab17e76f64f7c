/* What the warden and the first process of a sandbox say to each other, over a stream socket. Both include this; the
 * code of each is its own, since this one has libc alone.
 *
 *   frame: u32 length of the payload | u8 type | u32 run | payload          numbers are big-endian
 *
 * A run is one command, or what is done with files; the warden numbers them, never twice. A text is a u32 length and
 * its bytes, without NUL. Who says what is not in this list, or more than it may, is not understood any more: the
 * sandbox ends. */
#ifndef SANDBOX_SHIM_INSIDE_TALK_H
#define SANDBOX_SHIM_INSIDE_TALK_H

enum {
    TALK_VERSION = 3,
    TALK_HEAD = 9,
    TALK_PAYLOAD_MAX = 128 * 1024,
    TALK_PIECE_MAX = 32 * 1024, /* of output, in one frame */
    TALK_RUNS_MAX = 64,         /* at once */
    TALK_WORDS_MAX = 1024,      /* arguments and variables of one, together */
    TALK_WINDOW = 256 * 1024,   /* bytes of output of one that were said and not yet taken */
    TALK_IN_WINDOW = 32 * 1024, /* bytes of input of one that were said and that it was not given yet */
    TALK_WHY_MAX = 256,
    TALK_PATH_MAX = 4095,
    TALK_LIST_MAX = 500,       /* entries in one answer */
    TALK_WATCH_FOLDERS = 8192, /* that are watched as one */
    TALK_MODE_NONE = 0xffff,   /* as it is, or as is usual */
};

enum talk_type {
    TALK_NONE = 0,
    TALK_HELLO = 1,  /* S>W run 0; u32 TALK_VERSION: ready */
    TALK_RUN = 2,    /* W>S u8 enum talk_input, u16 rows and u16 columns of a terminal (else 0), u16 arguments,
                        u16 variables, then their texts, and the text of the directory */
    TALK_SIGNAL = 3, /* W>S u8 signal: to its process group */
    TALK_CREDIT = 4, /* W>S u32: so many bytes of output were taken */
    TALK_OUT = 5,    /* S>W bytes of standard output, or of its terminal */
    TALK_ERR = 6,    /* S>W bytes of standard error */
    TALK_IN = 8,     /* W>S bytes of its standard input */
    TALK_IN_END = 9, /* W>S there is no more of it; never of a terminal's, which has no end but a key */
    TALK_FED = 10,   /* S>W u32: so many bytes of input it was given, or does not want any more */
    TALK_SIZE = 11,  /* W>S u16 rows, u16 columns: so large is its terminal now */
    TALK_END = 7,    /* S>W u8 enum talk_how, u8 status or signal, u64 user us, u64 system us, u64 most memory KiB,
                        text why (TALK_FAILED alone): nothing more comes of this run */
    TALK_BORN = 12,  /* W>S run 0; u64, not 0: by this and their numbers the gateway knows its commands. Without it,
                        none of them has a way out */
    TALK_NAME = 13, /* W>S run 0; text name: what it is called, before anything is asked of it; its folders are as new
                       as this */
    TALK_FILE = 40, /* W>S u8 enum talk_file, u16 mode, u8 bool whole, u64 from, u64 most, text path, text other: a
                       run of the shim's own code, in a process of its own. Its output is what is read, its input what
                       is written, its errors are words, its status 0 or an errno */
};

enum talk_input {
    TALK_NO_INPUT = 0,
    TALK_PIPE = 1,
    TALK_TERMINAL = 2 /* for all three, with a session of its own */
};
enum talk_how { TALK_LOST = 0, TALK_EXITED = 1, TALK_SIGNALLED = 2, TALK_FAILED = 3 /* it was not started */ };

/* Paths are in the workspace: relative to it, or beginning with its own. An entry: u8 kind ('f' file, 'd' folder, 'l'
 * symbolic link, 'o' other), u16 mode, u64 size, u64 seconds since 1970 of its last change (two's complement), text
 * name, text target of a link. */
enum talk_file {
    TALK_FILE_NONE = 0,
    TALK_FILE_READ = 1,   /* from: the first byte; most: so many of them; whole: EFBIG if it has more */
    TALK_FILE_WRITE = 2,  /* its input, which has the name at once when all of it is there */
    TALK_FILE_LIST = 3,   /* the first `most` entries behind `other`, by name; then u8 0, u8 bool there are more */
    TALK_FILE_STAT = 4,   /* its entry, without a name; a link's own */
    TALK_FILE_MKDIR = 5,  /* whole: with those above it, and it may be there */
    TALK_FILE_REMOVE = 6, /* whole: a folder with all that is in it */
    TALK_FILE_MOVE = 7,   /* to other; whole: in place of what is there */
    TALK_FILE_PACK = 8,   /* a folder, as a tar stream of at most so many bytes, else EFBIG */
    TALK_FILE_UNPACK = 9, /* its input, a tar stream, into a folder, which is made */
    TALK_FILE_WATCH =
        10, /* what changes in a folder, as it changes; whole: and in those below it. Its output are lines,
               a word, a blank, and the path below that folder with %XX for what is no letter, digit or
               -._~/: `watches` when it begins; `created`, `written`, `removed`, `renamed` (this name is
               no more; the new one is created), `mode` (or times); `missed`, without a path: more than
               could be kept, and no more is said. It ends also with the folder itself, "." */
    TALK_FILE_KINDS,
};

#endif
