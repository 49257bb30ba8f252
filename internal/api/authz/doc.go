// SPDX-License-Identifier: Apache-2.0

// Package authz decides who may do what in the API server, from what is stored.
//
// Authorizers ask in turn: system:masters, the nodes' own authorizer and the roles; they serve reviews of rights, and
// the storage of roles and bindings, in which nobody gives what he or she does not have. The decisions themselves are
// in packages rbac and nodeauth.
//
// Its law: who cannot be judged is refused, and a right ends with the write that takes it away, before that is
// answered.
package authz
