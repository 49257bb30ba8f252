// SPDX-License-Identifier: Apache-2.0

// Package soak lets eight clients make, roll, scale and delete 500 Deployments, each with a Service, at random, and ask
// for them by name, for $SOAK (`make soak`: 20 minutes), from $SOAK_SEED. How many pods there are at a time is bounded
// by what a machine of two processors bears.
//
// Its law: when all is deleted nothing is left of it: no object, no name, no rule of the firewall, no process or folder
// on the node, and the server holds as many descriptors and as much memory as after a first round.
package soak
