// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// Debug is the flags of `wherry debug`.
type Debug struct {
	Pod       string
	Container string
	Image     string
	Target    string
	Profile   string
	TTL       time.Duration
	TTY       bool
	User      string
	Remove    bool
	Quiet     bool
	Stdin     bool // accepted as in kubectl; standard input is always passed on
	// Request is this command's own word, by which it knows a run that it asked for from those before (DC-03).
	Request string
}

// AddFlags adds the flags of the command itself.
func (d *Debug) AddFlags(fl *pflag.FlagSet) {
	fl.StringVarP(&d.Pod, "pod", "p", "", "the pod, if its name is also the name of a command")
	fl.StringVarP(&d.Container, "container", "c", "",
		"name of the debug container; default: debug, or debug-2 and so on if that is running")
	fl.StringVarP(&d.Image, "image", "m", "", "image of the debug container; default: the built-in toolbox")
	fl.StringVar(&d.Target, "target", "",
		"container whose processes it sees; default: the pod's main container, if there is only one; on a cluster that is not Wherry's, the pod's default container, or its first")
	fl.StringVar(&d.Profile, "profile", "", "privileges: "+strings.Join(debugask.Profiles(), ", ")+"; default: general")
	fl.DurationVar(&d.TTL, "ttl", 0,
		"stop it after this long, for example 30m; default: never; on a cluster that is not Wherry's, after an hour")
	fl.BoolVarP(&d.TTY, flagTTY, "t", false, "allocate a terminal; default: if standard input is one")
	fl.StringVarP(&d.User, "user", "u", "",
		"run as this user: UID or UID:GID; default: root, or the target's user if the pod must not run as root (on a cluster that is not Wherry's: only with --profile restricted)")
	fl.BoolVarP(&d.Stdin, "stdin", "i", false,
		"pass standard input; always on, accepted for compatibility with kubectl debug and docker exec")
	fl.BoolVar(&d.Remove, "rm", false, "stop it when this session ends, even if you leave with Ctrl-P Ctrl-Q")
	fl.BoolVarP(&d.Quiet, "quiet", "q", false, "print only the command's output")
}

const flagTTY = "tty"

// Complete decides what a flag that was not given depends on: without --tty there is a terminal if standard input is
// one. It makes the command's own word, unless there is one. The error is about what was given.
func (d *Debug) Complete(fl *pflag.FlagSet, in io.Reader) error {
	if d.Request == "" {
		d.Request = rand.Text()
	}
	if !fl.Changed(flagTTY) || d.TTY && d.Stdin { // -it is what everybody types, in scripts too
		d.TTY = IsTerminal(in)
	}
	if d.TTL < 0 {
		return fmt.Errorf("--ttl: %s is not a duration above zero", d.TTL)
	}
	return cmp.Or(checkProfile(d.Profile), checkUser(d.User))
}

// checkProfile refuses a profile that there is none of. A newer server may have more; a client of its version knows
// them.
func checkProfile(name string) error {
	if all := debugask.Profiles(); name != "" && !slices.Contains(all, name) {
		return fmt.Errorf("--profile: there is no profile %q: choose one of %s", name, strings.Join(all, ", "))
	}
	return nil
}

// checkUser refuses what --user cannot mean.
func checkUser(text string) error {
	if _, err := debugask.ParseUser(text); err != nil {
		return fmt.Errorf("--user: %w", err)
	}
	return nil
}

// Makes reports whether any flag was given that is about a new debug container only.
func (d *Debug) Makes() bool {
	return d.Profile != "" || d.User != "" || d.TTL != 0
}

// First is the request for a debug container that nobody named. Most pods live and have nobody by that name, so it is
// made without looking; it asks to be refused if there is nothing to join.
func (d *Debug) First(pod string, command []string) Session {
	s := d.Add(pod, debugask.FirstName, command)
	s.Query.Set(debugask.ParamUnlessDead, "true")
	return s
}

// Add is the request for a debug container (DC-03). The command's words are run as they are.
func (d *Debug) Add(pod, name string, command []string) Session {
	q := url.Values{debugask.ParamName: {name}, debugask.ParamImage: {d.ImageOrToolbox()}}
	set(q, debugask.ParamTarget, d.Target)
	set(q, debugask.ParamProfile, d.Profile)
	set(q, debugask.ParamUser, d.User)
	set(q, debugask.ParamRequest, d.Request)
	if d.TTL != 0 {
		q.Set(debugask.ParamTTL, d.TTL.String())
	}
	if len(command) > 0 {
		q["command"] = each(command, Literal)
	}
	s := newSession(pod, "exec", q, true, d.TTY)
	s.DetachKeys = true
	return s
}

// Attach is the request that comes back to a debug container (DC-07), which has a terminal or not.
func (d *Debug) Attach(pod, name string, tty bool) Session {
	s := newSession(pod, "attach", url.Values{"container": {name}}, true, tty)
	s.DetachKeys = tty
	return s
}

// Visit is the request for a command beside the pod's containers, which need not run (IX-09).
func (d *Debug) Visit(pod string, command []string) Session {
	q := url.Values{debugask.ParamExecImage: {d.ImageOrToolbox()}}
	set(q, debugask.ParamExecUser, d.User)
	set(q, debugask.ParamExecUserOf, d.Target)
	if len(command) > 0 {
		q["command"] = command
	}
	return newSession(pod, "exec", q, true, d.TTY)
}

// ImageOrToolbox is the image asked for, or the built-in one.
func (d *Debug) ImageOrToolbox() string {
	if d.Image == "" {
		return debugask.ToolboxImage
	}
	return d.Image
}

// AnnouncementBeside says that a debugger beside a pod is asked for.
func (d *Debug) AnnouncementBeside(pod string) string {
	return fmt.Sprintf("debugger beside pod %s, image %s; the pod is not changed", pod, d.ImageOrToolbox())
}

// Announcement says that a debug container is asked for.
func (d *Debug) Announcement(pod, name string) string {
	return fmt.Sprintf("debug container %s in pod %s, image %s", name, pod, d.ImageOrToolbox())
}

// Talks reports whether there is a user at out who wants to know more than what the command says.
func (d *Debug) Talks(out io.Writer) bool { return !d.Quiet && (d.TTY || Colours(out)) }
