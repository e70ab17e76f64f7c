#ifndef PROXY_WALK_H
#define PROXY_WALK_H
#endif
