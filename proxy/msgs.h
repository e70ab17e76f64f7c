/* Every message between processes, once. Numbers are never reused; a change of
 * meaning raises MSG_VERSION (common/msg.h). Fields are listed in the order in
 * which msg_put_* writes and msg_get_* reads them; what more than one role
 * encodes has its pair of functions in proxy/wire.h. id of a frame: the exchange (xid) unless said otherwise; a front
 * makes it: its instance number << 40 | a counter, never reused within a boot. Judge and carrier refuse an xid whose
 * upper bits are not the channel's front. Who talks to whom (parent makes the socketpairs, M_PEER hands them over):
 * front-judge front-carrier judge-carrier judge-keeper judge-ledger judge-lobby keeper-carrier keeper-ledger
 * carrier-resolver desk-ledger, and all with parent */
#ifndef PROXY_MSGS_H
#define PROXY_MSGS_H
#include "proxy/words.h" /* clang-format off */
enum msg_type {
    /* parent and any role; id 0 */
    M_CONFIG = 1,  /* P>R u32 MSG_VERSION, u16 n, n x (span key, span value); descriptors by role */
    M_READY = 2,   /* R>P */
    M_PEER = 3,    /* P>R u8 role, u64 instance, span info; fd */
    M_STOP = 4,    /* P>R end now, in order */
    M_IMAGE = 5,   /* P>judge,keeper,ledger,desk  digest; fd of a memfd with all seals */
    /* parent, lobby and front; id 0. kind: 1 token http, 2 unix of one sandbox, 3 desk http, 4 control, 5 secrets */
    M_LISTEN = 10,   /* P>lobby,front,desk,keeper u8 kind, span name; fd */
    M_ADOPT = 11,    /* P>F span proxy_authorization, span bytes already read; fd */
    M_HANDOVER = 12, /* lobby>P span sandbox, span proxy_authorization, span bytes already read; fd */
    M_IDLE = 13,     /* F>P u64 adopted so far; P answers M_STOP when it has sent no more than that */
    /* lobby and judge; id: the lobby's own */
    M_IDENTIFY = 20, /* span token */
    M_IDENTITY = 21, /* bool known, span sandbox */
    /* front and judge */
    M_FRONT_KEY = 30, /* F>J id 0; span spki */
    M_CONNECT = 31,   /* F>J span scheme, span host, u16 port */
    M_LEAF = 32,      /* J>F span leaf der, span ca der; both empty: refused, then wire_reply */
    M_REQUEST = 33,   /* F>J wire_request, span countersign_reason, u8 body (0 none, 1 inline, 2 to come), u64 declared length or ~0, span inline body */
    M_BODY_WANTED = 34, /* J>F u8 mode (1 stream, 2 whole), u64 max */
    M_BODY = 35,        /* F>J>C raw bytes, within the credit */
    M_BODY_END = 36,    /* F>J>C bool ok: false, it was cut short or malformed */
    M_BODY_CREDIT = 37, /* C>J>F u32 more bytes may come */
    M_BODY_WHOLE = 38,  /* F>J u64 size, span inline (size <= 256 KiB) or fd of a sealed memfd; size > max and neither: too large */
    M_REPLY = 39,       /* J>F wire_reply: the gateway's own answer; ends the exchange for the front */
    M_CANCEL = 40,      /* F>J, J>C the client is gone. A write that was sent is seen to its end all the same. */
    /* judge and carrier */
    M_UPSTREAM = 50, /* J>C id 0; wire_upstream */
    M_FORWARD = 51,  /* J>C wire_forward, u64 size or ~0, span inline; fd */
    M_NEED_RELEASE = 52, /* C>J no live credential: ask the keeper for this xid */
    M_SENT = 53,         /* C>J the first byte of the request has left (only for unsafe ones) */
    M_RESULT = 54,       /* C>J u8 outcome (enum outcome), u16 status, u64 bytes out, u64 bytes in, bool head_relayed, span code, span why */
    M_KEPT = 55,         /* C>J before M_RESULT: wire_answer, u64 size, span inline: an unsafe request's answer nobody took */
    /* keeper; id: xid or the asker's own */
    M_MINT = 70,           /* J>K span host, span spki */
    M_MINTED = 71,         /* K>J span leaf der, span ca der (empty: refused) */
    M_RELEASE = 72,        /* J>K span credential (may be empty: scrub patterns only), span scheme, span host, u16 port, span path, bool held, digest, span signature (64 bytes if held) */
    M_RELEASE_FAILED = 73, /* K>J span code, span why */
    M_CREDENTIAL = 74,     /* K>C u32 ttl ms, span scheme, span host, u16 port, span credential, span header, span value, u16 n, n x span secret to scrub */
    M_LEDGER_KEY = 75,     /* ledger>K span Ed25519 public key, 32 bytes */
    M_DATA_KEY = 76,       /* K>ledger span 32 bytes for held bodies */
    M_SECRETS = 77,        /* K>P>desk u16 n, n x span name: what the sealed store and the sources can give */
    M_SOURCE = 78,         /* P>K span credential, fd: its source file, opened by the parent, unread */
    M_CA = 79,             /* K>P span pem */
    /* judge and ledger */
    M_TICKET_OPEN = 80,    /* J>Lg wire_ticket, u64 size, span inline or fd: the body */
    M_TICKET = 81,         /* Lg>J wire_ticket_state: of the ticket opened or joined */
    M_TICKET_CHANGED = 82, /* Lg>J id 0; wire_ticket_state */
    M_CLAIM = 83,          /* J>Lg id ticket, span credential, span host, u16 port, digest policy, span rule: approved -> executing, and the intent, in one transaction */
    M_CLAIMED = 84,        /* Lg>J bool ok, u8 state, digest, span signature, wire_request, u64 size, span inline or fd: the bytes first held. Not ok: nothing after state */
    M_INTENT = 85,         /* J>Lg wire_record: an allowed unsafe request, before it is sent */
    M_INTENT_OK = 86,      /* Lg>J bool ok: false, the store cannot keep it; nothing may be sent */
    M_SENT_MARK = 87,      /* J>Lg */
    M_OUTCOME = 88,        /* J>Lg wire_record, id ticket (none: all zero), u8 outcome, u16 status, u64 out, u64 in, bool delivered, bool kept, [wire_answer, u64 size, span inline] */
    M_AUDIT = 89,          /* J>Lg wire_record: decided without being sent (deny, refusal) */
    M_TICKET_VOID = 90,    /* J>Lg id ticket, span why: the policy of now would not hold this request so: pending or approved -> cancelled */
    M_SANDBOX = 91,        /* Lg>J id 0; wire_sandbox, bool gone */
    M_STORE = 92,          /* Lg>J id 0; bool ok: when it changes, and as a sign of life every second it is spoken to */
    /* desk and ledger; id: the desk's own */
    M_DECIDE = 100,       /* D>Lg id ticket, u8 (1 approve, 2 deny, 3 cancel), span operator, span channel, span reason, digest shown */
    M_DECIDED = 101,      /* Lg>D u8 (0 store failed, 1 done, 2 not pending any more, 3 no such ticket, 4 expired, 5 another digest, 6 a reason is required), u8 state */
    M_BODY_GET = 102,     /* D>Lg id ticket */
    M_BODY_IS = 103,      /* Lg>D bool ok, u64 size, span inline or fd */
    M_SANDBOX_PUT = 104,  /* D>Lg, P>Lg wire_sandbox */
    M_SANDBOX_RM = 105,   /* D>Lg span name, bool end_session: true cancels its tickets too */
    M_SANDBOX_DONE = 106, /* Lg>D bool ok, span why */
    M_EVENT = 107,        /* Lg>D id: sequence; span kind ("ticket", "sandbox"), span subject */
    M_NOTE = 108,         /* D>Lg, P>Lg, K>Lg span kind, span json: an audit record of an operator's or the parent's act */
    /* desk and parent; id: the desk's own */
    M_SANDBOX_OPEN = 110,   /* D>P span name: make its Unix listener */
    M_SANDBOX_OPENED = 111, /* P>D bool ok, span path or why */
    M_SANDBOX_CLOSE = 112,  /* D>P span name */
    M_RELOAD = 113,         /* D>P */
    M_RELOADED = 114,       /* P>D bool ok, span text */
    M_STATUS = 115,         /* D>P; P>D span json */
    M_SIGNIN = 116,         /* D>P span url: a sign-in link that opens once, for the terminal */
    /* carrier and front */
    M_ANSWER = 120,        /* C>F wire_answer, bool end, span first body bytes */
    M_ANSWER_BODY = 121,   /* C>F raw bytes, within the credit (the first 256 KiB need none) */
    M_ANSWER_END = 122,    /* C>F bool ok: false, cut the connection without an end mark */
    M_ANSWER_CREDIT = 123, /* F>C u32 */
    /* carrier and resolver; id: the carrier's own */
    M_RESOLVE = 130,   /* span host, u16 n, n x span cidr allowed although private */
    M_ADDRESSES = 131, /* u8 n, n x (u8 family 4 or 6, span bytes); n 0: span code, span why */
};

enum { BODY_INLINE_MAX = 256 * 1024, ANSWER_WINDOW = 256 * 1024, BODY_WINDOW = 256 * 1024, ANSWER_KEPT_MAX = 250 * 1024 /* fits into one M_REPLY with its head */ };
#endif
