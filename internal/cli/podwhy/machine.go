// SPDX-License-Identifier: Apache-2.0

package podwhy

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
	"github.com/wherryproject/wherry/internal/why"
	"github.com/wherryproject/wherry/internal/why/gather"
)

const (
	machineLines = 50
	machineLog   = 256 << 10
)

// onMachine answers about a container of this machine.
func (f *flags) onMachine(ctx context.Context, to target.Target) (why.Answer, error) {
	found, err := f.host.Copier(ctx, to, "")
	if err != nil {
		return why.Answer{}, err
	}
	c := found.Container
	m := machineOf(c, time.Now())
	r, err := c.Log(ctx, machineLines)
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(r, machineLog))
		r.Close()
	}
	if none := (*engines.NoLog)(nil); err != nil && !errors.As(err, &none) {
		m.Unseen = append(m.Unseen, why.Unseen{What: "its log", Why: err.Error()})
	}
	if words := strings.TrimSpace(string(text)); words != "" {
		m.Tail = strings.Split(words, "\n")
	}
	return why.ExplainMachine(m), nil
}

// machineOf are the facts that its engine reports.
func machineOf(c *engines.Container, now time.Time) why.Machine {
	m := why.Machine{Now: now, Target: c.Target.String(), Program: string(c.Target.Engine), Name: c.Target.Name,
		Image: c.Image, Command: c.Args, State: string(c.State), Began: known(c.Started), Ended: known(c.Finished),
		Code: int32(c.ExitCode), OOM: c.OOMKilled, Words: c.Error, ReadOnlyRoot: c.ReadOnly, Restarts: c.Restarts}
	if c.Alive() {
		m.Ended = time.Time{}
	}
	if c.MemoryLimit > 0 {
		m.MemoryLimit = resource.NewQuantity(c.MemoryLimit, resource.BinarySI).String()
	}
	if c.OOMKilled {
		m.Kills = gather.Kills(c.ID)
	}
	if h := c.Health; h != nil {
		m.Health = &why.Health{Status: h.Status, Failing: h.Failing, Output: h.Output, Code: h.Code}
	}
	return m
}

// known is a time, or nothing for what engines write where there is none.
func known(t time.Time) time.Time {
	if t.Year() <= 1970 {
		return time.Time{}
	}
	return t
}
