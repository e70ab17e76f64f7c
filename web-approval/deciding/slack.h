/* POST /slack/NAME: somebody pressed Deny in Slack, in a message to the one of this name of notify:. That Slack says
 * so, and which operator it is, the keeper finds out, which has the secret that signs it; Slack has its answer before
 * the ledger is asked. It denies as that operator, as the page does; nothing that comes this way approves. */
#ifndef WEB_APPROVAL_DECIDING_SLACK_H
#define WEB_APPROVAL_DECIDING_SLACK_H

#include "web-approval/desk.h"

enum {
    SLACK_AT_ONCE = 4, /* that are looked at by the keeper; anybody can send some */
    SLACK_ASKS = 8     /* and with those that the ledger is asked about */
};

void page_slack(struct exchange *x);
/* Does what this asks for come from Slack's servers, so that it has no page of ours behind it, and no cookie counts?
 */
bool slack_is(const struct http_head *h);

#endif
