// SPDX-License-Identifier: Apache-2.0

// Package bundle carries the programs wherry starts as processes of their own (runc, the containerd shim, the CNI
// plug-in), the pause image and the debug image, inside the wherry binary.
//
// They are built by `make helpers` into bin/ and embedded from there. A wherry built without them compiles and says so
// when they are needed ([ErrNotBuilt]). Its law: [Unpack] leaves a file alone if its content is already right, and
// replaces others by rename, so that programs running from the old file keep it and a crash never leaves half a file.
package bundle
