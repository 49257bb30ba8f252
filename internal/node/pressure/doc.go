// SPDX-License-Identifier: Apache-2.0

// Package pressure measures how much is left of the resources that pods share: memory, disk, inodes and process ids
// (PL-13).
//
// [Meter.Read] takes one measurement, from files of the kernel and the sizes of file systems. [Stalls] signals when
// processes have begun to wait for memory, so that nobody has to measure more often than a kubelet does.
//
// The law: nothing is decided here, and nothing is remembered.
package pressure
