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
	Stdin     bool
	TTY       bool
	Quiet     bool
}

// AddFlags adds the flags of the command itself.
func (e *Exec) AddFlags(fl *pflag.FlagSet) {
	fl.StringVarP(&e.Container, "container", "c", "", "the container; default: the only main one. With --image: the one whose processes are seen")
	fl.StringVarP(&e.Image, "image", "m", "", "run the command from this image, with every container's files under /c")
	fl.BoolVar(&e.Writable, "writable", false, "with --image: let the command write to the containers' files")
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
	case e.TTY && !e.Stdin:
		return Session{}, errors.New("-t needs -i: a terminal that nobody types at")
	}
	q := url.Values{}
	set(q, "container", e.Container)
	set(q, debugask.ParamExecImage, e.Image)
	if e.Writable {
		q.Set(debugask.ParamExecWritable, "true")
	}
	if len(command) > 0 {
		q["command"] = command
	}
	// As with kubectl, scripts may say -it.
	return newSession(pod, "exec", q, e.Stdin, e.TTY && IsTerminal(in)), nil
}

// Toolbox is the request for one of the toolbox's commands, with every container's files under /c.
func Toolbox(pod string, writable, stdin bool, command ...string) Session {
	q := url.Values{debugask.ParamExecImage: {debugask.ToolboxImage}, "command": command}
	if writable {
		q.Set(debugask.ParamExecWritable, "true")
	}
	return newSession(pod, "exec", q, stdin, false)
}
