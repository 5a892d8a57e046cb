/* ftpget PORT FILE TO: downloads a file into a block and gives it a name. */
#include "heap.h"

#include "ftp.h"

int main(int count, char **arguments) {
    if (count != 4) return 2;
    onode_heap *heap = open_heap();
    size_t bytes, done = 0;
    int control, in = ftp_retrieve(arguments[1], arguments[2], &bytes, &control);
    char *to = onode_alloc(heap, bytes);
    if (!to) return failed(arguments[3]);
    ssize_t got;
    while (done < bytes && (got = read(in, to + done, bytes - done)) > 0) done += (size_t)got;
    int out = onode_mm_to_file(heap, to, done, arguments[3], O_RDONLY);
    if (out < 0) return failed(arguments[3]);
    onode_close(heap, out);
    close(in);
    close(control);
    return onode_close_heap(heap);
}
