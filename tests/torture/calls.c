/* Watches a process's calls to the C library: those that change files, and those that allocate memory.
 *
 * Loaded with LD_PRELOAD, so that it sees Python, NumPy, Arrow and every other library alike. Nothing happens until
 * torture_files() or torture_memory() is called, in a process that was forked for one case. The chosen call then kills
 * the process, fails, or writes only half of its bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING, KILL_BEFORE, KILL_AFTER, FAIL_ONCE, FAIL_ALWAYS, WRITE_HALF, TERMINATE, INTERRUPT };

static int file_action = NOTHING, file_error, log_handle = -1;
static long file_place;
static atomic_long file_calls;
static int memory_always;
static long memory_place;
static size_t memory_size;
static atomic_long memory_calls = -1;

/* Count calls that change files from now on; at call `place` (from 1) do `action`; write a line for each to `handle`. */
void torture_files(int action, long place, int error, int handle) {
    file_action = action, file_place = place, file_error = error, log_handle = handle;
    atomic_store(&file_calls, 0);
}

/* Let allocation `place` (from 1) of those with at least `size` bytes fail, and all later ones if `always`. */
void torture_memory(size_t size, long place, int always) {
    memory_size = size, memory_place = place, memory_always = always;
    atomic_store(&memory_calls, 0);
}

long torture_memory_calls(void) { return atomic_load(&memory_calls); }

static int allocation_fails(size_t size) {
    if (atomic_load(&memory_calls) < 0 || size < memory_size) return 0;
    long place = atomic_fetch_add(&memory_calls, 1) + 1;
    if (!(place == memory_place || (memory_always && memory_place && place > memory_place))) return 0;
    errno = ENOMEM;
    return 1;
}

static void die(void) {
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    for (;;) pause();
}

/* Whether a handle is a file that a user could see: no pipe, no device, not what the command prints. */
static int is_file(int handle) {
    struct stat facts;
    if (handle <= 2 || handle == log_handle) return 0;
    return fstat(handle, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode));
}

static void name_of(int handle, char *name) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, name, PATH_MAX - 1);
    name[length < 0 ? 0 : length] = 0;
}

/* What to do at this call: NOTHING for most. `grows` is 0 for calls that a full disk does not refuse. */
static int next_call(const char *call, const char *path, int grows) {
    if (log_handle < 0 || strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0) return NOTHING;
    long place = atomic_fetch_add(&file_calls, 1) + 1;
    char line[PATH_MAX + 80];
    int length = snprintf(line, sizeof line, "%ld\t%s\t%s\n", place, call, path);
    syscall(SYS_write, log_handle, line, (size_t)length);
    int is_full = file_error == ENOSPC || file_error == EDQUOT;
    if (file_action == FAIL_ALWAYS) return place >= file_place && (grows || !is_full) ? FAIL_ONCE : NOTHING;
    if (place != file_place) return NOTHING;
    if (file_action == KILL_BEFORE) die();
    if (file_action == TERMINATE || file_action == INTERRUPT) {
        syscall(SYS_kill, syscall(SYS_getpid), file_action == TERMINATE ? SIGTERM : SIGINT);
        return NOTHING;
    }
    return file_action;
}

