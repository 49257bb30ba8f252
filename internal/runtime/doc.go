// SPDX-License-Identifier: Apache-2.0

// Package runtime is the container runtime inside wherry: containerd run as a library, its CRI served over an in-memory
// connection, its helper programs (shim, runc, CNI plug-in) and images (pause, debug image) taken from the binary.
//
// A [Runtime] is started with [Start] on a data folder and gives a [Runtime.Conn] that speaks the CRI, exactly as a
// socket of any other runtime would, and a [Runtime.Containerd] client for what the CRI has no call for (import and
// export of images, snapshots). [Purge] is the opposite of Start: it ends whatever runs from a data folder and
// unmounts it, so that the folder can be deleted.
//
// An [External] is a containerd that somebody else runs, behind its socket: what debugging needs beside the CRI (where
// containers' files are, their output from the first byte, the debug image) comes from the same code as for the
// embedded one, see docs/decisions/016.
//
// Its law: containers do not belong to this process. Each pod has a shim process of its own which lives on when this
// process ends, by Close or by kill -9; starting again on the same data folder picks everything up. Nothing that must
// survive is kept in memory, and everything on disk lies below the data folder, in two halves: `runtime/root` stays,
// `runtime/run` is thrown away if the machine has been rebooted since (the processes it speaks of are gone).
//
// containerd's plug-in registry and logger are globals, so there is one Runtime per process at a time; any number of
// processes with data folders of their own run side by side.
//
// Two things lie outside the data folder, because others decide where they are: libcni caches its results in
// /var/lib/cni/results, and when the data folder's path is too long for a unix socket, a symbolic link to it is kept
// below /run/wherry. Purge removes both.
package runtime
