// SPDX-License-Identifier: Apache-2.0

// Package short is the short program that runs before wherry: a plain `wherry debug` or `wherry exec`, without what a
// server is made of. Go initializes all packages of a program before main, and apart from the container that was half
// the time of `wherry exec POD -m IMAGE -- true`.
//
// [Main] looks at the arguments. If they are plain it carries the session; when the command simply exits, so does the
// program. Everything else it hands over: it executes the file once more, with the outcome of the session in the
// environment, and the main program takes it from there ([Received], [Outcome.Take]) at the point where it would have
// asked the server.
//
// Its law: what a user sees does not change. Arguments become a request in package ask only, in both programs; whatever
// is not plain (an unknown flag, an unusual kubeconfig, a server that cannot be reached) is left to the main program;
// and a request that was sent is never sent again.
package short

//go:generate go run ../../../tools/words zz_generated.words.go
