/* The forms in which a secret is looked for, a row each: its name, what makes it (forms.c), and what SCRUB.md says of
 * it. tests/unit/carrier/test_scrub_forms.c holds the rows, SCRUB.md and THREATS.md together. Pure. */
#ifndef CARRIER_SCRUB_FORMS_H
#define CARRIER_SCRUB_FORMS_H

#include "common/span.h"

#define SCRUB_FORMS(X)                                                                                               \
    X("literal", literals, "as it is")                                                                               \
    X("base64", base64s,                                                                                             \
      "inside any text, at all three alignments, standard and URL-safe; at most one character at each end, which "   \
      "also holds a neighbour's bits, is left")                                                                      \
    X("escaped base64", base64s_escaped, "that base64 with its `+` and `/` as the rows below write them")            \
    X("percent", percents,                                                                                           \
      "upper or lower hex: RFC 3986, path, encodeURIComponent, encodeURI and form encoders, or every byte")          \
    X("hex", hexes, "upper or lower")                                                                                \
    X("JSON", jsons,                                                                                                 \
      "strings as widespread encoders write them by default (.NET, Go, Gson, PHP, Python, Rails, Django, Jinja): "   \
      "`\\\"`, `\\\\`, `\\/`, `\\u0026`, `\\u002B`")                                                                 \
    X("JSON numbers", json_numbers, "every character as `\\u` in one case")                                          \
    X("HTML", htmls,                                                                                                 \
      "and XML text as widespread encoders write it (Go, .NET, Handlebars, Mustache, OWASP): "                       \
      "`&amp; &lt; &gt; &quot; &#34; &#39; &#039; &#x27; &apos;`, `&#43;`, `&#x2B;`, `&#x2F;`, `&#61;`")

struct scrub_form_kind {
    const char *name, *says;
};

/* The i-th row; NULL past the last. */
const struct scrub_form_kind *scrub_form_kind(size_t i);
/* The forms of the kind of row i, of one secret, each given to emit once or more; -1 when emit or memory fails. */
int scrub_forms_of(size_t i, struct span secret, int (*emit)(void *arg, struct span form), void *arg) MUSTCHECK;
/* Those of all rows. */
int scrub_forms(struct span secret, int (*emit)(void *arg, struct span form), void *arg) MUSTCHECK;

#endif
