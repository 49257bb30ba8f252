// SPDX-License-Identifier: Apache-2.0

// Package resolver is the small process that answers the pods' questions about names (decision 041). It is a part of
// the short program, so that it takes little; the server starts it, and it outlives the server as pods do.
//
// [Main] is the process. A listener answers over UDP and TCP; a forwarder asks the machine's resolvers for what is not
// of the cluster; control listens on the socket in its folder, on which a server feeds it.
//
// Its laws: it answers from the last world that it was sent, from its file after its own restart, and says SERVFAIL,
// not that a name does not exist, before it knows any. There is one of a folder: a lock says so. It ends when it is
// asked to, when a newer one takes its sockets over (no question is lost), and when its folder is removed. It answers
// only pods and the machine itself.
package resolver
