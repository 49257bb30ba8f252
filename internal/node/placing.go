// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/wherryproject/wherry/internal/controllers/scheduler/fit"
	"github.com/wherryproject/wherry/internal/node/cpus"
	"github.com/wherryproject/wherry/internal/node/devices"
	"github.com/wherryproject/wherry/internal/node/memory"
	"github.com/wherryproject/wherry/internal/node/numa"
	"github.com/wherryproject/wherry/internal/node/numa/bank"
	"github.com/wherryproject/wherry/internal/node/numa/place"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Placing says how what pods ask for is brought together on the machine's NUMA nodes.
type Placing struct {
	Rule     numa.Rule
	Memory   bank.Machine // what pods can be given of each node; nil: memory is not given by nodes
	Reserved bank.Amounts // kept for the system: not allocatable
}

// newPlaces makes what knows who has which CPUs, devices and memory.
func (a *Agent) newPlaces() (err error) {
	if err := a.dropHalfPlaced(); err != nil {
		return err
	}
	if a.devices, err = a.newDevices(); err != nil {
		return err
	}
	if a.cpus, err = a.newCPUs(); err != nil {
		return err
	}
	a.memory, err = memory.New(memory.Config{Machine: a.cfg.Placing.Memory, PodsFolder: a.cfg.podsFolder(),
		Logger: a.log})
	return err
}

// placeTries is how often a pod is placed when containers that start meanwhile take what was chosen.
const placeTries = 3

// place gives the containers of a pod that comes CPUs, devices and memory near to one another, and writes that down; or
// it says why the pod is not let in. One that has been placed, by an earlier process too, stays where it is.
func (a *Agent) place(pod *corev1.Pod) *fit.Misfit {
	by := a.cfg.Placing
	if !by.Rule.On() && by.Memory == nil {
		return nil
	}
	a.placing.Lock()
	defer a.placing.Unlock()
	if len(a.cpus.Of(pod.UID)) > 0 || len(a.memory.Of(pod.UID)) > 0 || len(a.devices.Held(pod.UID)) > 0 {
		return nil
	}
	n := place.Node{Rule: by.Rule, CPUs: a.cpus.Policy(), Static: a.cfg.CPUs.Static, Memory: by.Memory}
	var err error
	for range placeTries {
		facts := place.Facts{CPUs: a.cpus.Taken(pod.UID), Memory: a.memory.Taken(pod.UID), Devices: a.devices.Facts()}
		var p place.Placement
		if p, err = n.Place(pod, facts); err == nil {
			err = a.keepPlaced(pod.UID, p)
		}
		if refused := (*place.Refused)(nil); errors.As(err, &refused) {
			return &fit.Misfit{Reason: refused.Reason, Message: refused.Message}
		}
		if err == nil {
			return nil
		}
	}
	return &fit.Misfit{Reason: place.ReasonUnexpected,
		Message: fmt.Sprintf("Allocate failed due to %v, which is unexpected", err)}
}

// placeLate places a pod that was let in without: a critical one that others have made room for, or one that came under
// other rules. It is not refused any more.
func (a *Agent) placeLate(pod *corev1.Pod) {
	if why := a.place(pod); why != nil {
		a.log.Warn("a pod's CPUs, devices and memory may be far from one another", "pod", pod.Namespace+"/"+pod.Name,
			"reason", why.Message)
	}
}

// keepAllocated writes down what is set aside for a pod that begins.
func (a *Agent) keepAllocated(pod *corev1.Pod) error {
	a.placeLate(pod)
	return a.admission.keepAllocated(pod)
}

// vacate gives back what a pod has that has ended, as its status says. The pod that comes next may have been sent here
// for that, and would be refused if it had to wait until all that is left of this one has been removed.
func (a *Agent) vacate(pod *corev1.Pod) {
	if !ended(&pod.Status) || !a.cfg.Placing.Rule.On() && a.cfg.Placing.Memory == nil {
		return
	}
	for _, s := range podspec.Statuses(&pod.Status) {
		if s.State.Running != nil { // somebody else has written that it has ended
			return
		}
	}
	a.release(pod.UID)
}

