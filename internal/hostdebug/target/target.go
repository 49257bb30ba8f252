// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Engine is what a target runs on.
type Engine string

// The engines.
const (
	Docker     Engine = "docker"
	Podman     Engine = "podman"
	Containerd Engine = "containerd"
	CRI        Engine = "cri"
	PID        Engine = "pid"
	Systemd    Engine = "systemd"
)

// Engines are all of them, in the order in which they are listed.
func Engines() []Engine { return []Engine{Docker, Podman, Containerd, CRI, PID, Systemd} }

// forms shows how a target of each engine is written.
func forms() map[Engine]string {
	return map[Engine]string{Docker: "docker:NAME", Podman: "podman:NAME", Containerd: "containerd:NAMESPACE/ID",
		CRI: "cri:ID or cri:POD/CONTAINER", PID: "pid:NUMBER", Systemd: "systemd:UNIT"}
}

// Help is a line for each form, for a command's help.
const Help = `  POD                      a pod, of a Wherry server or of another cluster
  deployment/NAME          the newest running pod of a Deployment; so with statefulset, daemonset, replicaset, job, service
  node/NAME                a node of a Wherry server
  docker:NAME              a container of Docker: name, or the beginning of its ID
  podman:NAME              a container of podman
  containerd:NAMESPACE/ID  a container of containerd; ID alone looks in all namespaces
  cri:ID                   a container of another CRI runtime; cri:POD/CONTAINER by its names
  pid:NUMBER               a process of this machine
  systemd:UNIT             a service of systemd, for example systemd:nginx`

// Target is something on this machine that can be debugged.
type Target struct {
	Engine    Engine
	Namespace string // of containerd, or the pod's name in cri:POD/CONTAINER; may be empty
	Name      string // a name or an ID
}

// String is the target as Parse reads it.
func (t Target) String() string {
	if t.Namespace != "" {
		return fmt.Sprintf("%s:%s/%s", t.Engine, t.Namespace, t.Name)
	}
	return fmt.Sprintf("%s:%s", t.Engine, t.Name)
}

const maxName = 253

// name is what engines take for names and IDs; systemd's also have @ and \x2d.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.@:\\-]*$`)

// Parse reads a target. onHost is false for what is not written as one: a pod's or a node's name.
func Parse(text string) (t Target, onHost bool, err error) {
	engine, rest, colon := strings.Cut(text, ":")
	if !colon {
		return Target{}, false, nil
	}
	t.Engine = Engine(engine)
	if !slices.Contains(Engines(), t.Engine) {
		return t, true, fmt.Errorf("%q: there is no %q to debug on: use %s, or the name of a pod, which has no colon",
			text, engine, allForms())
	}
	t.Name = rest
	if t.Engine == Containerd || t.Engine == CRI {
		if namespace, id, ok := strings.Cut(rest, "/"); ok {
			t.Namespace, t.Name = namespace, id
			if !valid(namespace) {
				return t, true, t.wrong(text)
			}
		}
	}
	if !valid(t.Name) {
		return t, true, t.wrong(text)
	}
	switch t.Engine {
	case PID:
		if n, err := strconv.ParseUint(t.Name, 10, 22); err != nil || n == 0 {
			return t, true, fmt.Errorf("%q: %q is not the number of a process: it is between 1 and 4194303", text,
				t.Name)
		}
	case Systemd:
		if !strings.Contains(t.Name, ".") {
			t.Name += ".service"
		}
	}
	return t, true, nil
}

func valid(text string) bool { return len(text) <= maxName && name.MatchString(text) }

func (t Target) wrong(text string) error {
	return fmt.Errorf("%q names nothing: write %s", text, forms()[t.Engine])
}

func allForms() string {
	var all []string
	for _, e := range Engines() {
		all = append(all, forms()[e])
	}
	return strings.Join(all, ", ")
}
