/* What the programs of this folder share: the interface, and a check that says what failed. */
#include <stdio.h>
#include <stdlib.h>

#include "onode.h"

#define CHECK(what)                                                                        \
    do {                                                                                   \
        if (!(what)) {                                                                     \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, onode_error());          \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)
