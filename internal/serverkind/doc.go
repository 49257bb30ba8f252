// SPDX-License-Identifier: Apache-2.0

// Package serverkind distinguishes Wherry's API server from others, by its version. Requests that Wherry alone
// understands must not reach another server: to that, `pods/exec` with an image is an ordinary exec, in the pod's own
// container.
//
// Its law: who cannot be asked is not taken for Wherry. It imports nothing that takes a program time to start.
package serverkind
