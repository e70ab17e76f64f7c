/* An upstream's record: the files it names are part of the image, since whoever dials has no way to a file. */
#include "policy/load/emit/emit.h"
#include "policy/load/read/scalar.h"

/* As proxy/wire.c carries them. */
enum { CA_TEXT_MAX = 64 * 1024, CRL_TEXT_MAX = 128 * 1024 };

/* *why: words of the file although it is there (policy_fetch_fn). */
static int fetch_pem(struct emit *w, const struct item *file, const char *what, struct span mark, struct span *pem,
                     struct err *why)
{
    struct span name = span_first(file->text, 100), rest = file->text, part;
    while (rest.n) {
        (void)span_cut(rest, '/', &part, &rest);
        if (span_eq(part, SPAN(".."))) {
            load_problem(
                w->l, file->at, "P011",
                "the %s file %.*s: it lies in the folder of this file or below, or its path is absolute, without "
                "\"..\"",
                what, SPAN_FMT(name));
            return -1;
        }
    }
    if (w->l->fetch == NULL || w->l->fetch(w->l->fetch_arg, POLICY_REF_CA, emit_beside(w, file), pem, why) != 0) {
        load_problem(w->l, file->at, "P011", "the %s file %.*s is not there: %.300s", what, SPAN_FMT(name),
                     why->text);
        return -1;
    }
    if (span_find(*pem, mark) == pem->n) {
        load_problem(w->l, file->at, "P011", "the %s file %.*s has no \"%.*s\"", what, SPAN_FMT(name),
                     SPAN_FMT(mark));
        return -1;
    }
    return 0;
}

static int fetch_ca(struct emit *w, const struct m_upstream *u, struct span *pem)
{
    const struct item *file = u->ca.at ? &u->ca : &u->tls.ca;
    struct err why = {""};
    if (file->at == NULL)
        return 0;
    if (fetch_pem(w, file, "CA", SPAN("-----BEGIN CERTIFICATE-----"), pem, &why) != 0)
        return -1;
    if (pem->n > CA_TEXT_MAX) {
        load_problem(w->l, file->at, "P017",
                     "the CA file has %zu bytes, more than %d: name the few roots this upstream needs", pem->n,
                     CA_TEXT_MAX);
        return -1;
    }
    if (why.text[0])
        load_problem(w->l, file->at, "P121", "%.*s: %s; certificates below it are checked without X509_STRICT",
                     SPAN_FMT(span_first(file->text, 100)), why.text);
    return 0;
}

/* Several lists, one for each issuer of the chain, become one text. */
static int fetch_crls(struct emit *w, const struct items *files, struct span *all)
{
    uint8_t *to = files->n ? arena_alloc(&w->l->a, CRL_TEXT_MAX) : NULL;
    size_t n = 0;
    for (size_t i = 0; i < files->n; i++) {
        struct span pem = SPAN_NONE;
        struct err why = {""};
        if (fetch_pem(w, &files->v[i], "CRL", SPAN("-----BEGIN X509 CRL-----"), &pem, &why) != 0)
            return -1;
        if (to == NULL || pem.n + 1 > CRL_TEXT_MAX - n) {
            load_problem(
                w->l, files->v[i].at, "P017",
                "the revocation lists of this upstream have more than %d bytes: name those of its issuers only, or "
                "put the lists into crl: of countersign.yaml",
                CRL_TEXT_MAX);
            return -1;
        }
        memcpy(to + n, pem.p, pem.n);
        n += pem.n;
        to[n++] = '\n';
    }
    *all = span_of(to, n);
    return 0;
}

static struct img_range put_pins(struct emit *w, const struct items *pins)
{
    uint32_t first = emit_count(w, IMG_STR);
    for (size_t i = 0; i < pins->n; i++) {
        uint8_t *raw = arena_alloc(&w->l->a, SCALAR_PIN_BYTES);
        if (raw == NULL || scalar_pin(pins->v[i].text, raw) != NULL) {
            load_problem(w->l, pins->v[i].at, "P003", "no memory for the pin");
            break;
        }
        struct img_str s = emit_str(w, span_of(raw, SCALAR_PIN_BYTES));
        (void)emit_record(w, IMG_STR, &s);
    }
    return emit_range(w, IMG_STR, first);
}

int emit_upstream(struct emit *w, const struct m_upstream *u)
{
    struct span ca = SPAN_NONE, crl = SPAN_NONE;
    if (fetch_ca(w, u, &ca) != 0 || fetch_crls(w, &u->tls.crls, &crl) != 0)
        return -1;
    struct img_upstream out = {.host = emit_str(w, u->host.text),
                               .address = emit_str(w, u->address.text),
                               .ca = emit_str(w, ca),
                               .crl = emit_str(w, crl),
                               .region = emit_str(w, u->region.text),
                               .port = (uint32_t)u->port.v,
                               .cleartext = u->cleartext.v != 0,
                               .only_tls13 = u->tls.min.v != 0};
    out.allow_private = emit_texts(w, &u->allow_private);
    out.pins = put_pins(w, &u->tls.pins);
    (void)emit_record(w, IMG_UPSTREAM, &out);
    return 0;
}
