/* cat FILE...: each file is written from where it lies. */
#include <stdio.h>
#include <unistd.h>

#include "heap.h"

int main(int count, char **arguments) {
    onode_heap *heap = open_heap();
    for (int i = 1; i < count; i++) {
        size_t bytes;
        char *content = onode_map(heap, arguments[i], &bytes);
        if (!content) return failed(arguments[i]);
        if (write(1, content, bytes) != (ssize_t)bytes) return perror("standard output"), 1;
        onode_unmap(heap, content);
    }
    return onode_close_heap(heap);
}
