// SPDX-License-Identifier: Apache-2.0

// Package metrics serves metrics.k8s.io, which kubectl top asks: what pods and nodes use now.
//
// Serve adds its kinds to what the server answers for. The figures come from the nodes, and package usage makes rates
// of them.
//
// Its law: nothing of it is stored, and a node that does not answer is a warning in the answer, not an error of it.
package metrics