// release gives back what a pod has.
func (a *Agent) release(uid types.UID) {
	a.memory.Release(uid)
	a.devices.Release(uid)
	a.cpus.Release(uid)
	if err := forgetPlaced(filepath.Join(a.cfg.podsFolder(), string(uid))); err != nil {
		a.log.Warn("cannot remove a pod's allocation: after a restart its resources stay reserved until its folder is removed", "pod", uid, "err",
			err)
	}
}

// halfPlaced is the file that is in a pod's folder while it is written down what the pod has.
const halfPlaced = "placing"

// forgetPlaced removes what is written down of what a pod has.
func forgetPlaced(folder string) error {
	var errs []error
	for _, name := range []string{memory.FileName, devices.FileName, cpus.FileName, halfPlaced} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// dropHalfPlaced forgets what an earlier process has written down in part when it was killed. Nothing of such a pod has
// been started: it is placed anew.
func (a *Agent) dropHalfPlaced() error {
	marks, err := filepath.Glob(filepath.Join(a.cfg.podsFolder(), "*", halfPlaced))
	for _, mark := range marks {
		err = errors.Join(err, forgetPlaced(filepath.Dir(mark)))
	}
	return err
}

// keepPlaced writes down what a pod has; all of it, or nothing.
func (a *Agent) keepPlaced(uid types.UID, p place.Placement) error {
	if len(p.CPUs) == 0 && len(p.Memory) == 0 && len(p.Devices) == 0 {
		return nil
	}
	folder := filepath.Join(a.cfg.podsFolder(), string(uid))
	mark := filepath.Join(folder, halfPlaced)
	err := os.MkdirAll(folder, 0o750)
	if err == nil {
		err = os.WriteFile(mark, nil, 0o600)
	}
	if err == nil && len(p.Memory) > 0 {
		err = a.memory.Keep(uid, p.Memory, p.Charge)
	}
	if err == nil && len(p.Devices) > 0 {
		err = a.devices.Reserve(uid, p.Devices)
	}
	if err == nil && len(p.CPUs) > 0 {
		err = a.cpus.Keep(uid, p.CPUs)
	}
	if err == nil {
		err = os.Remove(mark)
	}
	if err != nil {
		a.release(uid)
	}
	return err
}

// fixed says why the resources of a pod cannot be changed in place, in the kubelet's words.
func (a *Agent) fixed(now, asks *corev1.Pod) string {
	if why := a.fixedCPUs(now, asks); why != "" || a.cfg.Placing.Memory == nil {
		return why
	}
	if differ(now, asks, func(c *corev1.Container) bool { return len(bank.Needs(now, c)) > 0 },
		corev1.ResourceMemory) {
		return "Resize is infeasible for Guaranteed Pods alongside Memory Manager static policy"
	}
	return ""
}

// differ reports whether a container that counts asks for another amount.
func differ(now, asks *corev1.Pod, counts func(*corev1.Container) bool, name corev1.ResourceName) bool {
	were := map[string]*corev1.Container{}
	for c := range podspec.OwnContainers(&now.Spec) {
		were[c.Container.Name] = c.Container
	}
	for c := range podspec.OwnContainers(&asks.Spec) {
		was := were[c.Container.Name]
		if was == nil || !counts(was) {
			continue
		}
		before, after := was.Resources.Requests[name], c.Container.Resources.Requests[name]
		if !before.Equal(after) {
			return true
		}
	}
	return false
}

// Memory is part of [podresources.Source].
func (d deviceHolders) Memory(uid types.UID) bank.Held { return d.a.memory.Of(uid) }

// AllocatableMemory is part of [podresources.Source].
func (d deviceHolders) AllocatableMemory() bank.Machine { return d.a.memory.Machine() }
