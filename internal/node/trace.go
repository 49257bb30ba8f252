// SPDX-License-Identifier: Apache-2.0

package node

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/work"
)

// Trace is part of [work.Node].
func (a *Agent) Trace(*corev1.Pod, work.Event) {}
