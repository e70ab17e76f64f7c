/* The messages of proxy/msgs.h, whose rules and numbers they share, about the sandboxes that the gateway starts. */
#ifndef PROXY_MSGS_BOX_H
#define PROXY_MSGS_BOX_H
/* clang-format off */
enum msg_type_box {
    /* warden and parent; id: the warden's number of the sandbox, which it never uses twice; the next warden does */
    M_BOX = 170,         /* W>P span name (empty: it waits for who asks for one), u64 generation (both for the audit), u64 memory, u64 processes, u64 percent of a CPU (of no cgroup: 0 each is refused), bool strict: only with a cgroup for all of them, span digest of its image (empty: the machine's own files), bool lane: it has a listener of the gateway, its own, span wire_extras (proxy/extras/wire_extras.h; empty: nothing); fd: descriptor 3 of its first process, which waits there for M_BOX_ORDER */
    M_BOX_CLAIMED = 330, /* W>P span name, u64 generation: one that waited is somebody's from now on */
    M_POOL = 331,        /* P>W bool strict, u16 n, n x (span image, u16 how many, u64 memory, u64 processes, u64 percent of a CPU, u64 disk, u64 files; of these 0: as usual): which sandboxes are to wait; only these from now on */
    M_BOX_STARTED = 171, /* P>W u8 version of the cgroup that holds it (0: none) */
    M_BOX_NONE = 172,    /* P>W span why: it was not started */
    M_BOX_END = 173,     /* W>P kill it now, with all that it started */
    M_BOX_GONE = 174,    /* P>W nothing of it is left */
    M_BOX_PAUSE = 202,   /* W>P bool on: all that runs in it is to stop where it is, or goes on */
    M_BOX_PAUSED = 203,  /* P>W u8 enum pause_way of now, span why (empty: as it was asked) */
    M_BOX_METER = 208, /* id: the asker's; W>P; P>W u16 n, n x (u64 number of a sandbox, span wire_usage) */
    M_BOX_IMAGE = 231, /* id: the asker's; W>P span name of an image (empty: the machine's own), or behind that span the digest that it had, which it keeps if that is still there; P>W bool there is one, span its digest as text (empty: unknown), span why not */
    M_CELL = 460,      /* W>P id: its number, never used twice; u64 number of its sandbox, span lane, u64 born and u32 number of the one command in it, u64 descriptors of each process, u64 processes and u64 bytes of memory of each process (0: a cgroup counts them), fd: descriptor 3 of its first process */
    M_CELL_NONE = 461, /* P>W id: its number; span why: it was not started */
    M_CELL_END = 462,  /* W>P id: its number; kill it now, and its way out with it */
    M_BOX_ORDER = 175,   /* W>the process that becomes the sandbox: wire_box (sandbox-shim/warden/wire_box.h) */
    /* desk and warden; id: the desk's own. box_command: span name, u64 generation that it was started as, u32 number */
    M_SB_START = 176,   /* D>W wire_box, u64 generation, u64 cpu percent, u64 timeout ms, bool strict, bool bound: it ends with the desk that asked */
    M_SB_STARTED = 177, /* W>D bool ok, span why, u8 version of its cgroup */
    M_SB_LIST = 178,    /* D>W */
    M_SB_LISTED = 179,  /* W>D u16 n, n x (span name, u64 generation, u64 ms since its start, u64 ms until its timeout, u64 ms since a command ran in it, u8 version of its cgroup, u16 commands running, u8 enum pause_way, span why it could not be made idle (empty: that was not tried), wire_box) */
    M_SB_DESTROY = 180, /* D>W span name */
    M_SB_DESTROYED = 181, /* W>D bool: there was one, and nothing of it is left */
    M_SB_PAUSE = 204,     /* D>W span name, bool for a moment: only for what is done with it meanwhile, and then it goes on */
    M_SB_MOMENT = 252,    /* D>W; W>D u16 n, n x span name: those that stand still for a moment, and nothing is done with them */
    M_SB_RESUME = 205,    /* D>W span name, u64 generation that the ledger gave it, newer than its own */
    M_SB_PAUSED = 206,    /* W>D to both: u8 enum sb_paused, u8 enum pause_way of now, u64 generation, span why (of SB_PAUSE_NOT) */
    M_SB_IDLE = 434,      /* D>W; W>D u64 ms until the next one is due (0: none is paused for good), u16 n, n x (as a row of M_SB_LISTED, u64 cpu percent, bool strict): those that were paused for as long as they may */
    M_SB_IDLE_END = 435,  /* D>W span name, u64 generation: this one, or one of before, is to end: its files are kept; W>D as M_SB_DESTROYED */
    M_SB_IDLE_NOT = 436,  /* D>W span name, u64 generation, span why: it stays paused; later again */
    M_SB_PART = 437,      /* W>D bytes of what is longer than a frame may be (M_SB_LISTED, M_SB_METER): more of it follows with the same id, and the last one has its type */
    M_SB_METER = 209,   /* D>W; W>D as many as there are: as a row of M_SB_LISTED, span wire_usage */
    M_SB_TIMEOUT = 211, /* D>W span name, u64 ms from now until it ends; W>D bool it is so: there is one, which is up */
    M_SB_LOG = 210,     /* D>W box_command; W>D u8 enum sb_found (SB_FOUND: one that is detached), bool it runs, u8 enum sb_end and u8 status or signal (else 0), for each output: u64 bytes that are not kept any more, span those that are */
    M_SB_IMAGE = 230,   /* as M_BOX_IMAGE, D>W and W>D */
    M_SB_EXEC = 182,    /* D>W span name, u64 timeout ms, u64 most bytes of output, u8 enum talk_input (sandbox-shim/inside/shim_talk.h), u16 rows and u16 columns of a terminal (else 0), bool detached: answered by M_SB_DETACHED alone, u16 arguments, u16 variables, span each, span directory, and behind that, if it has one of its own, span lane */
    M_SB_OUTPUT = 183,  /* W>D u8 1 standard output, 2 standard error, then its bytes, at most SB_WINDOW that are not taken */
    M_SB_TAKEN = 184,   /* D>W u32 bytes of output that have left */
    M_SB_KILL = 185,    /* D>W nobody waits for it any more */
    M_SB_INPUT = 187,   /* D>W bytes of its input, at most TALK_IN_WINDOW that it was not given; none: the end of it */
    M_SB_FED = 188,     /* W>D u32 bytes of its input that it was given, or does not want any more */
    M_SB_RESIZE = 189,  /* D>W u16 rows, u16 columns: so large is its terminal now */
    M_SB_DETACHED = 161, /* W>D u64 generation that its sandbox was started as, u32 number of the command in it, span why (number 0): it was not begun */
    M_SB_COMMANDS = 162, /* D>W span name */
    M_SB_COMMANDS_ARE = 163, /* W>D bool the sandbox runs, u64 generation that it was started as, u16 n, n x (u32 number, u64 ms since its start, bool detached, bool followed, bool it runs, u8 enum sb_end and u8 status or signal (else 0), bool there are more words, span words, each with a NUL) */
    M_SB_ATTACH = 164,   /* D>W box_command: from then on as if it had been run by this id; M_SB_KILL leaves it alone */
    M_SB_CUT = 165,      /* W>D u8 1 standard output, 2 standard error, u64 bytes of it that are not kept any more, before what follows; all that was said before is taken */
    M_SB_SIGNAL = 166,   /* D>W box_command, u8 signal */
    M_SB_SIGNALLED = 167, /* W>D u8 enum sb_found: it was told */
    M_SB_EXIT = 186,    /* W>D u8 enum sb_end, u8 status or signal, u64 bytes said, u64 bytes cut, u64 user us, u64 system us, u64 most memory KiB, span why */
    M_SB_FILES = 201,   /* D>W span name, u64 timeout ms, u8 enum talk_file (sandbox-shim/inside/shim_talk.h), u16 mode, bool whole, u64 from, u64 most, span path, span other: heard and told of as a command with an input */
    M_SB_TELL = 243,    /* D>W u8 signal, to the command that was run or is followed by this id */
    /* kinds of tasks (tasks: of the configuration); id 0 */
    M_TASKS = 250, /* P>D u16 n: so many kinds there are; each of them follows, and then these alone count */
    M_TASK = 251,  /* P>D wire_task (proxy/task/wire_task.h) */
    /* tokens of those who speak to the dock (proxy/ledger/store/tokens/schema_5.sql) */
    M_TOKEN_PUT = 240, /* D>Lg span kind, span scope, span name, span tenant, bool it has a hash, digest, span note; answered with M_SANDBOX_DONE */
    M_KEY_RM = 241,    /* D>Lg span name: the key and all that came of it; answered with M_SANDBOX_DONE */
    M_DOCK_OPEN = 242, /* dock>D id: its own; digest of a token, span sandbox (empty: it is a key), fd: a stream of requests of who holds it; D>dock the same id: u8 enum dock_opened, span name of the key, span tenant */
    /* broker and desk; id: the broker's own */
    M_BROKER_WHO = 270,  /* broker>D digest of a token; D>broker u8 enum dock_opened, span name of the key, span tenant, span note of its row: its scopes, JSON */
    M_BROKER_OPEN = 271, /* broker>D span tenant, fd: a stream of requests for a turn of it; answered with M_DOCK_OPEN */
    M_BROKER_TALK = 450, /* D>broker that serves: span tenant, span who: the operator who is signed in at the desk, fd: a stream of requests of theirs; nothing answers, one that cannot be had is closed */
    M_BROKER_CA = 272,   /* P>broker id 0; the gateway's CA, PEM */
    M_BROKER_SEEN = 456, /* broker>D id 0; u8 enum broker_seen, span name of the model, the tool or the turn's task (empty of what a budget stopped), span what kind of error, or how a turn ended that did not end well (empty: none), BROKER_SEEN_NUMBERS x u64: ms it took (or BROKER_SEEN_NO_TIME), ms until something came (0: nothing came), tokens in, tokens out, millionths it cost */
    M_BROKER_SPANS = 457, /* broker>D id 0; u64 spans that a collector took, u64 that are lost */
    M_BROKER_METRICS = 470, /* the same of points of metrics */
    M_BROKER_WAITS = 480, /* broker that serves>D id 0; u64 turns that wait while no process runs any (0: some do), u64 since when, of Unix ms */
    /* what ran (proxy/ledger/store/runs/); id: the warden's own */
    M_RUN_BEGIN = 244, /* W>Lg wire_run (common/runs/wire_run.h): a command, before it is ordered */
    M_RUN_BEGUN = 245, /* Lg>W bool it is written down, id of the run */
    M_RUN_END = 246,   /* W>Lg id of the run, wire_run_end */
    M_RUN_LIFE = 247,  /* W>Lg span kind, span sandbox, u64 generation, span json: as M_NOTE, of what became of a sandbox */
    /* what a task is made again from; id: the desk's own */
    M_TASK_OVER = 260, /* D>Lg span tenant, span sandbox, u64 generation, span json: as M_NOTE, of a task that is over */
    M_TASK_WRITTEN = 261, /* Lg>D bool it is written down, id of the run */
    M_BLOB_PUT = 262, /* D>Lg span tenant, span bytes: to be had by their digest; not answered */
    M_BLOB_GET = 263, /* D>Lg span tenant, digest */
    M_BLOB_IS = 264,  /* Lg>D bool they are kept, span bytes */
    /* checkpoints of a sandbox's files */
    M_SB_SNAPSHOT = 212,    /* D>W span sandbox, which is paused, span tenant and span owner (whose it will be), span name (empty: none), span: what it may reach (proxy/reach/) */
    M_SB_CHECKPOINTS = 214, /* D>W u8 enum order_what (sandbox-shim/checkpoint/order.h): list, look (also one of a step), remove, sweep, idle or forget, span tenant, span which */
    M_SB_CHECKPOINT = 213,  /* W>D to both: as M_CHECKPOINT_DONE */
    M_SB_START_FROM = 220,  /* D>W span tenant, span which, bool it is in no checkpoint store, then as M_SB_START: with the files of that checkpoint */
    /* steps that can be undone */
    M_SB_LAYER = 446,      /* D>W span sandbox, which runs, span tenant, span owner and span reach as of M_SB_SNAPSHOT, span words of the command that is the step, each with a NUL: its files are to be kept first; answered with M_SB_CHECKPOINT, whose last span is u32 number of the step and the head */
    M_SB_LAYERS = 447,     /* D>W span sandbox */
    M_SB_LAYERS_ARE = 448, /* W>D bool it is up, bool it stands still, u16 commands running, u16 n, n x (u32 step, u64 ms since it began, u64 bytes of files of before it, u64 of these new on the disk, u64 left out, span id of their checkpoint, span words), the last first */
    M_SB_UNDO = 449,       /* D>W span sandbox, which runs, u32 step (0: the last): its files are to be those of before it; answered with M_SB_CHECKPOINT */
    /* warden and parent; id: the warden's number of what is done with checkpoints */
    M_CHECKPOINT = 215,          /* W>P u8 enum store_with, u64 number of its sandbox (alone: 0); fd: descriptor 3 of who keeps checkpoints, and, unless alone, of who reads or writes the workspace, as its user */
    M_CHECKPOINT_NONE = 216,     /* P>W span why: they were not started */
    M_CHECKPOINT_END = 217,      /* W>P kill them now, if they run */
    /* warden and who keeps checkpoints (sandbox-shim/checkpoint/) */
    M_CHECKPOINT_ORDER = 218,    /* order_put; fd: the stream to who reads or writes the workspace, unless it is alone */
    M_CHECKPOINT_DONE = 219,     /* u8 enum store_end, span why, span: of a save, load or look the head (form_put_head), of a list bool there are more and heads, of a removal its id */
};
#endif
