// SPDX-License-Identifier: Apache-2.0

// Package images has the commands about a node's images: list, import, export, pull, tag, remove, prune, inspect, and
// logins at registries. They ask the server through its socket (package hostapi) and decide nothing.
//
// Its law: a file is whole or not there, and no password is taken from a command line or shown.
package images
