// SPDX-License-Identifier: Apache-2.0

// Package podstore changes stored pods on the server's own account, outside the rules for users: for bindings,
// evictions and debug sessions.
//
// Update is such a change. SetCondition sets a condition of a pod's status. KeepOwn, TakeOwn and DropOwn are about what
// of a pod nobody but this server writes: the condition Tainted, which TaintOf finds, and OwnAnnotations.
//
// Its law: what a user or a node writes neither changes nor removes what is the server's own.
package podstore
