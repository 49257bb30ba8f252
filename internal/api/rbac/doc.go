// SPDX-License-Identifier: Apache-2.0

// Package rbac decides who may do what, as the page "Using RBAC Authorization" of the Kubernetes documentation says.
//
// A Policy holds roles and bindings, indexed by subject, and answers a Request with a Decision. Rules are lists of
// rbacv1.PolicyRule; Allows matches one of them, Missing says which permissions of one list another list lacks
// (escalation), Aggregate assembles a ClusterRole from others. Defaults are the roles and bindings every server has.
//
// Its law: permissions only add up, nothing takes one away; the same objects give the same answers, in whatever order
// they arrive (the newer version of an object wins). No context, no client, no lock, no clock.
//
// Pure.
package rbac
