/* cp FROM TO: one copy in memory, and a name for it. */
#include <stdio.h>
#include <string.h>

#include "heap.h"

int main(int count, char **arguments) {
    if (count != 3) return 2;
    onode_heap *heap = open_heap();
    size_t bytes;
    void *from = onode_map(heap, arguments[1], &bytes);
    if (!from) return failed(arguments[1]);
    void *to = onode_alloc(heap, bytes);
    if (!to) return failed(arguments[2]);
    memcpy(to, from, bytes);
    int out = onode_mm_to_file(heap, to, bytes, arguments[2], O_RDONLY);
    if (out < 0) return failed(arguments[2]);
    onode_close(heap, out);
    onode_unmap(heap, from);
    return onode_close_heap(heap);
}
