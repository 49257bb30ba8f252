// SPDX-License-Identifier: Apache-2.0

package sessionchild

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/wherryproject/wherry/internal/cluster/agent/talk"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/evidence"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/engines/byrpc"
)

const (
	logLines  = 200
	logMost   = 64 << 10        // bytes, of each container
	logAll    = 2 << 20         // bytes, of all: as JSON it may be six times as much, which fits into one report
	logWait   = 3 * time.Second // of each: it is an extra
	mostShown = 64              // containers, with the earlier ones
)

// reportEvidence reports what the runtime knows of a pod's containers.
func reportEvidence(ctx context.Context, o engines.Options, w wire.Pod, reports reporter) int {
	runtime, pod, err := findPod(ctx, o, w)
	if err != nil {
		return reports.refuse(err)
	}
	defer runtime.Close()
	all := wire.EvidenceOf{Containers: []wire.ContainerEvidence{}}
	left := logAll
	for _, c := range pod.Containers[:min(len(pod.Containers), mostShown)] {
		e := known(c)
		if c.Container != nil {
			e.Log = lastOf(logOf(ctx, c.Container), min(logMost, left))
			left -= len(e.Log)
		}
		all.Containers = append(all.Containers, e)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return reports.refuse(err)
	}
	reports.say(talk.Report{Evidence: text})
	return 0
}

// known is what a container's state says. (Pure.)
func known(c byrpc.PodContainer) wire.ContainerEvidence {
	e := wire.ContainerEvidence{Name: c.Name, Attempt: c.Attempt}
	if c.Container == nil {
		e.State, e.Message = "unknown", c.Err.Error()
		return e
	}
	e.ID, e.Image, e.State, e.Message = c.ID, c.Container.Image, string(c.State), c.Error
	e.StartedAt = timeOf(c.Started)
	e.Files = c.Alive() || c.Layers != nil && len(c.Layers.Overlay) > 0
	if c.State == engines.Exited {
		code := int32(c.ExitCode)
		e.FinishedAt, e.ExitCode, e.OOMKilled, e.Signal = timeOf(c.Finished), &code, c.OOMKilled,
			evidence.Signal(c.ExitCode)
	}
	return e
}

func timeOf(t time.Time) *time.Time {
	if t.Year() <= 1970 {
		return nil
	}
	t = t.UTC()
	return &t
}

// logOf is the end of a container's log, as far as there is one.
func logOf(ctx context.Context, c *engines.Container) string {
	ctx, cancel := context.WithTimeout(ctx, logWait)
	defer cancel()
	r, err := c.Log(ctx, logLines)
	if err != nil {
		if none := (*engines.NoLog)(nil); errors.As(err, &none) {
			return ""
		}
		return "(its log cannot be read: " + err.Error() + ")\n"
	}
	defer r.Close()
	text, _ := io.ReadAll(io.LimitReader(r, 1<<20)) // what there is of it
	return string(text)
}

// lastOf is the end of a text, of valid UTF-8 and not longer than it may be. (Pure.)
func lastOf(text string, most int) string {
	text = strings.ToValidUTF8(text[max(0, len(text)-most):], "\uFFFD")
	return strings.ToValidUTF8(text[max(0, len(text)-most):], "")
}
