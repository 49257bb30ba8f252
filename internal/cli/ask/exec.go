// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"errors"
	"io"
	"net/url"

	"github.com/spf13/pflag"

	"github.com/wherryproject/wherry/internal/debugask"
)

// Exec is what `wherry exec` is told.
type Exec struct {
	Container string
	Image     string
	Writable  bool
	User      string
	Stdin     bool
	TTY       bool
	Quiet     bool
}

// AddFlags adds the flags of the command itself.
func (e *Exec) AddFlags(fl *pflag.FlagSet) {
	fl.StringVarP(&e.Container, "container", "c", "", "the container; default: as with kubectl, the first. With --image: the one whose processes are seen")
	fl.StringVarP(&e.Image, "image", "m", "", "run the command from this image, with every container's files under /c")
	fl.BoolVar(&e.Writable, "writable", false, "with --image: let the command write to the containers' files")
	fl.StringVarP(&e.User, "user", "u", "", "with --image: run it as this user, UID or UID:GID; default: root, or a container's user where the pod allows no root")
	fl.BoolVarP(&e.Stdin, "stdin", "i", false, "hand standard input on")
	fl.BoolVarP(&e.TTY, flagTTY, "t", false, "standard input is a terminal")
	fl.BoolVarP(&e.Quiet, "quiet", "q", false, "say nothing but what the command says")
}

// Session is the request, or an error if the flags make none.
func (e *Exec) Session(pod string, command []string, in io.Reader) (Session, error) {
	switch {
	case e.Image == "" && len(command) == 0:
		return Session{}, errors.New("which command? wherry exec POD -- COMMAND, or --image IMAGE for that image's own")
	case e.Image == "" && e.Writable:
		return Session{}, errors.New("--writable is for --image: a command in a container writes as that container may")
	case e.Image == "" && e.User != "":
		return Session{}, errors.New("--user is for --image: a command in a container runs as that container's user")
	case e.TTY && !e.Stdin:
		return Session{}, errors.New("-t needs -i: a terminal that nobody types at")
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
	// As with kubectl, scripts may say -it.
	return newSession(pod, "exec", q, e.Stdin, e.TTY && IsTerminal(in)), nil
}

// Toolbox is a request for one of the toolbox's commands, with every container's files under /c.
type Toolbox struct {
	Pod      string
	User     string // UID[:GID]; "" for root, or, where the pod allows no root, the user of UserOf
	UserOf   string
	Writable bool
	Stdin    bool
	Command  []string
}

// Session is the request.
func (b Toolbox) Session() Session {
	q := url.Values{debugask.ParamExecImage: {debugask.ToolboxImage}, "command": b.Command}
	set(q, debugask.ParamExecUser, b.User)
	set(q, debugask.ParamExecUserOf, b.UserOf)
	if b.Writable {
		q.Set(debugask.ParamExecWritable, "true")
	}
	return newSession(b.Pod, "exec", q, b.Stdin, false)
}
