// SPDX-License-Identifier: Apache-2.0

package serviceproxy

import (
	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
	"github.com/wherryproject/wherry/internal/serviceproxy/tables"
)

// forget has the kernel forget UDP flows that lead elsewhere since a change. What it could not forget is tried again,
// and after a start and a failure all are looked at: a change is seen once only. The rules are right all the same, so
// it is no failure of the pass: a kernel may have no way to forget flows.
func (p *Proxy) forget(change decide.Change, want decide.Tables) {
	if !p.swept {
		p.owed = want.Flows(p.facts).And(p.owed)
	}
	p.owed, p.swept = change.Flows(p.facts, want).And(p.owed), true
	err := tables.Forget(p.owed)
	switch {
	case err == nil:
		p.owed, p.patience = nil, 0
	case p.patience == 0: // it is told once
		p.patience = firstRetry
		p.config.Log.Warn("UDP clients that go on sending may be sent to endpoints that are gone; it is tried again (the kernel must have nf_conntrack_netlink)",
			"err", err)
	}
}

// tune sets how long the kernel remembers connections, once it carries services.
func (p *Proxy) tune(carries bool) {
	if p.tuned || !carries {
		return
	}
	p.tuned = true
	if err := tables.Tune(); err != nil {
		p.config.Log.Info("the kernel's times for connections stay as they are", "err", err)
	}
}
