/* The parts of a form with files (multipart/form-data), as multipart.c reads them. */
#ifndef POLICY_BODY_MULTIPART_H
#define POLICY_BODY_MULTIPART_H

#include "policy/spelling/params.h"

enum { MULTIPART_PARTS_MAX = 1000, MULTIPART_HEAD_MAX = 4096 };

/* OTHER: a type and no file name, which to some servers is a file. */
enum multipart_is { MULTIPART_FIELD = 0, MULTIPART_FILE, MULTIPART_OTHER };
struct multipart_part {
    struct span file, type; /* p NULL: it says none; the type without parameters, in small letters */
    struct span content;
    enum multipart_is is;
    struct spellings *spelt; /* of file; made when it is first asked for */
};
struct multipart_form {
    struct params names; /* with the content as value, where there is no file name */
    struct multipart_part *part;
    struct param *param;
    size_t n, parts_max, params_max; /* n: of names, part and param, in the same order */
};

#endif
