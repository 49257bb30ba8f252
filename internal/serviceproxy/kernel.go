// SPDX-License-Identifier: Apache-2.0

package serviceproxy

import (
	"github.com/wherryproject/wherry/internal/serviceproxy/decide"
	"github.com/wherryproject/wherry/internal/serviceproxy/tables"
)

// forget has the kernel forget UDP flows that lead elsewhere since a change. What it could not forget is tried again
// with the next pass, and after a start and a failure all are looked at: a change is seen once only.
func (p *Proxy) forget(change decide.Change, want decide.Tables) error {
	if !p.swept {
		p.owed = want.Flows(p.facts).And(p.owed)
	}
	p.owed = change.Flows(p.facts, want).And(p.owed)
	if err := tables.Forget(p.owed); err != nil {
		return err
	}
	p.owed, p.swept = nil, true
	return nil
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
