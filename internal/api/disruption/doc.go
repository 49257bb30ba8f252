// SPDX-License-Identifier: Apache-2.0

// Package disruption decides whether a pod may be evicted under the disruption budgets of its namespace.
//
// Judge says the Way in which it may go: freely, only unchanged, or once a budget has been charged for it. Otherwise
// its error is the API's answer, in Kubernetes' words, with a cause by which kubectl drain tells what to try again.
//
// The law: a pod for which a budget counts goes only if the budget has room for it, and is charged for before it goes.
// What has ended, or has not begun, is no loss.
//
// Pure.
package disruption
