/* insmod FILE: loads a module into the kernel from where its file lies. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap.h"

int main(int count, char **arguments) {
    if (count != 2) return 2;
    onode_heap *heap = open_heap();
    size_t bytes;
    char *module = onode_map(heap, arguments[1], &bytes);
    if (!module) return failed(arguments[1]);
    if (syscall(SYS_init_module, module, bytes, "")) return perror("init_module"), 3;
    onode_unmap(heap, module);
    return onode_close_heap(heap);
}
