// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
)

// prepare takes away what earlier sessions have left, and finds out whether there can be others.
func (o *options) prepare(say func(string, ...any)) error {
	if err := o.place.sweep(); err != nil { // also where there is no machine to be on
		say("what earlier sessions have left cannot be removed: %v", err)
	}
	if o.kit != "" {
		var err error
		if o.place.Kit, err = MakeKit("/proc/self/exe", o.kit); err != nil { // it is a matter of time only
			say("sessions begin slowly, for their tools cannot be had ready in %s: %v", o.kit, err)
		}
	}
	return o.place.FindRuntime("/proc/self/exe", o.socket)
}

// FindRuntime finds out whether sessions will reach the node's container runtime, by a process as theirs. Without it
// none can be: an agent that finds none ends and is started again, for the runtime that has started it is somewhere,
// and its last words, which are in its pod's status, say what to do.
func (p Place) FindRuntime(program, socket string) error {
	c, err := p.Start(program, talk.Ask{Runtime: true, CRISocket: socket}, Streams{})
	if err != nil {
		return err
	}
	defer c.End()
	switch r := c.Next(); {
	case r == nil:
		return errors.New("the process that looks for the node's container runtime has ended unexpectedly")
	case r.Refused != nil:
		return fmt.Errorf("no session is possible on this node: %s", r.Refused.Message)
	}
	return nil
}
