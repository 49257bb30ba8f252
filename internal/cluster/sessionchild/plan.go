// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/engines/byrpc"
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
	"github.com/wherryproject/wherry/internal/hostdebug/ocispec"
	"github.com/wherryproject/wherry/internal/hostdebug/session"
)

// planned is a session as it is to be run, and what there is to say of it.
type planned struct {
	request session.Request
	notes   []string
}

// plan decides what a session joins and shows, of what the runtime has of its pod. (Pure.)
func plan(w wire.Session, pod *byrpc.Pod) (planned, error) {
	user, err := debugask.ParseUser(w.User)
	if err != nil {
		return planned{}, bad("user: %v", err)
	}
	p := planned{request: session.Request{ID: w.ID, Keeper: pod.Keeper, Writable: w.Writable,
		TTL: time.Duration(w.Seconds) * time.Second, Record: recordOf(w),
		Options: ocispec.Options{Command: w.Command, TTY: w.TTY, User: user, Profile: w.Profile, Memory: w.Memory,
			CPUs: w.CPUs, Term: w.Term}}}
	if w.Container != "" {
		if p.request.Target, err = targetOf(w, pod); err != nil {
			return planned{}, err
		}
	}
	if t := p.request.Target; pod.Keeper == 0 && (t == nil || !t.Alive()) {
		p.request.Keeper, p.request.KeeperName = anyProcess(pod)
	}
	if p.request.Target == nil && p.request.Keeper == 0 {
		p.notes = append(p.notes,
			"no process of the pod runs: there is no network of it to be in, and its last files are shown")
	} else if t := p.request.Target; t != nil && !t.Alive() {
		p.notes = append(p.notes, fmt.Sprintf("container %s is not running: its last files are under /c/%s, "+
			"its log and state under /c/.wherry/%s", t.Name, t.FolderName(), t.FolderName()))
	}
	if w.As == wire.Shell {
		if w.TTY {
			p.notes = append(p.notes, whatItIs(w))
		}
		return p, nil
	}
	beside, notes := neighbours(w, pod)
	p.request.Beside, p.notes = beside, append(p.notes, notes...)
	return p, nil
}

// whatItIs shows somebody at a terminal what he has and for how long. (Pure.)
func whatItIs(w wire.Session) string {
	text := "in container " + w.Container
	if len(w.Order) > 1 {
		text += fmt.Sprintf(" (--target names another one of %s)", strings.Join(w.Order, ", "))
	}
	return fmt.Sprintf("%s, for %s (--ttl)", text, time.Duration(w.Seconds)*time.Second)
}

// anyProcess is the one of a container of the pod that runs, where its runtime keeps none for the pod itself, with the
// container's name; 0: none does. (Pure.)
func anyProcess(pod *byrpc.Pod) (pid int, name string) {
	for _, c := range pod.Containers {
		if c.Container != nil && c.Container.Alive() {
			return c.Container.PID, c.Name
		}
	}
	return 0, ""
}

// targetOf is the container that is named. (Pure.)
func targetOf(w wire.Session, pod *byrpc.Pod) (*engines.Container, error) {
	one := newest(pod, w.Container)
	switch {
	case one == nil:
		return nil, &badRequest{http.StatusNotFound, "NotFound",
			fmt.Sprintf("container %s of pod %s/%s has not been made on this node yet, or is not kept there any more",
				w.Container, w.Pod.Namespace, w.Pod.Name)}
	case one.Err != nil:
		return nil, fmt.Errorf("container %s: %w", one.Name, one.Err)
	case one.Container.Alive() || !w.Writable:
		return one.Container, nil
	}
	return nil, &badRequest{http.StatusConflict, "Conflict",
		fmt.Sprintf("container %s is not running: its files are evidence, and can be read only", one.Name)}
}

// neighbours are the containers whose files are shown, in their order. (Pure.)
func neighbours(w wire.Session, pod *byrpc.Pod) (all []*engines.Container, notes []string) {
	for _, name := range w.Order {
		one := newest(pod, name)
		switch {
		case name == w.Container:
		case one == nil:
			notes = append(notes, fmt.Sprintf("container %s has no files on this node", name))
		case one.Err != nil:
			notes = append(notes, fmt.Sprintf("container %s is not shown: %v", name, one.Err))
		default:
			all = append(all, one.Container)
		}
	}
	return all, notes
}

// newest is the newest container of a name. (Pure.)
func newest(pod *byrpc.Pod, name string) *byrpc.PodContainer {
	i := slices.IndexFunc(pod.Containers, func(c byrpc.PodContainer) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &pod.Containers[i]
}

// recordOf is what others see of a session. (Pure.)
func recordOf(w wire.Session) guard.Record {
	r := guard.Record{Target: "pod:" + w.Pod.Namespace + "/" + w.Pod.Name, User: w.By, As: w.As, Container: w.Container,
		Image: w.Image, Profile: w.Profile,
		Pod: &guard.Pod{Namespace: w.Pod.Namespace, Name: w.Pod.Name, UID: w.Pod.UID}}
	return r
}

// ownImage is the image of a container of this pod that a reference means, by the runtime's own name for it; empty if
// none runs from it. Others' images are not taken from the node's store: a pod could read what it may not pull. (Pure.)
func ownImage(ref string, pod *byrpc.Pod) string {
	for _, c := range pod.Containers {
		if c.Container != nil && c.ImageRef != "" && sameImage(c.Container.Image, ref) {
			return c.ImageRef
		}
	}
	return ""
}

// sameImage reports whether two references mean the same, one of them perhaps spelled out. (Pure.)
func sameImage(a, b string) bool { return spelledOut(a) == spelledOut(b) }

func bad(format string, args ...any) error {
	return &badRequest{http.StatusBadRequest, "BadRequest", strings.TrimSpace(fmt.Sprintf(format, args...))}
}
