// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/wherryproject/wherry/internal/cli/images/engine"
	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/engines/byrpc"
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
	"github.com/wherryproject/wherry/internal/hostdebug/image"
	"github.com/wherryproject/wherry/internal/hostdebug/session"
	"github.com/wherryproject/wherry/internal/podspec"
)

// preparing is how long a session may take until it runs: an image may be large. Its limit counts from then.
const preparing = 30 * time.Minute

// runSession runs a session from its request to its end.
func runSession(ctx context.Context, o engines.Options, w wire.Session, use equipment,
	streams session.Streams, reports reporter) int {
	machine := guard.Here()
	if err := machine.Keep(w.ID); err != nil {
		machine.Leave(w.ID)
		return reports.refuse(err)
	}
	defer machine.Leave(w.ID)
	runtime, pod, err := findPod(ctx, o, w.Pod)
	if err != nil {
		return reports.refuse(err)
	}
	defer runtime.Close()
	p, err := plan(w, pod)
	if err != nil {
		return reports.refuse(err)
	}
	reports.say(talk.Report{Ready: &talk.Ready{Notes: p.notes}})
	lines := lines{streams.Err, w.TTY}
	req := p.request
	req.Bounded, req.Within = true, preparing
	req.Tools, req.Kit, req.Self, req.Note = use.tools, use.kit, use.guard,
		func(text string) { lines.print("wherry: " + text) }
	req.Recheck = func(ctx context.Context) error { return runtime.Still(ctx, pod, nameOf(w.Pod)) }
	if w.Image != "" && !podspec.IsToolbox(w.Image) {
		req.Image = imageOf(w.Image, pod, runtime, req.Note)
	}
	code, err := session.Run(ctx, req, streams)
	reports.say(talk.Report{Ended: endOf(code, err, lines)})
	return 0
}

// endOf is what a session has come to. What its user is to know beside an exit code is printed.
func endOf(code int, err error, l lines) *talk.Ended {
	ended := (*session.Ended)(nil)
	switch {
	case err == nil:
		return &talk.Ended{Code: code}
	case errors.As(err, &ended):
		l.print("wherry: " + err.Error())
		return &talk.Ended{Code: code}
	case code != 0:
		l.print("wherry: " + err.Error())
		return &talk.Ended{Code: code}
	}
	return &talk.Ended{Error: err.Error()}
}

// lines are for the user, on the session's own error stream.
type lines struct {
	to  io.Writer
	raw bool // it is a terminal that does not go back to the first column by itself
}

// printTime is how long the reader of a line may take to make room for it.
const printTime = 5 * time.Second

// print says a line. It does not wait for a reader who does not read, for what comes after it is not for him alone.
func (l lines) print(text string) {
	end := "\n"
	if l.raw {
		end = "\r\n"
	}
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		fmt.Fprint(l.to, text+end)
	}()
	timer := time.NewTimer(printTime)
	defer timer.Stop()
	select {
	case <-printed:
	case <-timer.C:
	}
}

const (
	mostImage = 16 << 30 // bytes of an image's files
	spareDisk = 2 << 30  // bytes that are left to the node's own
)

// imageOf is an image that a session runs from: of the node, if a container of this pod runs from it, else of its
// registry, without credentials.
func imageOf(ref string, pod *byrpc.Pod, runtime *byrpc.CRI, note func(string)) session.Image {
	i := &image.Image{Ref: ref, Keys: anonymous{}, Reach: beyondNode(), Most: mostImage, Spare: spareDisk,
		Whose: "it is pulled without credentials: use an image that everybody may pull, or one of the pod's own",
		Note:  func(format string, args ...any) { note(fmt.Sprintf(format, args...)) }}
	if own := ownImage(ref, pod); own != "" {
		o := runtime.Containerd()
		i.Own = func(ctx context.Context) (io.ReadCloser, error) {
			return engine.Source{Engine: "containerd", Image: own}.Open(ctx,
				engine.Options{Address: o.Address, Getenv: o.Getenv, Namespace: "k8s.io"})
		}
	}
	return i
}

// anonymous are no credentials.
type anonymous struct{}

// Resolve implements authn.Keychain.
func (anonymous) Resolve(authn.Resource) (authn.Authenticator, error) { return authn.Anonymous, nil }

// spelledOut is a reference with its registry and tag; itself where it is none. (Pure.)
func spelledOut(ref string) string {
	r, err := name.ParseReference(ref)
	if err != nil {
		return ref
	}
	return r.Name()
}
