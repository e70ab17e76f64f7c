/* What spans come to: histograms of OpenTelemetry, since the process began (cumulative), as OTLP has them in JSON. So
 * many of them are told apart, by names that the operator chose. */
#ifndef BROKER_OTLP_METRICS_H
#define BROKER_OTLP_METRICS_H

#include "broker/otlp/names.h"
#include "broker/otlp/otlp.h"

enum {
    OTLP_SERIES_MAX = 256, /* behind them, one of each metric for all the rest */
    OTLP_BOUNDS = 14
};

struct otlp_series {
    enum otlp_metric metric;
    bool output, rest; /* of tokens: of an answer; rest: of all that is not told apart */
    char provider[OTLP_TEXT_MAX + 1], name[OTLP_TEXT_MAX + 1]; /* name: of the model, or of the tool */
    const char *error;                                         /* NULL: it went well */
    uint64_t bucket[OTLP_BOUNDS + 1], n, sum;                  /* sum: ms, or tokens */
};
struct otlp_metrics {
    uint64_t since_ms;
    size_t n;
    struct otlp_series series[OTLP_SERIES_MAX + OTLP_METRICS];
};

/* One more span is over. False: nothing of it is measured. Its error is kept as it is. */
bool otlp_measure(struct otlp_metrics *m, const struct otlp_span *s);
/* The body of a request with all of them, m->n points. A failed buffer: it has no room. */
void otlp_put_metrics(struct dynbuf *out, const struct otlp_who *who, const struct otlp_metrics *m, uint64_t now_ms);

#endif
