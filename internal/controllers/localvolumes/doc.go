// SPDX-License-Identifier: Apache-2.0

// Package localvolumes is the provisioner of class wherry-local: it has a folder made on the server's machine for each
// claim of the class, makes folders larger, and removes them by policy (WL-15, WL-16).
//
// EnsureClass makes the class; Controller is the row of the controller, which starts with the first claim or volume.
// nextForClaim and nextForVolume decide; package localvolume knows the folders.
//
// Its law: a volume is named after its claim's uid, so that however often everything dies on the way, one claim has one
// volume. A folder is there before its PersistentVolume, and removed before that goes.
package localvolumes
