/* Slots in C: `make` fills some, `look` finds them in another run. */
#include <errno.h>
#include <string.h>

#include "check.h"

static void fill(struct onode_heap *heap, struct onode_slots *slots, uint64_t slot, int byte, size_t durable) {
    char *block = onode_alloc(heap, 300);
    CHECK(block != NULL);
    memset(block, byte, 300);
    CHECK(onode_fill_slot(slots, slot, block, durable) == 0);
    CHECK(onode_slot(slots, slot) == (void *)block);
}

int main(int count, char **arguments) {
    struct onode_heap *heap = count > 2 ? onode_open_heap(arguments[1]) : NULL;
    CHECK(heap != NULL);
    struct onode_slots *slots = onode_open_slots(heap, "table");
    CHECK(slots != NULL);
    if (strcmp(arguments[2], "make") == 0) {
        fill(heap, slots, 0, 'a', 300);
        fill(heap, slots, 9, 'b', 0);
        fill(heap, slots, 0, 'c', 300);
        fill(heap, slots, 5, 'd', 1);
        char *block = onode_take_slot(slots, 5);
        CHECK(block != NULL && block[299] == 'd' && onode_free(heap, block) == 0);
        block = onode_alloc(heap, 300);
        CHECK(onode_fill_slot(slots, 0, block, 1000000) == -1 && errno == EINVAL);
        CHECK(onode_fill_slot(slots, UINT64_MAX, block, 1) == -1 && errno == EINVAL);
        CHECK(onode_free(heap, block) == 0);
        CHECK(onode_open_slots(heap, "no/name") == NULL && errno == EINVAL);
    } else {
        char *block = onode_slot(slots, 0);
        CHECK(block != NULL && block[0] == 'c' && block[299] == 'c');
        block = onode_slot(slots, 9);
        CHECK(block != NULL && block[0] == 'b' && onode_free(heap, block) == -1 && errno == EINVAL);
        CHECK(onode_slot(slots, 5) == NULL && errno == ENOENT);
        CHECK(onode_take_slot(slots, 5) == NULL && errno == ENOENT);
    }
    CHECK(onode_close_slots(slots) == 0 && onode_close_heap(heap) == 0);
    return 0;
}
