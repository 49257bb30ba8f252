// SPDX-License-Identifier: Apache-2.0

// Package short is the short program in front of wherry: a plain `wherry debug` or `wherry exec`, without what a
// server is made of. Go initializes all packages of a program before its main, and that was half of the time of `wherry exec POD -m IMAGE
// -- true`, other than the container's.
//
// [Main] looks at the arguments. If they are plain it carries the session; a command that simply ended ends the program. Everything else
// it hands over: it begins the file once more, with what has come of the session in the environment, and the main program takes it from
// there ([Received], [Outcome.Take]) in the place where it would have asked the server.
//
// Its law: what a user sees does not change. Arguments become a request in package ask only, in both programs; whatever is not plain (a
// flag unknown, an unusual kubeconfig, a server that cannot be reached) is the main program's; and a request that was sent is never sent
// again.
package short
