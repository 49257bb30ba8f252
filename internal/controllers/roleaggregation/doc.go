// SPDX-License-Identifier: Apache-2.0

// Package roleaggregation keeps the rules of aggregated ClusterRoles (admin, edit, view, and any other with an aggregation rule):
// those of all roles that it selects, at any time.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
//
// Its law: what rbac.Aggregate says is what the role has; a role without an aggregation rule is nobody's business but its author's.
package roleaggregation
