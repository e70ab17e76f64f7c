/* The closed lists that travel between processes. Zero is never a good answer. */
#ifndef PROXY_WORDS_H
#define PROXY_WORDS_H

enum role_id {
    ROLE_NONE = 0,
    ROLE_PARENT,
    ROLE_LOBBY,
    ROLE_FRONT,
    ROLE_JUDGE,
    ROLE_RESOLVER,
    ROLE_CARRIER,
    ROLE_KEEPER,
    ROLE_LEDGER,
    ROLE_DESK,
    ROLE_FETCHER,
    ROLE_WARDEN,
    ROLE_DOCK,
    ROLE_BROKER, /* instance 0 serves, each other one runs turns (proxy/duty/duty.h) */
    ROLE_COUNT
};

/* The sandbox as which checkpoints reach a store elsewhere: nobody else's to be called. */
#define STORE_SANDBOX "checkpoint-store"

enum outcome { OUTCOME_UNKNOWN = 0, OUTCOME_NOT_SENT, OUTCOME_ANSWERED };
/* What a gate says of a held request; nothing that can be understood is no yes. */
enum gate_said { GATE_FAILED = 0, GATE_ALLOW, GATE_DENY, GATE_ABSTAIN };
/* A body that is larger is not shown to it; and as base64. */
enum { GATE_BODY_MAX = 64 * 1024, GATE_BODY_TEXT_MAX = (GATE_BODY_MAX + 2) / 3 * 4 };
/* In place of what it says: it could not be asked now, and may be again. */
enum { GATE_NOT_ASKED = GATE_ABSTAIN + 1 };
/* Of what came back from Slack (M_SLACK): not signed by it, or not now, or not for the first time; nothing to do;
 * somebody denies; signed and not understood; not possible now, and nothing is done. */
enum slack_said { SLACK_REFUSED = 0, SLACK_NOTHING, SLACK_DENY, SLACK_UNKNOWN, SLACK_NOT_NOW, SLACK_SAIDS };
enum { SLACK_BODY_MAX = 48 * 1024, SLACK_FIELD_MAX = 80, SLACK_WORDS_MAX = 480 };
enum ticket_state {
    TICKET_NONE = 0,
    TICKET_PENDING,
    TICKET_APPROVED,
    TICKET_DENIED,
    TICKET_EXPIRED,
    TICKET_CANCELLED,
    TICKET_EXECUTING,
    TICKET_DONE,
    TICKET_FAILED,
    TICKET_UNKNOWN
};

/* Whose a token is: a judge that was not told yet who the sandboxes are says later, not unknown. */
enum identity { IDENTITY_UNKNOWN = 0, IDENTITY_KNOWN, IDENTITY_LATER };

/* How the front is to read what comes on a connection. */
enum way {
    WAY_NONE = 0,
    WAY_HTTP,     /* CONNECT or absolute-form */
    WAY_SOCKS,    /* greeting and login are done; the SOCKS5 request comes next */
    WAY_CAPTURED, /* was on its way elsewhere: TLS (its SNI says where to) or origin-form HTTP, from the first byte */
    WAY_STEP,     /* a PROXY v2 header says which step of its sandbox it is of; behind it as WAY_HTTP */
};

/* Who accepts: lobby 1, 6, 8; front 2, 7, 9, 12; desk 3, 4; keeper 5; resolver 10; dock 11; broker 13, 14. */
enum listen_kind {
    LISTEN_NONE = 0,
    LISTEN_HTTP = 1, /* of many sandboxes */
    LISTEN_OWN = 2,  /* HTTP of one sandbox: Unix, or TCP without TLS */
    LISTEN_DESK = 3,
    LISTEN_CONTROL = 4,
    LISTEN_SECRETS = 5,
    LISTEN_SOCKS = 6,
    LISTEN_CAPTURED = 7,      /* TCP of one sandbox; SO_ORIGINAL_DST */
    LISTEN_CAPTURED_MANY = 8, /* the same, the sandbox by source address */
    LISTEN_CAPTURED_UNIX =
        9, /* Unix of one sandbox: a PROXY v2 header makes a connection captured, without one it is WAY_HTTP */
    LISTEN_DNS = 10,        /* two descriptors: UDP and TCP, answered with an address of our own */
    LISTEN_DOCK = 11,       /* the sandbox API */
    LISTEN_BROKER = 13,     /* conversations, with keys */
    LISTEN_BROKER_OWN = 14, /* the same on a Unix socket, for the operator */
    LISTEN_STEPS = 12, /* Unix of one sandbox that the warden has started: each connection is of a step (WAY_STEP) */
};

