// SPDX-License-Identifier: Apache-2.0

// Package disk is a disk that loses power, fills up and fails: a file system in memory, mounted by FUSE, for tests of
// what is written to it.
//
// A [Disk] is served by a child process (the test program itself, which calls [Child]): a file that is mapped into a Go
// program must not be served by the same program, as a page fault holds up its scheduler. Programs use it as any
// folder. [Disk.Cut] is the end of what uses it, of the process or of the machine: from this instant on whatever goes
// on works on a ghost of the disk, and [Disk.Remount] shows what the next process finds.
//
// # What survives a loss of power
//
// The model is ext4 with data=ordered as it is documented and, where it is not, less than that:
//
//   - Changes of names, modes and sizes (create, link, rename, unlink, truncate, fallocate) form one journal. They survive in order: a
//     prefix of those that were not committed. Fsync of any file or folder commits all of it, as a transaction of ext4 does. POSIX promises
//     less: that the name of a new file needs an fsync of its folder. What only that would break is not found here.
//   - Written bytes survive by sectors of 512 bytes, each by itself, unless the file was synced: a write may be torn, and a later one survive
//     an earlier one. Written over in place, a sector has its old or its new content.
//   - A file that grew by writes has grown as far as they survived. What survives of a rename says nothing of the content: a file that was
//     not synced before it was renamed can be empty or cut. (Ext4 has a heuristic against that, auto_da_alloc; nothing may rely on it.)
//   - Nothing written after a truncation survives if the truncation does not.
//   - What was not synced is written back at some time: here only when [Disk.Settle] is called; ext4 takes 5 s for names and 30 s for bytes.
//
// # What can fail
//
// See [Faults]. A failing fsync does what Linux does: it says so once, a part of what was to be written is on the disk,
// and the rest is no longer waiting to be written, though readers see it as long as the kernel has it in its page
// cache: until posix_fadvise or the next mount. The next fsync succeeds.
//
// Its law: a process that is killed loses nothing that it has written, and what was synced without an error survives
// everything.
package disk
