/* Names that end in the width of vectors. */
#ifndef SCNE_SHARED_H
#define SCNE_SHARED_H

#define JOIN(a, b) a##b
#define JOINED(a, b) JOIN(a, b)

#endif
