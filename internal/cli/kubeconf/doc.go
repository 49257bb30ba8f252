// SPDX-License-Identifier: Apache-2.0

// Package kubeconf reads the kubeconfigs that most people have: one file, certificates or a token, no credential
// program. [Read] returns how to reach the server, or ErrUnusual: then client-go's reader must be used, which supports
// everything and takes longer to start.
//
// Its law: what it returns is what client-go would have returned, and it leaves anything uncertain to client-go. It
// imports nothing that takes a program time to start.
package kubeconf
