/* Who decided, as a person reads it. */
#ifndef COMMON_TEXT_PERSON_H
#define COMMON_TEXT_PERSON_H

#include "common/span.h"

enum { PERSON_NAME_MAX = 64 };

/* Of "uid 1000", as records and policies name an operator, that user's name on this machine. Anything else, and a
 * number nobody has here, is returned as it is. room: where a name is put; borrowed by what is returned. */
/* From now on nobody is looked up, and every number is returned as it is: for a confined process, which may not. */
void person_numbers_stay(void);
struct span person_name(struct span who, char room[PERSON_NAME_MAX]);

#endif
