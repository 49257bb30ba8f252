// SPDX-License-Identifier: Apache-2.0

// Package release says which Wherry a program is.
//
// [Version] is what it has. Its law: it imports nothing of Wherry, so that whoever only names the version does not link
// a server.
//
// Pure.
package release
