// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"sync"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
)

// Records are the sessions of the machine, by what they have written of themselves. Only those are seen which an API
// has asked for, of the pod with the very uid.
type Records struct{ Place Place }

// noSession is the error for a session to stop that there is none of.
type noSession struct{ stop wire.Stop }

func (e *noSession) Error() string {
	if e.stop.ID != "" {
		return fmt.Sprintf("pod %s/%s has no debug session %s", e.stop.Pod.Namespace, e.stop.Pod.Name, e.stop.ID)
	}
	return fmt.Sprintf("pod %s/%s has no debug session", e.stop.Pod.Namespace, e.stop.Pod.Name)
}

// List implements Running.
func (m Records) List(pod wire.Pod) (all []wire.Running, err error) {
	err = m.Place.do(func() error {
		records, err := guard.Here().Sessions()
		for _, r := range ofPod(records, pod, "") {
			all = append(all, wire.Running{ID: r.ID, As: r.As, Container: r.Container, Image: r.Image,
				Command: r.Command, Profile: r.Profile, By: r.User, Since: r.Since, Until: r.Until})
		}
		return err
	})
	return all, err
}

// Stop implements Running.
func (m Records) Stop(stop wire.Stop) error {
	var own []guard.Record
	err := m.Place.do(func() error {
		records, err := guard.Here().Sessions()
		own = ofPod(records, stop.Pod, stop.ID)
		return err
	})
	switch {
	case err != nil:
		return err
	case len(own) == 0:
		return &noSession{stop}
	}
	return stopAll(own, func(r guard.Record) error {
		return m.Place.do(func() error { return guard.Here().Stop(r, stop.By) })
	})
}

// stopAll ends sessions, all at once: each may take its time.
func stopAll(all []guard.Record, stop func(guard.Record) error) error {
	errs := make([]error, len(all))
	var work sync.WaitGroup
	for i, r := range all {
		work.Go(func() {
			if err := stop(r); err != nil {
				errs[i] = fmt.Errorf("session %s: %w", r.ID, err)
			}
		})
	}
	work.Wait()
	return errors.Join(errs...)
}

// ofPod are the sessions of a pod, or the one with an ID. (Pure.)
func ofPod(all []guard.Record, pod wire.Pod, id string) (own []guard.Record) {
	for _, r := range all {
		if r.Pod != nil && *r.Pod == (guard.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}) &&
			(id == "" || r.ID == id) {
			own = append(own, r)
		}
	}
	return own
}

// tidy removes the cgroups that the processes of sessions could not remove themselves, where the root of what the
// machine sees of them takes no processes, as in a node that is a container.
func (p Place) tidy() {
	_ = p.do(func() error {
		guard.Here().SweepKept()
		return nil
	})
}

// sweep takes away what sessions have left that nobody looks after any more.
func (p Place) sweep() error {
	return p.do(func() error {
		err := guard.Here().Sweep()
		guard.Here().SweepKept()
		return err
	})
}
