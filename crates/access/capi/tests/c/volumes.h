/* What the programs about volumes share: calls that have to fail, and small files. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* A call that has to fail, with this number and these words. */
#define FAILS(what, number, words) \
    CHECK((errno = 0, what) && errno == (number) && onode_errno() == (number) && strstr(onode_error(), words))

static inline void put(onode_heap *files, const char *path, const char *text) {
    int file = onode_creat(files, path, 0644);
    CHECK(file >= 0 && onode_write(files, file, text, strlen(text)) == (ssize_t)strlen(text));
    CHECK(onode_close(files, file) == 0);
}

/* Whether a file has this content; NULL: whether there is none. */
static inline int has(onode_heap *files, const char *path, const char *text) {
    char found[64] = {0};
    int file = onode_open(files, path, O_RDONLY, 0);
    if (file < 0) return !text && errno == ENOENT;
    CHECK(onode_read(files, file, found, sizeof found - 1) >= 0 && onode_close(files, file) == 0);
    return text && !strcmp(found, text);
}
