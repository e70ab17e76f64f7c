/* The policy image, for what the page and the API say about credentials. */
#ifndef WEB_APPROVAL_IMAGE_H
#define WEB_APPROVAL_IMAGE_H

#include "web-approval/desk.h"

/* Map a sealed image (takes fd over). -1, and the old one stays: it is no longer what is in force. */
int image_take(struct desk *d, int fd);
/* The index of a credential by name, or -1. */
int image_credential(const struct desk *d, struct span name);

#endif
