/*
 * Times pairs of pmemobj_alloc and pmemobj_free of libpmemobj, found at run time.
 * Usage: pmemobj FILE BATCHES SIZE... ; one line a size: SIZE PAIR ALLOCATE RELEASE PAIR_OF_TWO, in
 * nanoseconds an operation, - for what is not measured. BATCH in the environment: operations timed
 * together, 200 at most.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct { uint64_t pool, offset; } oid;

enum { BATCH_MAX = 200, POOL_BYTES = 512 << 20 };

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;
	return (a > b) - (a < b);
}

int main(int count, char **arguments)
{
	void *library = dlopen("libpmemobj.so.1", RTLD_NOW);
	if (!library || count < 4) {
		fprintf(stderr, "%s\n", library ? "usage: pmemobj FILE BATCHES SIZE..." : dlerror());
		return 1;
	}
	void *(*create)(const char *, const char *, size_t, unsigned) = dlsym(library, "pmemobj_create");
	int (*allocate)(void *, oid *, size_t, uint64_t, void *, void *) = dlsym(library, "pmemobj_alloc");
	void (*release)(oid *) = dlsym(library, "pmemobj_free");
	oid (*root)(void *, size_t) = dlsym(library, "pmemobj_root");
	const char *(*error)(void) = dlsym(library, "pmemobj_errormsg");
	if (!create || !allocate || !release || !root || !error) {
		fprintf(stderr, "libpmemobj lacks a function\n");
		return 1;
	}
	void *pool = create(arguments[1], "lab", POOL_BYTES, 0600);
	if (!pool) {
		fprintf(stderr, "%s\n", error());
		return 1;
	}
	/* The reference is kept in the root object, so that a block is durable and reachable at once. */
	oid *references = (oid *)((char *)pool + root(pool, BATCH_MAX * sizeof(oid)).offset);
	int batches = atoi(arguments[2]);
	const char *wanted = getenv("BATCH");
	int batch_size = wanted ? atoi(wanted) : BATCH_MAX;
	if (batch_size < 1 || batch_size > BATCH_MAX)
		batch_size = BATCH_MAX;
	double *times = calloc(batches, sizeof(*times)), *allocating = calloc(batches, sizeof(*times));
	for (int size = 3; size < count; size++) {
		for (int batch = 0; batch < batches; batch++) {
			double begin = now();
			for (int pair = 0; pair < batch_size; pair++) {
				oid *reference = references;
				if (allocate(pool, reference, strtoull(arguments[size], 0, 10), 0, 0, 0)) {
					fprintf(stderr, "%s\n", error());
					return 1;
				}
				*(volatile char *)((char *)pool + reference->offset) = 1;
				release(reference);
			}
			times[batch] = (now() - begin) / batch_size;
			/* Many that stay, each with a reference of its own. */
			begin = now();
			for (int one = 0; one < batch_size; one++) {
				if (allocate(pool, references + one, strtoull(arguments[size], 0, 10), 0, 0, 0)) {
					fprintf(stderr, "%s\n", error());
					return 1;
				}
			}
			allocating[batch] = (now() - begin) / batch_size;
			for (int one = 0; one < batch_size; one++)
				release(references + one);
		}
		qsort(times, batches, sizeof(*times), by_value);
		qsort(allocating, batches, sizeof(*times), by_value);
		printf("%s %.2f %.2f - -\n", arguments[size], times[batches / 2], allocating[batches / 2]);
	}
	return 0;
}
