/* Viewers as they are: jobs of the parent's, each with a channel to the desk. */
#ifndef WEB_APPROVAL_PICTURES_VIEWERS_H
#define WEB_APPROVAL_PICTURES_VIEWERS_H

#include "web-approval/pictures/pictures.h"

extern const struct viewer_ops viewers;
/* M_JOB_NONE: the parent could not start it. */
void viewers_none(struct desk *d, uint64_t id);

#endif
