// SPDX-License-Identifier: Apache-2.0

// Package eviction serves pods/eviction: a delete that says why, and that disruption budgets may refuse.
//
// A REST reads the pod and the budgets of its namespace, has package disruption judge, charges the budget, writes the
// reason into the pod's conditions and deletes it.
//
// Its law: what was judged is what is carried out. Where pod or budget have changed meanwhile, it judges anew.
package eviction
