// SPDX-License-Identifier: Apache-2.0

// Package kubeconf reads the kubeconfigs that most people have: one file, certificates or a token, no program to run. [Read] returns
// how to reach the server, or ErrUnusual: then client-go's reader, which knows everything and takes longer to start, is to be asked.
//
// Its law: what it returns is what client-go would have, and what it is not sure of it leaves to it. It imports nothing that takes a
// program time to start.
package kubeconf
