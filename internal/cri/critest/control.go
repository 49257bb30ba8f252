// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"fmt"
	"time"
)

// Unsupport makes the runtime answer Unimplemented to these methods, as an older one would.
func (f *Fake) Unsupport(methods ...string) { f.setUnsupported(methods, true) }

// Support undoes Unsupport.
func (f *Fake) Support(methods ...string) { f.setUnsupported(methods, false) }

func (f *Fake) setUnsupported(methods []string, v bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range methods {
		f.unsupported[m] = v
	}
}

// Delay makes a method take time. Names are reserved before it, so a second create in the meantime is refused.
func (f *Fake) Delay(method string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delays[method] = d
}

// Fault lets fn fail calls before they do anything; nil ends it. fn must not call the fake.
func (f *Fake) Fault(fn func(Call) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fn
}

// DetachCancelled makes calls of [Fake.Client] that are given up go on to their end in the runtime while the caller
// already has its error: cancelled is not undone.
func (f *Fake) DetachCancelled(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.detach = on
}

// SetCondition takes a condition of the runtime's Status away (a reason) or gives it back ("").
func (f *Fake) SetCondition(kind, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if reason == "" {
		delete(f.notReady, kind)
		return
	}
	f.notReady[kind] = reason
}

// Down stops the daemon: streams drop, calls under way and all later ones fail with Unavailable. Containers run on.
func (f *Fake) Down() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isDown {
		f.isDown = true
		close(f.down)
		f.w.events.waiting = nil
	}
}

// Up starts the daemon again.
func (f *Fake) Up() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.isDown {
		f.isDown = false
		f.down = make(chan struct{})
	}
}

// Restart is Down and Up.
func (f *Fake) Restart() {
	f.Down()
	f.Up()
}

// Reboot is a reboot of a node that keeps the runtime's state in memory: no container, no sandbox, no name is left.
// Images stay.
func (f *Fake) Reboot() {
	f.Down()
	f.mu.Lock()
	for _, s := range sorted(f.w.sandboxes) {
		f.w.stopSandbox(s)
	}
	f.w.sandboxes, f.w.containers, f.w.names = map[string]*sandbox{}, map[string]*container{}, map[string]string{}
	f.mu.Unlock()
	f.Up()
}

// PowerCycle is a reboot of a node that keeps the runtime's state on disk, as containerd does: sandboxes are there, not
// ready, and what ran has ended with code 255 for an unknown reason.
func (f *Fake) PowerCycle() {
	f.Down()
	f.mu.Lock()
	for _, c := range sorted(f.w.containers) {
		f.w.exit(c, exitUnknown, reasonUnknown)
	}
	for _, s := range sorted(f.w.sandboxes) {
		f.w.stopSandbox(s)
	}
	f.w.events.waiting = nil
	f.mu.Unlock()
	f.Up()
}

// KillPause kills the pause process of a sandbox (full id): the sandbox is not ready any more, and what shares its PID
// namespace dies.
func (f *Fake) KillPause(sandboxID string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.w.sandboxes[sandboxID]
	if s == nil {
		return fmt.Errorf("no sandbox %q", sandboxID)
	}
	f.w.killPause(s)
	return nil
}

// Exit ends a running container (full id) with a code, now.
func (f *Fake) Exit(containerID string, code int32) error { return f.exitWith(containerID, code, "") }

// OOMKill ends a running container as the kernel does for want of memory.
func (f *Fake) OOMKill(containerID string) error {
	return f.exitWith(containerID, exitKilled, reasonOOM)
}

func (f *Fake) exitWith(id string, code int32, reason string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.w.containers[id]
	if c == nil || !c.running() {
		return fmt.Errorf("no container %q runs", id)
	}
	f.w.exit(c, code, reason)
	return nil
}

// Containers lists what is there, in the order of making.
func (f *Fake) Containers() []Info {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Info
	for _, c := range sorted(f.w.containers) {
		out = append(out, c.info(f.w))
	}
	return out
}

// Find gives the id of the newest container of that name in a pod.
func (f *Fake) Find(pod, name string) (id string, ok bool) {
	for _, i := range f.Containers() {
		if i.Pod == pod && i.Container == name {
			id, ok = i.ID, true
		}
	}
	return id, ok
}

// Sandboxes lists the ids of what is there, in the order of making, and whether each is ready.
func (f *Fake) Sandboxes() (ids []string, ready []bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range sorted(f.w.sandboxes) {
		ids, ready = append(ids, s.id), append(ready, s.ready)
	}
	return ids, ready
}

// PIDNamespace says who owns a container's PID namespace: a container's id, "pod:" and a sandbox's id, or "node"
// (PID-07).
func (f *Fake) PIDNamespace(containerID string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.w.containers[containerID]; c != nil {
		return c.pidns
	}
	return ""
}

// WriteLog adds lines to a running container's log, when logs are on.
func (f *Fake) WriteLog(containerID, stream string, lines ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.w.containers[containerID]
	if c == nil || c.log == nil || !c.running() {
		return fmt.Errorf("no container %q writes a log", containerID)
	}
	c.log.lines(stream, lines)
	return nil
}
