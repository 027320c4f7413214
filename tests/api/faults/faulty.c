// Preloaded into a gateway whose disk fails. While the file that FAULTS names holds a number, a write to a file of the
// database fails with that number as errno. Files below the folder that READ_ONLY names cannot be opened for writing.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(call, type) ((type)dlsym(RTLD_NEXT, call))

static int fault_of(int fd) {
    const char *faults = getenv("FAULTS");
    char link[64], path[PATH_MAX], digits[16] = {0};
    int number = 0, saved = errno;
    if (!faults) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0) {
        path[length] = 0;
        const char *name = strrchr(path, '/');
        int file = name && !strncmp(name, "/countersign.db", 15) ? REAL("open", int (*)(const char *, int, ...))(faults, O_RDONLY) : -1;
        if (file >= 0) {
            if (read(file, digits, sizeof digits - 1) > 0) number = atoi(digits);
            close(file);
        }
    }
    errno = saved;
    return number;
}

#define FAILING(fd)                                                                                                              \
    int fault = fault_of(fd);                                                                                                    \
    if (fault) {                                                                                                                 \
        errno = fault;                                                                                                           \
        return -1;                                                                                                               \
    }

ssize_t write(int fd, const void *bytes, size_t count) {
    FAILING(fd)
    return REAL("write", ssize_t(*)(int, const void *, size_t))(fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    FAILING(fd)
    return REAL("pwrite", ssize_t(*)(int, const void *, size_t, off_t))(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    FAILING(fd)
    return REAL("pwrite64", ssize_t(*)(int, const void *, size_t, off64_t))(fd, bytes, count, at);
}

static int is_refused(const char *path, int flags) {
    const char *folder = getenv("READ_ONLY");
    char whole[PATH_MAX];
    if (!folder || !(flags & (O_WRONLY | O_RDWR | O_CREAT))) return 0;
    const char *looked = realpath(path, whole) ? whole : path;
    return !strncmp(looked, folder, strlen(folder));
}

static int opened(const char *call, const char *path, int flags, mode_t mode) {
    if (is_refused(path, flags)) {
        errno = EROFS;
        return -1;
    }
    return REAL(call, int (*)(const char *, int, ...))(path, flags, mode);
}

#define OPENING(call)                                                                                                            \
    int call(const char *path, int flags, ...) {                                                                                 \
        va_list more;                                                                                                            \
        va_start(more, flags);                                                                                                   \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                                  \
        va_end(more);                                                                                                            \
        return opened(#call, path, flags, mode);                                                                                 \
    }

OPENING(open)
OPENING(open64)
