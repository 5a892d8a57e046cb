/* What the adapted programs share: the heap that HEAP names, and errors in words. */
#include "onode.h"
#include <stdio.h>
#include <stdlib.h>

static onode_heap *open_heap(void) {
    const char *spec = getenv("HEAP");
    onode_heap *heap = onode_open_heap(spec ? spec : "scm:/dev/shm/heap,size=64M");
    if (!heap) {
        fprintf(stderr, "%s\n", onode_error());
        exit(1);
    }
    return heap;
}

static inline int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, onode_error());
    return 1;
}
