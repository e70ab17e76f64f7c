/* Every message between processes, once. Numbers are never reused; a change of meaning raises MSG_VERSION
 * (common/msg.h). Fields are listed in the order in which msg_put_* writes and msg_get_* reads them; what more than
 * one role encodes has its pair of functions in proxy/wire.h. id of a frame: the exchange (xid) unless said
 * otherwise; a front makes it: its instance number << 40 | a counter, never reused within a boot. Judge and carrier
 * refuse an xid whose upper bits are not the channel's front. Who talks to whom (parent makes the socketpairs, M_PEER
 * hands them over): front-judge front-carrier judge-carrier judge-keeper judge-ledger judge-lobby keeper-carrier
 * keeper-ledger carrier-resolver desk-ledger keeper-fetcher fetcher-resolver desk-warden warden-ledger dock-desk
 * desk-keeper broker-desk, and all with parent. Those of started sandboxes are in proxy/msgs_box.h */
#ifndef PROXY_MSGS_H
#define PROXY_MSGS_H
#include "proxy/msgs_box.h"
#include "proxy/words.h" /* clang-format off */
enum msg_type {
    /* parent and any role; id 0 */
    M_CONFIG = 1,  /* P>R u32 MSG_VERSION, u16 n, n x (span key, span value); descriptors by role */
    M_READY = 2,   /* R>P */
    M_PEER = 3,    /* P>R u8 role, u64 instance, span info, u64 link: the number of this channel; fd */
    M_STOP = 4,    /* P>R end now, in order */
    M_IMAGE = 5,   /* P>judge,keeper,desk  digest; fd of a memfd with all seals */
    M_TRUST = 6,   /* P>C on a reload: bool roots, bool crl; an fd for each that is there: the file of roots, of revocation lists */
    M_SYNC = 7,    /* P>R id: its own; R>P the same id: all that came before it was acted on. Asked after a reload, and now and then */
    M_LOST = 8,    /* R>P u8 role, u64 instance, u64 link: that channel to that peer has ended; P makes another one if both live */
    M_LOG = 9,     /* P>R u8 enum log_level, u64 from, u64 upto (common/log.h): what is logged from now on */
    M_TRACE = 16,  /* P>R id: its own; u64 exchange; R>P the same id: u16 n, n x (u64 ns, span what, span came) (common/trace.h) */
    M_RECORD = 17, /* P>J id 0; u64 from, u64 upto: record these exchanges; both 0: none */
    M_RECORDED = 18, /* J>P id 0; raw bytes of the recording, for its file */
    M_TRUST_FILES = 19, /* P>fetcher on a reload: span path of the roots, span path of the revocation lists (empty: none) */
    M_WELCOMED = 24, /* J>P id 0; once: the ledger's first word on its store has come, and before it who the sandboxes are */
    /* parent, lobby and front; id 0. kind: enum listen_kind of proxy/words.h */
    M_LISTEN = 10,   /* P>lobby,front,desk,keeper,resolver u8 kind, span name, [lobby: wire_listener]; fds */
    M_ADOPT = 11,    /* P>F u8 way, u16 port (captured: of the original destination, else 0), span proxy_authorization, span bytes already read; fd */
    M_HANDOVER = 12, /* lobby>P u8 way, u16 port, span sandbox, span proxy_authorization, span bytes already read; fd */
    M_IDLE = 13,     /* F>P u64 adopted so far; P answers M_STOP when it has sent no more than that */
    M_REFUSED = 14,   /* lobby,F>P u16 n, n x (span listener, span code, u32 how many more): at most every 250 ms */
    M_FRONT_OVER = 15, /* J>P u64 instance: the session that front was bound to is over; P ends it */
    /* lobby and judge; id: the lobby's own */
    M_IDENTIFY = 20, /* span token */
    M_IDENTITY = 21, /* u8 enum identity of proxy/words.h, span sandbox */
    /* front and judge */
    M_FRONT_KEY = 30, /* F>J id 0; span spki */
    M_CONNECT = 31,   /* F>J span scheme, span host, u16 port */
    M_LEAF = 32,      /* J>F span leaf der, span ca der; both empty: refused, then wire_reply */
    M_REQUEST = 33,   /* F>J wire_request, span countersign_reason, u8 body (0 none, 1 inline, 2 to come; and REQUEST_FORWARDED), u64 declared length or ~0, span inline body */
    M_BODY_WANTED = 34, /* J>F u8 mode (1 stream, 2 whole), u64 max */
    M_BODY = 35,        /* F>J>C raw bytes, within the credit */
    M_BODY_END = 36,    /* F>J>C bool ok: false, it was cut short or malformed */
    M_BODY_CREDIT = 37, /* C>J>F u32 more bytes may come */
    M_BODY_WHOLE = 38,  /* F>J u64 size, span inline (size <= 256 KiB) or fd of a sealed memfd; size > max and neither: too large */
    M_REPLY = 39,       /* J>F wire_reply: the gateway's own answer; ends the exchange for the front */
    M_CANCEL = 40,      /* F>J, J>C the client is gone; J>C also: writes are frozen. A write that was sent is seen to its end all the same. J>C u8 1: but for the answer, which ends where it is: the lease it was asked for with is dead */
    M_FRONT_REFUSED = 41, /* F>J u8 enum walk_step, span code, span scheme, span host (both empty: unknown), u16 port: refused before it could be asked about; for the audit */
    M_STEP = 43,          /* F>J u64 born, u32 number: what is said next of this id is of this step of its sandbox (struct wire_step) */
    M_MESSAGE = 42,       /* F>J>C after M_SWITCH: u8 enum ws_op (F>J also WS_NONE: the front refused what came, with this code), u16 close code, then the message's bytes; each costs its bytes and WS_COST of the body's credit, the last may overdraw it */
    /* judge and carrier */
    M_UPSTREAM = 50, /* J>C id 0; wire_upstream */
    M_FORWARD = 51,  /* J>C wire_forward, u64 size or ~0, span inline; fd */
    M_NEED_RELEASE = 52, /* C>J u64 version of the value that the upstream refused (0: there was none): no live credential, ask the keeper for this xid; J>C nothing: of one that was refused there is no other, hand the answer on */
    M_SENT = 53,         /* C>J the first byte of the request has left (not of repeatable ones) */
    M_RESULT = 54,       /* C>J u8 outcome (enum outcome), u16 status, u64 bytes out, u64 bytes in, u64 bytes of its egress, bool head_relayed, span code, span why, span range: that the upstream was asked for in place of the request's (empty: none), at most 96 bytes */
    M_EGRESS_ASK = 343,  /* C>J u64 so many more bytes, at least, need to pass (0: it goes on); answered, as M_FORWARD of what is metered, with M_EGRESS_GIVE */
    M_EGRESS_GIVE = 344, /* J>C u64 so many more bytes may pass, span code: of 0, why there are none, and it ends */
    M_WS_CLOSE = 56,     /* J>C u16 code, span words: end the WebSocket; the client is told this */
    M_SWITCHED = 57,     /* C>J beside M_SWITCH: the upgrade was answered with a verified 101 */
    M_WS_ENDED = 58,     /* C>J before M_RESULT of a WebSocket: u64 messages out, u64 messages in, u16 the code it was closed with (0: none) */
    M_KEPT = 55,         /* C>J before M_RESULT: wire_answer, u64 size, span inline: the answer nobody took, of a request that is sent at most once */
    /* keeper; id: xid or the asker's own */
    M_MINT = 70,           /* J>K span host, span spki */
    M_MINTED = 71,         /* K>J span leaf der, span ca der (empty: refused) */
    M_RELEASE = 72,        /* J>K span credential (may be empty: scrub patterns only), span scheme, span host, u16 port, span path, bool held, digest, span signature (64 bytes if held), digest place (identity.h), u64 version of its value that the upstream refused (0: none), id lease that the request brought (all zero: none), bool sign: the credential signs, then wire_sign */
    M_RELEASE_FAILED = 73, /* K>J span code, span why */
    M_CREDENTIAL = 74,     /* K>C u32 ttl ms, span scheme, span host, u16 port, digest place (as asked), span credential, u8 enum slot_kind (common/http/slot.h; a cookie is a header), span header (of SLOT_HEADER alone), span value (empty: a client certificate alone), span PEM of a client certificate (empty: none), u16 n, n x (span secret to scrub, bool refuse the answer), u8 n, n x (span name, span value): fields of a signature, then header and value are empty, u32 bytes of M_SIGNED that came before it, u64 version of the value (0: its source need not be asked again) */
    M_SIGNED = 160,        /* K>C raw, WIRE_CHUNK_SIGNED bytes each: signatures of the body's chunks, for the M_CREDENTIAL that follows */
    M_LEDGER_KEY = 75,     /* ledger>K span Ed25519 public key, 32 bytes */
    M_DATA_KEY = 76,       /* K>ledger span 32 bytes for held bodies */
    M_SECRETS = 77,        /* K>P>desk u16 n, n x span name: what the sealed store and the sources can give */
    M_SOURCE = 78,         /* P>K digest policy, u8 enum source_kind (file or systemd), span path or name; fd: a source file of that policy, opened by the parent, unread; in use from the M_IMAGE that follows */
    M_CA = 79,             /* K>P span pem */
    /* judge and ledger */
    M_TICKET_OPEN = 80,    /* J>Lg wire_ticket, limits (wire_ticket.h; what a ticket reserves counts from its claim on, and while it is open always; freed when it ends unsent), u64 size, span inline or fd: the body */
    M_TICKET = 81,         /* Lg>J wire_ticket_state: of the ticket opened or joined; of none, for "over-limit": wire_over follows */
    M_TICKET_CHANGED = 82, /* Lg>J id 0; wire_ticket_state */
    M_CLAIM = 83,          /* J>Lg id ticket, span credential, span host, u16 port, digest policy, span rule, digest terms (identity.h), wire_step of who claims it, id lease: approved, or pending and a grant fits -> executing, a use of that, and the intent, in one transaction */
    M_CLAIMED = 84,        /* Lg>J bool ok, u8 state, digest, span signature, wire_request, u64 size, span inline or fd: the bytes first held. Not ok: nothing after state */
    M_INTENT = 85,         /* J>Lg wire_record, digest join (zero: none of it can become a hold), limits: an allowed unsafe request, or one with limits, before it is sent; reserves them. A ticket this one would join (of this session and join key, live, with an answer that waits, or denied a moment ago) makes all of them past */
    M_INTENT_OVER = 94,    /* Lg>J wire_over: nothing was written or reserved; of none: the store failed */
    M_INTENT_OK = 86,      /* Lg>J bool ok: false, the store cannot keep it; nothing may be sent */
    M_SENT_MARK = 87,      /* J>Lg */
    M_OUTCOME = 88,        /* J>Lg wire_record, id ticket (none: all zero), u8 outcome, u16 status, u64 out, u64 in, bool delivered, bool kept, bool told: answer when it is written, bool its client left and was told nothing, [wire_answer, u64 size, span inline]. One that is written already changes nothing */
    M_OUTCOME_OK = 98,     /* Lg>J it is written: the judge need not say it again to the next ledger */
    M_AUDIT = 89,          /* J>Lg wire_record: decided without being sent (deny, refusal) */
    M_TICKET_VOID = 90,    /* J>Lg id ticket, span why: the policy of now would not hold this request so: pending or approved -> cancelled */
    M_TICKET_CLIENT = 137, /* J>Lg id ticket, bool waits: false, the last client that waited for it is gone; u64 ms: after which it is told to ask again */
    M_REVIEW = 95,         /* J>Lg id: number of the policy: it is another now; show me what is open */
    M_TICKET_REVIEW = 96,  /* Lg>J id: as asked; one of them, the next when this one was answered: wire_review, u64 size, span inline or fd: the bytes first held */
    M_REVIEWED = 97,       /* J>Lg id: as asked; id ticket, bool keep: false, the policy of now would not hold it so: pending or approved -> cancelled */
    M_TICKET_LATER = 280,  /* Lg>J id: the exchange that sends it, of no front (XID_LATER); wire_review, wire_later, u64 size, span inline or fd: approved, and nobody need wait for it: claim it, send it, keep its answer. Said again as long as it is approved */
    M_TICKET_ASK = 281,    /* J>Lg id ticket, span session, bool answer: what has become of it? answer: and what was answered */
    M_TICKET_IS = 282,     /* Lg>J u8 (0 this session has no such ticket, 1 it has, 2 it cannot be read now); of 1: wire_ticket_state, bool the gateway sends it itself, u64 tries that sent nothing, u64 Unix ms until which its answer is kept (0: it is not); with has_answer as M_TICKET */
    M_SANDBOX = 91,        /* Lg>J id 0; wire_sandbox, bool gone */
    M_WEBSOCKET = 93,      /* J>Lg wire_record, u64 messages out, u64 messages in, u64 bytes out, u64 bytes in, u16 close code: its end */
    M_STORE = 92,          /* Lg>J id 0; bool ok: when it changes, and as a sign of life every second it is spoken to */
    M_EGRESS = 340,       /* Lg>J id 0; wire_egress (proxy/egress/egress.h): one of them, before the sandboxes of a welcome */
    M_EGRESS_PUT = 341,   /* J>Lg id: the judge's own; wire_egress: so much is used, or may be before this is said again. Of an earlier epoch: nothing */
    M_EGRESS_KEPT = 342,  /* Lg>J id: as asked; bool it is written down */
    M_HEARD = 139,         /* Lg>J id: a number; J>Lg the same at once: all that came before it is in force. Only then does the desk hear of it */
    /* desk and ledger; id: the desk's own */
    M_DECIDE = 100,       /* D>Lg id ticket, u8 (1 approve, 2 deny, 3 cancel), span operator, span channel, span how they had signed in, span reason, digest shown, digest of the facts that were (all zero: not said; wire_facts_digest), span what their passkey signed (empty: nothing; proxy/passkey/), u32 so many more of its shape (0: none), u64 for so many ms, span in whose place, as their deputy (empty: their own) */
    M_DECIDED = 101,      /* Lg>D u8 (0 store failed, 1 done, 2 not pending any more, 3 no such ticket, 4 expired, 5 another digest, 6 a reason is required, 7 no such grant may be given with it, 8 written down, others must agree, 9 it is their own, 10 people alone count, 11 they agreed already, 12 a passkey is needed, 13 a gate has not answered yet, 14 they are not that one's deputy, 15 with a passkey, so in nobody's place), u8 state */
    M_PASSKEY_ADD = 291,   /* D>K span name, span code, span clientDataJSON, span attestationObject; answered with M_PASSKEY_SAID */
    M_PASSKEY_CHECK = 292, /* D>K span name (empty: anybody's), digest challenge, span proof (span id, span clientDataJSON, span authenticatorData, span signature); answered with M_PASSKEY_SAID */
    M_PASSKEY_SAID = 293,  /* K>D bool ok, span whose, span why not */
    M_PASSKEYS_FORGET = 297, /* D>K span name: who has it from now on has none of another's; answered with M_PASSKEY_SAID */
    M_PASSKEYS = 294,      /* K>D id 0; u16 n, n x (span name, span id, u64 created ms): when the desk comes, and when they change */
    M_OIDC = 295,         /* D>K span code, span verifier (RFC 7636), span nonce: what a browser brought back from the provider; answered with M_OIDC_SAID */
    M_OIDC_SAID = 296,    /* K>D bool ok, span the claim that says who it is, span why not */
    M_OPERATOR_PUT = 290, /* D>Lg u8 enum operator_act (store/ops.h), span by, span name, span uid, span groups, span password as crypt(3) made it; answered with M_SANDBOX_DONE */
    M_DEPUTY_PUT = 400,   /* D>Lg span by, span in whose place, span deputy (empty: nobody any more), u64 for so many ms, bool over the control socket; answered with M_SANDBOX_DONE */
    M_GATE = 300,         /* Lg>K id: its number; id ticket, digest of the gate (proxy/identity.h), span name, span input (JSON whose end is left out: ,"base64":..,"complete":..}}), span its body in base64 (empty: none), bool that is all of it: ask this gate once */
    M_TELL_PLACE = 310,   /* P>K wire_tell_place: one that is told outside the page; as it starts, one message each */
    M_TELL = 311,         /* Lg>K id: its number; span name, digest of what it is (wire_tell), span id of the message, span title, span body: tell them, once */
    M_TOLD = 312,         /* K>Lg id: the same number; span id of the message, u8 enum tell_outcome, span words */
    M_TELL_TEST = 313,    /* D>Lg span name, span operator: tell them something now; answered with M_SANDBOX_DONE */
    M_SLACK = 314,        /* D>K span name of who is told, span timestamp, span signature, span body: what came back from there */
    M_SLACK_SAID = 315,   /* K>D u8 enum slack_said of proxy/words.h, u64 number of the answer to it, span operator (empty: nobody whom the configuration names), span ticket, span why not */
    M_SLACK_ANSWER = 316, /* D>K id 0; u64 number, bool in place of the message, for all to see, span words: once */
    M_GATED = 301,        /* K>Lg id: the same number; id ticket, span name, u8 enum gate_said or GATE_NOT_ASKED, span words: what it said, or why it said nothing */
    M_LOOK = 320,         /* D>Lg id ticket, bool they are looking at it (false: not any more), bool also if somebody else says so, span operator, span channel; Lg>D u8 enum looked (store/people/ops_looking.h), span whose it was before, or is */
    M_GRANT_REVOKE = 155, /* D>Lg id grant, span operator, span reason; Lg>D bool ok, span why */
    M_AUDIT_KEY = 132,    /* Lg>D id 0; span public half (32 bytes) of the key that signs the audit: when it is known */
    M_BODY_GET = 102,     /* D>Lg id ticket */
    M_BODY_IS = 103,      /* Lg>D bool ok, u64 size, span inline or fd */
    M_SANDBOX_PUT = 104,  /* D>Lg, P>Lg wire_sandbox */
    M_SANDBOX_RM = 105,   /* D>Lg span name, bool end_session: true ends a session of a name of its own too (tickets, kept answers) */
    M_SANDBOX_TOKEN = 118, /* D>Lg span name, digest of one more token, bool alone: true ends the earlier ones; answered like M_SANDBOX_PUT */
    M_SANDBOX_ENDED = 197, /* D>Lg, W>Lg span name, u64 generation: this one of the warden's is over, and its leases with it (another generation: nothing); the desk is answered with M_SANDBOX_DONE */
    M_SANDBOX_PAUSED = 207, /* D>Lg span name, u64 generation: the leases of this one of the warden's end (another generation: nothing); answered with M_SANDBOX_DONE */
    /* those of the warden's that are idle (proxy/ledger/store/idle/); each answered with M_SANDBOX_DONE */
    M_SANDBOX_IDLE = 430,      /* D>Lg span name, u64 generation that it was paused as, span id of the checkpoint that has its files, span wire_box, u64 cpu percent, bool strict, u64 ms of its time that are left: from then on it is idle */
    M_SANDBOX_WAKE = 431,      /* D>Lg wire_sandbox: its files are restored, as its next generation; idle again when that ends before ... */
    M_SANDBOX_AWAKE = 432,     /* D>Lg span name, u64 generation: ... it has them (another generation, or none: nothing) */
    M_SANDBOX_IDLE_OVER = 433, /* D>Lg span name: it was destroyed (one that is not idle: nothing) */
    M_SANDBOX_RUN = 198,   /* W>Lg to each new ledger; u16 n, n x (span name, u64 generation): those of the warden's that there are, any other is over; u32 n, n x id: runs whose end it will tell, of any other it is unknown; answered with M_SANDBOX_DONE, before which the warden hears no desk */
    M_SANDBOX_DONE = 106, /* Lg>D, Lg>W bool ok, span why */
    M_EVENT = 107,        /* Lg>D id: sequence; span kind ("ticket", "sandbox"), span subject; or id 0, "refused" and no subject: records of what was refused or not sent were written */
    M_FREEZE = 109,       /* D>Lg bool on, span operator, span reason: kept over restarts; Lg>D bool ok, span why; Lg>J id 0 bool on, when it changes and at once to a new judge */
    M_NOTE = 108,         /* D>Lg, P>Lg, K>Lg span kind, span json: an audit record of an operator's or the parent's act */
    /* desk and parent; id: the desk's own */
    M_SANDBOX_OPEN = 110,   /* D>P span name, bool captured: make its Unix listener (captured: LISTEN_CAPTURED_UNIX) */
    M_SANDBOX_OPENED = 111, /* P>D bool ok, span path or why */
    M_SANDBOX_CLOSE = 112,  /* D>P span name */
    M_RELOAD = 113,         /* D>P span operator */
    M_ROLLBACK = 119,       /* D>P span operator, span first digits of a version's digest (empty: back to the files); answered by M_RELOADED */
    M_VERSIONS = 117,       /* D>P; P>D span json: the versions of the policy that are kept */
    M_POLICY_NOTICE = 99,   /* P>D id 0; span version (empty: the policy is not pinned), span who, u64 since; span how (empty: the last change was not refused), span who, u64 when, span why */
    M_RELOADED = 114,       /* P>D bool ok, span text */
    M_STATUS = 115,         /* D>P; P>D span json */
    M_LOG_SET = 133,        /* D>P bool change: false, only say what is in force; u8 enum log_level (LOG_NONE: as it is), bool follow, span sandbox or exchange (empty: none), bool record what the judge hears of them, u64 for how many ms (0: until the next reload); P>D bool ok, span json or why */
    M_TRACE_OF = 134,       /* D>P span exchange; P>D bool ok, span json or why */
    M_SIGNIN = 116,         /* D>P span url: a sign-in link that opens once, for the terminal */
    /* carrier and front */
    M_ANSWER = 120,        /* C>F wire_answer, bool end, span first body bytes */
    M_ANSWER_BODY = 121,   /* C>F raw bytes, within the credit (the first 256 KiB need none) */
    M_ANSWER_END = 122,    /* C>F bool ok: false, cut the connection without an end mark */
    M_ANSWER_CREDIT = 123, /* F>C u32 */
    M_SWITCH = 124,        /* C>F wire_answer of a verified 101: from now on messages, until one side's M_ANSWER_END or M_CANCEL */
    M_ANSWER_MESSAGE = 125, /* C>F u8 enum ws_op (WS_NONE: goes on with the last), bool last, u16 close code, then bytes of the message, searched; each costs its bytes and WS_COST of the answer's credit */
    /* leases (common/lease/wire_lease.h); id: the asker's own */
    M_LEASE_MAKE = 140,   /* Lg>K id lease, u8 enum lease_format */
    M_LEASE_MADE = 141,   /* K>Lg span tag, span text, span secret (empty: it is no pair); text empty: it cannot be made */
    M_LEASE_ISSUE = 142,  /* D>Lg wire_lease without id, text, tag and session, parent all zero: a new one of this sandbox; M_LEASE_NARROW: */
    M_LEASE_NARROW = 143, /* D>Lg id lease, bool child: a new one that came from it, u64 expires (0: as it), span operator, one layer */
    M_LEASE_GIVEN = 147,  /* Lg>D to both: bool ok, span why, id lease, u64 expires, span text, span secret (both empty: narrowed in place): said this once */
    M_LEASE_REVOKE = 144, /* D>Lg id lease, span operator, span reason; Lg>D bool ok, span why */
    M_LEASE = 145,        /* Lg>J id 0; u16 n, n x wire_lease: as they are now; live ones, and dead ones for LEASE_DEAD_MS */
    M_LEASE_VERIFY = 148,   /* J>K wire_signed: did who has the secret half of this lease sign that? Of a request the judge waits with */
    M_LEASE_NARROWED = 199, /* J>K id lease, u8 enum lease_format, span layers, digest: is that the MAC of what its holder made of it (common/lease/narrowed.h)? */
    M_LEASE_VERIFIED = 149, /* K>J u8 enum wire_verified: to both */
    M_LEASE_STUB = 195,     /* J>Lg id: the exchange; span sandbox, span credential, digest meaning, u8 enum lease_format: the lease that stubs answer this sandbox with, the one there is or a new one */
    M_LEASE_STUBBED = 196,  /* Lg>J id: as asked; bool ok, span why, id lease, u64 expires, span text, span secret (empty: it is no pair) */
    M_LEASE_LEAK = 146,   /* J>Lg id: the exchange; id lease, span sandbox, span session, span host, u16 port, span what was found, bool freeze */
    M_LEASE_TAKE = 194,   /* J>Lg id: the exchange; u8 n, n x wire_lease: of tokens in its answer; Lg>J bool ok: all are written down, span why */
    /* tokens in answers (proxy/lease/wire_swap.h); id: the exchange */
    M_SWAP = 190,      /* C>K u8 n, n x (span credential, span token, span key, span session token (both empty but of keys to sign with), u64 for how many ms): keep these */
    M_SWAPPED = 191,   /* K>C u8 n (0: refused), span why, n x (wire_swapped, span text, span secret) */
    M_SWAP_DROP = 192, /* C>K forget those of this exchange */
    M_TOKEN_END = 200, /* J>K id 0; id lease, as many as there are: they are dead; forget the tokens behind them */
    M_SWAP_TAKE = 193, /* C>J u8 n, n x wire_swapped; J>C bool ok: the answer may go on with them, span why */
    /* keeper, fetcher and its jobs, which are processes of their own; id: the asker's own */
    M_FETCH = 150,    /* K>F wire_fetch; F>job u8 n, n x (u8 k, k x (u8 family, span bytes)): what may be dialled of each wire_place, span path of the roots, wire_fetch */
    M_FETCHED = 151,  /* job>F>K wire_fetched */
    M_JOB = 152,      /* F>P, D>P u8 enum job_kind; fd: its descriptor 3, a channel to who asks; id: theirs */
    M_JOB_NONE = 153, /* P>F, P>D it could not be started */
    M_JOB_END = 154,  /* F>P, D>P it is over: killed with all that it started */
    M_VIEW = 156,     /* D>job; fds: a picture, sealed, and an empty memory file for the PNG */
    M_VIEWED = 157,   /* job>D viewed_put (web-approval/viewer/viewed.h); the PNG is written and sealed by then */
    /* carrier, fetcher and resolver; id: the asker's own */
    M_RESOLVE = 130,   /* span host, u16 n, n x span cidr allowed although private */
    M_ADDRESSES = 131, /* u8 n, n x (u8 family 4 or 6, span bytes); n 0: span code, span why */
};
#endif
