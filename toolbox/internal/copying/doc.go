// SPDX-License-Identifier: Apache-2.0

// Package copying moves files out of and into a folder that is taken for the root of a file system: a container's, as
// it is seen from a debug container. [Packer] writes a tar archive, [Unpacker] reads one; cp-pack and cp-unpack are
// their commands. cp-look answers questions about such folders, one after the other, for as long as somebody asks: the
// page's view of files. (It never writes but for the question that asks for that.)
//
// A copy into a folder can be gone on with after its connection was cut (cp-unpack --keep): the archive comes in
// frames, so that a cut is told from an end; the part of a file that has come stays, locked as long as somebody writes
// to it; and who goes on asks what is there, by its checksum. What nobody comes back for is taken away by the next
// copy.
//
// Its law: nothing outside the root is read or written, whatever paths, links and archives say, and also when somebody
// changes the tree meanwhile. So paths are resolved by the kernel inside the root (openat2 with RESOLVE_IN_ROOT, which
// needs no capability; chroot where the kernel has it not), and the last part of a path is only ever used relative to
// an open folder, without following it. Memory does not grow with the size of files, nor with their number but for hard
// links and the symbolic links that an archive makes.
package copying
