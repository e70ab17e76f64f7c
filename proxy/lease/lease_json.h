/* The bounds of a lease as people and programs read them: in the audit, and in the answers of the API. */
#ifndef PROXY_LEASE_LEASE_JSON_H
#define PROXY_LEASE_LEASE_JSON_H

#include "common/json/json.h"
#include "common/lease/wire_lease.h"

/* An array with an object a layer; what is not bound is not in it. */
void lease_json_layers(struct jsonw *w, const struct wire_layer *v, size_t n);

#endif
