// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"errors"
	"io"
	"net/url"

	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// Exec is the flags of `wherry exec`.
type Exec struct {
	Container string
	Image     string
	Writable  bool
	User      string
	Stdin     bool
	TTY       bool
	Quiet     bool
	// Limits bound what an image takes beside a pod of a cluster that is not Wherry's.
	Limits Limits
}

// AddFlags adds the flags of the command itself.
func (e *Exec) AddFlags(fl *pflag.FlagSet) {
	fl.StringVarP(&e.Container, "container", "c", "",
		"the container; default: the first, as with kubectl. With --image: the one whose processes it sees")
	fl.StringVarP(&e.Image, "image", "m", "",
		"run the command from this image, with the files of every container under /c")
	fl.BoolVar(&e.Writable, "writable", false, "with --image: let the command write to the containers' files")
	fl.StringVarP(&e.User, "user", "u", "",
		"with --image: run as this user, UID or UID:GID; default: root, or a container's user if the pod must not run as root")
	fl.BoolVarP(&e.Stdin, "stdin", "i", false, "pass standard input to the command")
	fl.BoolVarP(&e.TTY, flagTTY, "t", false, "standard input is a terminal")
	fl.BoolVarP(&e.Quiet, "quiet", "q", false, "print only the command's output")
}

// Session is the request, or an error if the flags make none.
func (e *Exec) Session(pod string, command []string, in io.Reader) (Session, error) {
	switch {
	case e.Image == "" && len(command) == 0:
		return Session{},
			errors.New("no command given: use wherry exec POD -- COMMAND, or --image IMAGE to run the image's own")
	case e.Image == "" && e.Writable:
		return Session{},
			errors.New("--writable only works with --image: a command in a container can write whatever that container can")
	case e.Image == "" && e.User != "":
		return Session{},
			errors.New("--user only works with --image: a command in a container runs as that container's user")
	case e.TTY && !e.Stdin:
		return Session{}, errors.New("-t needs -i: a terminal without input is of no use")
	}
	if err := checkUser(e.User); err != nil {
		return Session{}, err
	}
	q := url.Values{}
	set(q, "container", e.Container)
	set(q, debugask.ParamExecImage, e.Image)
	set(q, debugask.ParamExecUser, e.User)
	if e.Writable {
		q.Set(debugask.ParamExecWritable, "true")
	}
	if len(command) > 0 {
		q["command"] = command
	}
	tty := e.TTY && IsTerminal(in) // as with kubectl, scripts may say -it
	s := newSession(pod, "exec", q, e.Stdin, tty)
	if e.Image != "" {
		s.InCluster = new(e.inCluster(pod, command, tty))
	}
	return s, nil
}

// Toolbox is a request for one of the toolbox's commands, with every container's files under /c.
type Toolbox struct {
	Pod      string
	User     string // UID[:GID]; "" for root, or, where the pod allows no root, the user of UserOf
	UserOf   string
	Sees     string // the container whose processes it sees
	Writable bool
	Stdin    bool
	Command  []string
	// Archive is an archive that is asked for in place of a command.
	Archive *Archive
}

// Session is the request.
func (b Toolbox) Session() Session {
	if b.Archive != nil {
		b.Command, b.Writable = b.Archive.Command(), b.Archive.Unpack
	}
	q := url.Values{debugask.ParamExecImage: {debugask.ToolboxImage}, "command": b.Command}
	set(q, debugask.ParamExecUser, b.User)
	set(q, debugask.ParamExecUserOf, b.UserOf)
	set(q, "container", b.Sees)
	if b.Writable {
		q.Set(debugask.ParamExecWritable, "true")
	}
	s := newSession(b.Pod, "exec", q, b.Stdin, false)
	s.InCluster = new(b.inCluster())
	return s
}
