/**
 * From a part to the whole: what a callback gets is a struct that its owner has embedded.
 */
#ifndef CROWN_BASE_CONTAINER_H
#define CROWN_BASE_CONTAINER_H

#include <stddef.h>

/** @return the struct of `type` whose `member` is at `pointer`, which must not be NULL. */
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
