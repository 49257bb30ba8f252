// SPDX-License-Identifier: Apache-2.0

// Package early asks for a debug session before the rest of the program has started. Half of the time of `wherry exec POD -m IMAGE --
// true`, other than the container's, was the start of packages it does not need: Go initializes them all before main.
//
// A package is initialized as soon as those it imports are, so this one's turn comes in the first third. If the arguments are those of a
// plain `wherry debug` or `wherry exec` it carries the session there and then. A command that simply ended ends the program; whatever
// else came of it, main asks for with [Take] in the place where it would have asked the server.
//
// Its law: what a user sees does not change. Arguments become a request in package ask only, here and in main; whatever is not plain (a
// flag unknown, an unusual kubeconfig, a server that cannot be reached) is left to main; and a request that was sent is never sent again.
package early
