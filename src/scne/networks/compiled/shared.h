/* Nodes on the same features that go together, and names that end in the width of vectors. */
#ifndef SCNE_SHARED_H
#define SCNE_SHARED_H

#define NODES_TOGETHER 4
#define JOIN(a, b) a##b
#define JOINED(a, b) JOIN(a, b)

#endif
