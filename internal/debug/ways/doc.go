// SPDX-License-Identifier: Apache-2.0

// Package ways decides, for the commands that debug, which way into a pod a person most likely wants in its present
// state: [Choose] a new debug container, one that runs already, or image exec into what is left of dead containers; and
// words what is known about them.
//
// Its law: it decides from the pod alone, and never talks to a server.
//
// Pure.
package ways
