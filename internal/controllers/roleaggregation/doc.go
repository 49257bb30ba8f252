// SPDX-License-Identifier: Apache-2.0

// Package roleaggregation keeps the rules of aggregated ClusterRoles (admin, edit, view, and any other with an
// aggregation rule): those of all roles that it selects, at any time.
// https://kubernetes.io/docs/reference/access-authn-authz/rbac/#aggregated-clusterroles
//
// Its law: a role has exactly what rbac.Aggregate says; roles without an aggregation rule are not touched.
package roleaggregation
