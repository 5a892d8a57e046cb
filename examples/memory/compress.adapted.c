/* compress FROM TO: compresses a file where it lies into a block and names the block. */
#include <stdio.h>
#include <stdlib.h>

#include "heap.h"
#include "lz.h"

int main(int count, char **arguments) {
    if (count != 3) return 2;
    onode_heap *heap = open_heap();
    size_t bytes;
    uint8_t *from = onode_map(heap, arguments[1], &bytes), *to = onode_alloc(heap, lz_bound(bytes));
    if (!from || !to) return failed(arguments[1]);
    size_t packed = lz_compress(from, bytes, to);
    int out = onode_mm_to_file(heap, to, packed, arguments[2], O_RDONLY);
    if (out < 0) return failed(arguments[2]);
    onode_close(heap, out);
    onode_unmap(heap, from);
    return onode_close_heap(heap);
}
