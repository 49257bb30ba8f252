// SPDX-License-Identifier: Apache-2.0

// Package localvolume keeps the folders that volumes of class wherry-local are (WL-15, WL-16, WL-24): one for each,
// below one root, held to its size by a project quota where the file system has those (ext4 and xfs, mounted with
// prjquota).
//
// Folders is the whole of it: Make, Grow and Remove, each of which can be repeated, and Sweep, which ends what a crash
// has left half done.
//
// Its law: what is known is what is on the disk. A folder with its name is a volume; one that is not finished yet or is
// being removed has another name. A volume's project id is the folder's own, chosen by its name and never one that
// anything else counts on. Nothing that holds data is removed unless Remove is asked to.
package localvolume
