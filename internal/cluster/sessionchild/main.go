// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/engines/byrpc"
	"github.com/wherryproject/wherry/internal/hostdebug/session"
)

// exitBroken is the exit code of a process that cannot report what is wrong to anybody.
const exitBroken = 1

// Main is the process. Its standard streams are those of the session; what it is to do and what it has to say go by
// talk's descriptors. Without a kit it needs tools, which may be nil else. It returns the exit code.
func Main(in, out, errs *os.File, tools session.Tools) int {
	var st unix.Stat_t
	for _, fd := range []int{talk.AskFD, talk.ReportFD} {
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
			fmt.Fprintln(errs, "this is for wherry's own use")
			return 2
		}
		unix.CloseOnExec(fd)
	}
	asked := bufio.NewReader(os.NewFile(talk.AskFD, "ask"))
	reports := reporter{json.NewEncoder(os.NewFile(talk.ReportFD, "report"))}
	var ask talk.Ask
	line, err := io.ReadAll(io.LimitReader(lineOf{asked}, talk.MostAsk))
	if err == nil {
		err = json.Unmarshal(line, &ask)
	}
	if err != nil {
		return reports.refuse(fmt.Errorf("what the agent asks for cannot be read: %w", err))
	}
	use, err := equip(ask, tools)
	if err != nil {
		return reports.refuse(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	// Caught, not ignored, for what it starts is to have them as usual: writing to a client that is gone is no
	// end, and what comes before the session's own ears are open, or after, is one in good order.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM)
	go func() {
		if sig, ok := (<-signals).(syscall.Signal); ok {
			cancel(&session.Signalled{Signal: sig})
		}
	}()
	go func() {
		_, _ = io.Copy(io.Discard, asked) // it ends with the agent, by whatever error
		cancel(nil)
	}()
	o := engines.Options{Address: ask.CRISocket, Getenv: os.Getenv, Proc: "/proc"}
	switch {
	case ask.Session != nil:
		return runSession(ctx, o, *ask.Session, use, session.Streams{In: in, Out: out, Err: errs}, reports)
	case ask.Evidence != nil:
		return reportEvidence(ctx, o, *ask.Evidence, reports)
	case ask.Runtime:
		return reportRuntime(ctx, o, reports)
	}
	return reports.refuse(errors.New("the agent asks for nothing"))
}

// equipment is what a session is made with.
type equipment struct {
	tools session.Tools
	kit   *os.File
	guard string // the program that guards it, as it is found from whichever mount namespace
}

// equip finds that. Descriptors are found by this process's number, for they are others in what it starts.
func equip(ask talk.Ask, tools session.Tools) (equipment, error) {
	switch {
	case ask.Kit:
		unix.CloseOnExec(talk.KitFD)
		unix.CloseOnExec(talk.GuardFD)
		return equipment{kit: os.NewFile(talk.KitFD, "kit"),
			guard: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), talk.GuardFD)}, nil
	case tools == nil && ask.Session != nil:
		return equipment{}, errors.New("the agent has no kit for this program: a defect of wherry")
	}
	return equipment{tools: tools, guard: "/proc/self/exe"}, nil
}

// lineOf reads a line, and then nothing.
type lineOf struct{ from *bufio.Reader }

// Read implements io.Reader.
func (l lineOf) Read(p []byte) (n int, err error) {
	for n < len(p) {
		b, err := l.from.ReadByte()
		if err != nil {
			return n, err
		}
		if b == '\n' {
			return n, io.EOF
		}
		p[n] = b
		n++
	}
	return n, nil
}

// reporter reports to the agent.
type reporter struct{ to *json.Encoder }

// say writes a report. An agent that is gone does not hear it, and its end is noticed elsewhere.
func (r reporter) say(report talk.Report) { _ = r.to.Encode(report) }

// refuse says why there is nothing, and returns the exit code.
func (r reporter) refuse(err error) int {
	r.say(talk.Report{Refused: refusalOf(err)})
	return exitBroken
}

// refusalOf is an error as a refusal. (Pure.)
func refusalOf(err error) *talk.Refusal {
	code, reason := http.StatusInternalServerError, "InternalError"
	if away := (*byrpc.NotHere)(nil); errors.As(err, &away) {
		code, reason = http.StatusNotFound, wire.ReasonPodNotOnNode
		if away.Other != "" {
			code = http.StatusConflict
		}
	}
	if bad := (*badRequest)(nil); errors.As(err, &bad) {
		code, reason = bad.code, bad.reason
	}
	return &talk.Refusal{Code: code, Reason: reason, Message: err.Error()}
}

// badRequest is a request that cannot be granted, by who has made it.
type badRequest struct {
	code         int
	reason, text string
}

func (e *badRequest) Error() string { return e.text }

// findTime is how long the runtime may take to say what it knows of a pod: somebody waits for the answer.
const findTime = 20 * time.Second

// findPod asks the runtime for a pod. The caller closes the runtime.
func findPod(ctx context.Context, o engines.Options, pod wire.Pod) (*byrpc.CRI, *byrpc.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	runtime, err := byrpc.NewCRI(ctx, o)
	if err != nil {
		return nil, nil, forInstaller(err)
	}
	p, err := runtime.Pod(ctx, nameOf(pod))
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		err = fmt.Errorf("the node's container runtime has not said within %s what it knows of the pod", findTime)
	}
	if err != nil {
		return nil, nil, errors.Join(err, runtime.Close())
	}
	return runtime, p, nil
}

func nameOf(pod wire.Pod) byrpc.PodName {
	return byrpc.PodName{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}
