#include "proxy/judge/accounts/account.h"

#include <stdlib.h>

struct account *account_new(void)
{
    struct account *a = calloc(1, sizeof(*a));
    if (a == NULL)
        return NULL;
    a->refs = 1;
    timeshare_init(&a->time);
    return a;
}

struct account *account_ref(struct account *a)
{
    a->refs++;
    return a;
}

void account_unref(struct account *a)
{
    if (a != NULL && --a->refs == 0)
        free(a);
}
