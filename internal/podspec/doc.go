// SPDX-License-Identifier: Apache-2.0

// Package podspec holds the rules of the Pod: what a Pod means, apart from what anybody does about it.
//
// SetDefaults completes a Pod, Validate and the ValidateXUpdate functions say what is wrong with one (with
// the field paths and close to the words Kubernetes uses), Unsupported says which valid fields this node
// does not honour yet. Containers walks a Pod's containers with their kinds and field paths; QOSClass,
// EffectiveRequests, EffectiveLimits and NamespaceModes derive what scheduler and node agent need.
//
// Its law: everything here is a pure function of its arguments. No client, context, logger or clock is
// imported; nothing panics, whatever the Pod holds; arguments are never changed except by SetDefaults*.
// Every field of the v1 Pod has a row in the table of fields_test.go, so that a new version of the API
// cannot bring a field nobody has thought about. Validate expects a Pod that went through SetDefaults.
//
// Pure.
package podspec
