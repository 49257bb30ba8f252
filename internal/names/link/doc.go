// SPDX-License-Identifier: Apache-2.0

// Package link is the server's end of its resolver (package resolver): it sees to it that the process runs, and feeds
// it.
//
// [Start] finds the resolver of a data folder or starts one, in place of one of another program or another address; the
// sockets, and so every question, pass from one to the other. [Link] sends it the world, as a whole whenever it has
// connected and then change by change ([Link.Send]). [Ask] is for who wants to know what a pod has asked, [End] for who
// wants no resolver.
//
// Its law: the resolver is never stopped because its server stops.
package link