static int next_handle_call(const char *call, int handle, int grows) {
    if (log_handle < 0 || !is_file(handle)) return NOTHING;
    char name[PATH_MAX];
    name_of(handle, name);
    return next_call(call, name, grows);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define DO(result_type, action, call)                                                                                \
    do {                                                                                                             \
        int chosen = action;                                                                                         \
        if (chosen == FAIL_ONCE || chosen == WRITE_HALF) return errno = file_error, (result_type)-1;                 \
        result_type result = call;                                                                                   \
        if (chosen == KILL_AFTER) die();                                                                             \
        return result;                                                                                               \
    } while (0)

/* A full disk lets files be removed, shortened and renamed away; making and lengthening is what it refuses. */
#define PATH_CALL(name, grows, parameters, arguments)                                                            \
    int name parameters { DO(int, next_call(#name, path, grows), REAL(name) arguments); }

PATH_CALL(unlink, 0, (const char *path), (path))
PATH_CALL(unlinkat, 0, (int at, const char *path, int flags), (at, path, flags))
PATH_CALL(remove, 0, (const char *path), (path))
PATH_CALL(rmdir, 0, (const char *path), (path))
PATH_CALL(mkdir, 1, (const char *path, mode_t mode), (path, mode))
PATH_CALL(mkdirat, 1, (int at, const char *path, mode_t mode), (at, path, mode))
PATH_CALL(rename, 0, (const char *from, const char *path), (from, path))
PATH_CALL(renameat, 0, (int a, const char *from, int b, const char *path), (a, from, b, path))
PATH_CALL(renameat2, 0, (int a, const char *from, int b, const char *path, unsigned f), (a, from, b, path, f))
PATH_CALL(link, 1, (const char *from, const char *path), (from, path))
PATH_CALL(linkat, 1, (int a, const char *from, int b, const char *path, int f), (a, from, b, path, f))
PATH_CALL(symlink, 1, (const char *to, const char *path), (to, path))
PATH_CALL(symlinkat, 1, (const char *to, int at, const char *path), (to, at, path))
PATH_CALL(mkfifo, 1, (const char *path, mode_t mode), (path, mode))
PATH_CALL(truncate, 0, (const char *path, off_t length), (path, length))
PATH_CALL(truncate64, 0, (const char *path, off64_t length), (path, length))
PATH_CALL(chmod, 0, (const char *path, mode_t mode), (path, mode))
PATH_CALL(fchmodat, 0, (int at, const char *path, mode_t mode, int flags), (at, path, mode, flags))
PATH_CALL(utimensat, 0, (int at, const char *path, const struct timespec times[2], int flags), (at, path, times, flags))

#define HANDLE_CALL(name, grows, parameters, arguments)                                                          \
    int name parameters { DO(int, next_handle_call(#name, handle, grows), REAL(name) arguments); }

HANDLE_CALL(fsync, 1, (int handle), (handle))
HANDLE_CALL(fdatasync, 1, (int handle), (handle))
HANDLE_CALL(ftruncate, 1, (int handle, off_t length), (handle, length))
HANDLE_CALL(ftruncate64, 1, (int handle, off64_t length), (handle, length))
HANDLE_CALL(fallocate, 1, (int handle, int mode, off_t start, off_t length), (handle, mode, start, length))
HANDLE_CALL(fchmod, 0, (int handle, mode_t mode), (handle, mode))
HANDLE_CALL(futimens, 0, (int handle, const struct timespec times[2]), (handle, times))
HANDLE_CALL(flock, 0, (int handle, int operation), (handle, operation))

#define WRITE_CALL(name, count, parameters, arguments, half)                                                         \
    ssize_t name parameters {                                                                                        \
        int what = next_handle_call(#name, handle, 1);                                                               \
        if (what == WRITE_HALF && (count) > 1) {                                                                     \
            /* The disk is full after half of it, and stays full. */                                                 \
            file_action = FAIL_ALWAYS;                                                                               \
            return REAL(name) half;                                                                                  \
        }                                                                                                            \
        DO(ssize_t, what, REAL(name) arguments);                                                                     \
    }

WRITE_CALL(write, n, (int handle, const void *bytes, size_t n), (handle, bytes, n), (handle, bytes, n / 2))
WRITE_CALL(pwrite, n, (int handle, const void *bytes, size_t n, off_t start), (handle, bytes, n, start),
           (handle, bytes, n / 2, start))
WRITE_CALL(pwrite64, n, (int handle, const void *bytes, size_t n, off64_t start), (handle, bytes, n, start),
           (handle, bytes, n / 2, start))
WRITE_CALL(writev, n, (int handle, const struct iovec *parts, int n), (handle, parts, n), (handle, parts, n / 2))

ssize_t sendfile(int handle, int from, off_t *start, size_t n) {
    DO(ssize_t, next_handle_call("sendfile", handle, 1), REAL(sendfile)(handle, from, start, n));
}
ssize_t copy_file_range(int from, off64_t *start, int handle, off64_t *place, size_t n, unsigned flags) {
    DO(ssize_t, next_handle_call("copy_file_range", handle, 1),
       REAL(copy_file_range)(from, start, handle, place, n, flags));
}

#define CHANGES(flags) ((flags) & (O_CREAT | O_TRUNC) || ((flags) & O_ACCMODE) != O_RDONLY)
#define OPEN_CALL(name, parameters, first)                                                                           \
    int name parameters {                                                                                            \
        va_list rest;                                                                                                \
        va_start(rest, flags);                                                                                       \
        mode_t mode = (flags) & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;                                                     \
        va_end(rest);                                                                                                \
        int what = CHANGES(flags) ? next_call(#name, path, 1) : NOTHING;                                             \
        DO(int, what, REAL(name) first);                                                                             \
    }

#define PLAIN (path, flags, mode)
#define BESIDE (at, path, flags, mode)
OPEN_CALL(open, (const char *path, int flags, ...), PLAIN)
OPEN_CALL(open64, (const char *path, int flags, ...), PLAIN)
OPEN_CALL(openat, (int at, const char *path, int flags, ...), BESIDE)
OPEN_CALL(openat64, (int at, const char *path, int flags, ...), BESIDE)
int creat(const char *path, mode_t mode) { DO(int, next_call("creat", path, 1), REAL(creat)(path, mode)); }

#define FOPEN_CALL(name)                                                                                             \
    FILE *name(const char *path, const char *mode) {                                                                 \
        int what = strpbrk(mode, "wa+") ? next_call(#name, path, 1) : NOTHING;                                       \
        if (what == FAIL_ONCE || what == WRITE_HALF) return errno = file_error, NULL;                                \
        FILE *result = REAL(name)(path, mode);                                                                       \
        if (what == KILL_AFTER) die();                                                                               \
        return result;                                                                                               \
    }
FOPEN_CALL(fopen)
FOPEN_CALL(fopen64)

/* glibc's own names, because dlsym() itself allocates. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
void *malloc(size_t n) { return allocation_fails(n) ? NULL : __libc_malloc(n); }
void *calloc(size_t count, size_t n) { return allocation_fails(count * n) ? NULL : __libc_calloc(count, n); }
void *realloc(void *old, size_t n) { return allocation_fails(n) ? NULL : __libc_realloc(old, n); }
void *memalign(size_t step, size_t n) { return allocation_fails(n) ? NULL : __libc_memalign(step, n); }
void *aligned_alloc(size_t step, size_t n) { return allocation_fails(n) ? NULL : __libc_memalign(step, n); }
int posix_memalign(void **place, size_t step, size_t n) {
    void *found = allocation_fails(n) ? NULL : __libc_memalign(step, n);
    if (!found) return ENOMEM;
    *place = found;
    return 0;
}
