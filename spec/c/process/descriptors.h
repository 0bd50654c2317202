/** What this process has open. */
#ifndef CROWN_SPEC_DESCRIPTORS_H
#define CROWN_SPEC_DESCRIPTORS_H

/** @return how many descriptors. */
unsigned descriptors_open(void);

/** @return how many places of its memory are backed by what has `name` in its path. */
unsigned descriptors_mapped(const char *name);

#endif
