// SPDX-License-Identifier: Apache-2.0

// Package tainteviction ends pods whose node has a taint NoExecute that they do not tolerate, or no longer.
//
// Decide is the pure rule from a pod and its node's taints to when the pod goes; Controller is a loop over pods that
// applies it. Kubernetes' own controller cannot be used: it is linked with its node agent.
//
// The law: how long a pod tolerates its node's taints is measured from when this process first saw it have to, and
// anew only after the taints had gone; a pod that goes gets the reason before it does.
package tainteviction