/* What fetcher and desk may have started: programs of our own, one each, of pkglibexecdir. */
enum job_kind {
    JOB_NONE = 0,
    JOB_PROGRAM, /* countersign-fetch-program: runs a program that the policy names, which has no network */
    JOB_HTTP,    /* countersign-fetch-http: asks one server */
    JOB_VIEW,    /* countersign-view-picture, for the desk: opens one picture */
    JOB_GATE, /* countersign-fetch-program too, as another user: what it reads a sandbox wrote, and those have secrets
               */
    JOB_TELL, /* countersign-fetch-http too, as another user: those of sources have secrets of others */
    JOB_ASK,  /* the same for gates that a server answers: what it sends a sandbox wrote */
    JOB_KINDS
};

/* What keeps a sandbox of the warden's from running. */
/* What became of a checkpoint (M_CHECKPOINT_DONE). */
enum store_end {
    STORE_FAILED = 0,
    STORE_DONE,
    STORE_MISSING, /* there is no such one */
    STORE_TAKEN,   /* one of this name is there */
    STORE_REFUSED, /* as the sandbox, or what is in it, is now */
    STORE_FULL,    /* its owner has as much as may be kept */
    STORE_ENDS
};
/* Who is started for checkpoints (M_CHECKPOINT): who keeps them alone, or with who reads or writes a workspace. */
enum store_with { STORE_ALONE = 0, STORE_READS, STORE_WRITES, STORE_WITHS };
enum pause_way {
    PAUSE_NONE = 0, /* nothing: it runs */
    PAUSE_CGROUP_1,
    PAUSE_CGROUP_2,
    PAUSE_SIGNALS, /* each process was stopped, as seen from outside */
    PAUSE_WAYS
};

/* Does a token let in? Only the last one does. */
enum dock_opened { DOCK_LATER = 0 /* it cannot be known now, or too many are in */, DOCK_UNKNOWN, DOCK_OPEN };

/* What the broker has done, as the desk counts it. */
enum broker_seen {
    BROKER_SEEN_NOTHING = 0,
    BROKER_SEEN_MODEL,
    BROKER_SEEN_TOOL,
    BROKER_SEEN_BUDGET,
    BROKER_SEEN_TURN
};
/* The identities by which its workers send spans: the desk makes them, with this session and label, and nobody else a
 * sandbox of such a name. */
#define SPANS_NAME    "otlp-"
#define SPANS_SESSION "otlp"
#define SPANS_LABEL   "telemetry"
#define SPANS_VALUE   "spans"
enum { BROKER_SEEN_NAME = 128 /* bytes of a name */, BROKER_SEEN_NUMBERS = 5 };
#define BROKER_SEEN_NO_TIME UINT64_MAX /* instead of ms it took: it was not asked */

/* How a command in a sandbox ended. */
enum sb_end {
    SB_LOST = 0, /* with its sandbox, or there is none */
    SB_EXITED,
    SB_SIGNALLED,
    SB_NOT_STARTED,
    SB_TIMED_OUT,
};

/* What became of asking a sandbox to pause or to go on. */
/* A command that was asked about by its sandbox's name, the generation that this was started as, and its number. */
enum sb_found {
    SB_FOUND_NONE = 0,
    SB_FOUND = 1,
    SB_FOUND_ENDED = 2,
    SB_FOUND_PAUSED = 3, /* its sandbox stands still */
    SB_FOUND_OTHER = 4,  /* of another start of this name */
    SB_FOUND_NOWHERE = 5 /* no sandbox of this name runs */
};
enum sb_paused {
    SB_PAUSE_NOT = 0, /* it is as it was */
    SB_PAUSE_DONE,
    SB_PAUSE_NOBODY, /* no sandbox of this name runs */
};

/* Of messages (proxy/msgs.h). */
enum {
    XID_FRONT_SHIFT = 40, /* of an exchange's id: above it is its front's instance */
    XID_LATER = 0x800000, /* from this instance on it is no front's: the gateway sends it itself, of itself */
    REQUEST_FORWARDED = 4 /* it said, in a field that never goes on, that it is somebody else's, passed on */
};
enum { LATER_ANSWER_MS = 15 * 60 * 1000 }; /* for so long after its head more of an answer is taken for such a one */
enum { WS_COST = 32, WS_MESSAGE_MAX = 192 * 1024 /* of a client */, WS_ANSWER_MAX = 1024 * 1024 /* of a server */ };
enum { SB_WINDOW = 256 * 1024, BODY_INLINE_MAX = 256 * 1024, ANSWER_WINDOW = 256 * 1024, BODY_WINDOW = 256 * 1024 };
enum { ANSWER_KEPT_MAX = 218 * 1024 /* fits into one M_REPLY with its head */ };

const char *role_name(enum role_id r);
const char *ticket_state_name(enum ticket_state s);
const char *outcome_name(enum outcome o);

#endif
