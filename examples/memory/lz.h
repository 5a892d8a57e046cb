/* A small LZ77 coder of both programs: a byte of eight flags, then literals or 3-byte matches. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static size_t lz_bound(size_t bytes) { return bytes + bytes / 8 + 16; }

static size_t lz_compress(const uint8_t *from, size_t bytes, uint8_t *to) {
    static int32_t last[1 << 14];
    memset(last, 0xff, sizeof last);
    size_t at = 0, out = 0, flags = 0;
    for (int bit = 8; at < bytes; bit++) {
        if (bit == 8) {
            flags = out++;
            to[flags] = 0;
            bit = 0;
        }
        size_t length = 0, distance = 0;
        if (at + 4 <= bytes) {
            uint32_t word;
            memcpy(&word, from + at, 4);
            int32_t *slot = &last[word * 2654435761u >> 18];
            if (*slot >= 0 && at - (size_t)*slot < 4096) {
                distance = at - (size_t)*slot;
                while (length < 18 && at + length < bytes && from[at + length] == from[at + length - distance]) length++;
            }
            *slot = (int32_t)at;
        }
        if (length >= 3) {
            to[flags] |= (uint8_t)(1 << bit);
            to[out++] = (uint8_t)distance;
            to[out++] = (uint8_t)(distance >> 8 | (length - 3) << 4);
            at += length;
        } else {
            to[out++] = from[at++];
        }
    }
    return out;
}
