// SPDX-License-Identifier: Apache-2.0

// Deps writes docs/dependencies.txt: what the wherry binary is made of and how large it is. `make deps` runs it at the
// root.
package main
