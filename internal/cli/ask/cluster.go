// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"net/url"
	"strconv"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// inCluster is a request for streams of debug.wherry.dev.
func inCluster(pod, subresource string, q url.Values, stdin, tty bool) Session {
	s := newSession(pod, subresource, q, stdin, tty)
	s.api = wire.Base
	return s
}

// Limits bound what a debugger takes of the machine, as quantities (512Mi, 0.5).
type Limits struct{ Memory, CPUs string }

// Shell is the request for a debugger beside a pod of a cluster with debug.wherry.dev (DA-05). The pod is not changed,
// so that there is nothing to come back to. term is the kind of the user's terminal.
func (d *Debug) Shell(pod string, command []string, writable bool, l Limits, term string) Session {
	q := url.Values{}
	set(q, "container", d.Target)
	set(q, wire.ParamImage, d.Image)
	set(q, wire.ParamProfile, d.Profile)
	set(q, wire.ParamUser, d.User)
	set(q, wire.ParamMemory, l.Memory)
	set(q, wire.ParamCPUs, l.CPUs)
	if d.TTY {
		set(q, wire.ParamTerm, term)
	}
	if d.TTL != 0 {
		q.Set(wire.ParamTTL, d.TTL.String())
	}
	if writable {
		q.Set(wire.ParamWritable, "true")
	}
	if len(command) > 0 {
		q["command"] = command
	}
	return inCluster(pod, wire.Shell, q, true, d.TTY)
}

// inCluster is the request for debug.wherry.dev.
func (e *Exec) inCluster(pod string, command []string, tty bool) Session {
	q := url.Values{}
	set(q, "container", e.Container)
	set(q, wire.ParamImage, e.Image)
	set(q, wire.ParamUser, e.User)
	set(q, wire.ParamMemory, e.Limits.Memory)
	set(q, wire.ParamCPUs, e.Limits.CPUs)
	if e.Writable {
		q.Set(wire.ParamWritable, "true")
	}
	if len(command) > 0 {
		q["command"] = command
	}
	return inCluster(pod, wire.Exec, q, e.Stdin, tty)
}

// inCluster is the request for debug.wherry.dev: archives are a matter of their own there, as a role may allow files
// and nothing else.
func (b Toolbox) inCluster() Session {
	q := url.Values{}
	set(q, wire.ParamUser, b.User)
	if a := b.Archive; a != nil {
		q.Set("container", a.Container)
		q.Set(wire.ParamPath, a.Path)
		q.Set(wire.ParamOp, wire.OpPack)
		if a.Unpack {
			q.Set(wire.ParamOp, wire.OpUnpack)
		}
		set(q, wire.ParamAfter, a.After)
		set(q, wire.ParamKeep, a.Keep)
		for name, on := range map[string]bool{wire.ParamTotal: a.Total, wire.ParamFollow: a.Follow} {
			if on {
				q.Set(name, strconv.FormatBool(on))
			}
		}
		return inCluster(b.Pod, wire.Files, q, b.Stdin, false)
	}
	set(q, "container", b.Sees)
	q.Set(wire.ParamImage, debugask.ToolboxImage)
	q["command"] = b.Command
	return inCluster(b.Pod, wire.Exec, q, b.Stdin, false)
}

// Archive is a tar archive of a container's files: out of it, or into it.
type Archive struct {
	Container string
	Path      string
	Unpack    bool   // into it
	Total     bool   // say first on the error stream how many bytes the files have
	Follow    bool   // what a link leads to, under the link's name
	After     string // what comes after this, as the toolbox's cp-pack --after takes it; "": all
	Keep      string // what is not whole is kept after a cut, for who has this token (cp-unpack --keep); "": it is not
}

// Command is the toolbox's command that makes the archive, or unpacks it.
func (a Archive) Command() []string {
	command := []string{"/bin/toolbox", "cp-pack", "--root", "/c/" + a.Container}
	if a.Unpack {
		command[1] = "cp-unpack"
	}
	if a.Total {
		command = append(command, "--total")
	}
	if a.Follow {
		command = append(command, "--follow")
	}
	if a.After != "" {
		command = append(command, "--after", a.After)
	}
	if a.Keep != "" {
		command = append(command, "--keep", a.Keep)
	}
	return append(command, a.Path)
}
