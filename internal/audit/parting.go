// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/audit"
)

// partingTime is how long a server that stops tries to send its last events to a webhook. One that is away is asked
// again for minutes otherwise, and the server would be ended by force, as one that hangs.
const partingTime = 5 * time.Second

// parting bounds how long the end of a backend is waited for.
type parting struct {
	audit.Backend
	most time.Duration
}

// Shutdown implements audit.Backend.
func (p parting) Shutdown() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Backend.Shutdown()
	}()
	timer := time.NewTimer(p.most)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		utilruntime.HandleError(fmt.Errorf("the audit webhook has not taken the last events within %s: they are lost to it",
			p.most))
	}
}
