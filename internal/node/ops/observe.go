// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/node/plan"
)

// Observe asks the runtime and the node's folders what there is of a pod.
func (r *Runner) Observe(ctx context.Context, pod *corev1.Pod) (plan.Seen, error) {
	o, err := r.CRI.Observe(ctx, string(pod.UID))
	if err != nil {
		return plan.Seen{}, err
	}
	seen := plan.Seen{Logs: r.Logs.Has(pod), Volumes: r.hasFolders(pod)}
	if r.Cgroups != nil && len(o.Sandboxes) > 0 {
		if give, ok := r.Cgroups.PodAmounts(pod); ok {
			seen.Group = &give
		}
	}
	if r.Devices != nil {
		seen.Devices = r.Devices.Health(pod.UID)
	}
	if r.CPUs != nil {
		seen.Unbound, seen.UnboundPod = r.CPUs.Unbound(pod)
	}
	for _, s := range o.Sandboxes {
		seen.Sandboxes = append(seen.Sandboxes, sandboxFacts(s))
	}
	for _, c := range o.Containers {
		f := containerFacts(c)
		f.Condemned = r.verdictOn(pod, f)
		if f.Exited() {
			f.Message = r.lastWords(pod, c.Status, f)
		}
		seen.Containers = append(seen.Containers, f)
	}
	return seen, nil
}

// hasFolders tells whether the pod has a folder for its volumes, or a cgroup: a container whose start was given up may
// make the latter again when both were gone.
func (r *Runner) hasFolders(pod *corev1.Pod) bool {
	_, err := os.Lstat(filepath.Join(r.PodsFolder, string(pod.UID)))
	return err == nil || r.Cgroups != nil && r.Cgroups.HasPod(pod.UID)
}

func sandboxFacts(s *runtimeapi.PodSandboxStatus) plan.Sandbox {
	out := plan.Sandbox{ID: s.GetId(), Attempt: s.GetMetadata().GetAttempt(), CreatedAt: at(s.GetCreatedAt()),
		Ready: s.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY}
	if ip := s.GetNetwork().GetIp(); ip != "" {
		out.IPs = append(out.IPs, ip)
	}
	for _, ip := range s.GetNetwork().GetAdditionalIps() {
		out.IPs = append(out.IPs, ip.GetIp())
	}
	return out
}

func containerFacts(o cri.ObservedContainer) plan.Container {
	s := o.Status
	c := plan.Container{ID: s.GetId(), Name: s.GetMetadata().GetName(), Attempt: s.GetMetadata().GetAttempt(),
		SandboxID: o.SandboxID, CreatedAt: at(s.GetCreatedAt()), ExitCode: s.GetExitCode(), Reason: s.GetReason(),
		Message: s.GetMessage(), Image: s.GetImage().GetUserSpecifiedImage(), ImageID: s.GetImageRef(),
		SpecImage: s.GetAnnotations()[annotationImage], StopSignal: signalName(s.GetStopSignal())}
	if c.Image == "" {
		c.Image = s.GetImage().GetImage()
	}
	if u := s.GetUser().GetLinux(); u != nil {
		c.User = &corev1.LinuxContainerUser{UID: u.GetUid(), GID: u.GetGid(),
			SupplementalGroups: u.GetSupplementalGroups()}
	}
	c.Made, c.Given = sizeOf(s.GetAnnotations()[annotationSize]), givenTo(s.GetResources().GetLinux())
	c.Streak = streakOf(s.GetAnnotations()[annotationStreak])
	c.Round = roundOf(s.GetAnnotations()[annotationRound])
	switch s.GetState() {
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		c.StartedAt = at(s.GetStartedAt())
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		c.StartedAt, c.FinishedAt = at(s.GetStartedAt()), at(s.GetFinishedAt())
		if c.FinishedAt.IsZero() { // some runtimes leave it out when the start failed
			c.FinishedAt = maxTime(c.StartedAt, c.CreatedAt)
		}
	case runtimeapi.ContainerState_CONTAINER_UNKNOWN:
		c.StartedAt, c.Lost = at(s.GetStartedAt()), true
	}
	return c
}

// mostStreak is the longest streak that is told from a longer one: the back-off has long been at its limit.
const mostStreak = 1000

// streakOf reads how many restarts in a row led to a container. What is no such number counts as none.
func streakOf(text string) int {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return int(min(n, mostStreak))
}

// roundOf reads how often all containers had been started again before a container was made.
func roundOf(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// lastWords is the termination message (PL-11): what the container wrote to its file, or, if its policy says so and it
// failed without a word, the end of its log.
func (r *Runner) lastWords(pod *corev1.Pod, s *runtimeapi.ContainerStatus, c plan.Container) string {
	text, err := r.Volumes.TerminationMessage(pod.UID, c.Name, c.Attempt)
	if err != nil {
		r.Logger.Warn("cannot read the termination message", "pod", pod.Namespace+"/"+pod.Name, "container", c.Name,
			"err", err)
	}
	fallback := s.GetAnnotations()[cri.AnnotationTerminationMessagePolicy] == string(corev1.TerminationMessageFallbackToLogsOnError)
	if text == "" && fallback && c.ExitCode != 0 {
		text = tail(r.Logs.File(pod, c.Name, c.Attempt))
	}
	text = strings.ToValidUTF8(text, "\uFFFD") // it may be anything, or be cut anywhere; the API keeps text
	switch {
	case text == "":
		return c.Message
	case c.Message == "":
		return text
	}
	return c.Message + ": " + text
}

// Bounds of a termination message taken from a log.
const (
	tailLines = 80
	tailBytes = 2048
	// tailRead is how much of a log is looked at: runtimes break lines at 16 KiB, and the last may be one.
	tailRead = 64 << 10
)

// tail returns the last lines of a log in CRI format, without what the format adds.
func tail(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(0, info.Size()-tailRead)
	data, err := io.ReadAll(io.NewSectionReader(f, from, tailRead))
	if err != nil {
		return ""
	}
	if from > 0 { // it begins in the middle of a line
		_, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	var b strings.Builder
	for _, line := range lines {
		if f := strings.SplitN(line, " ", 4); len(f) == 4 {
			b.WriteString(f[3])
			if f[2] != "P" {
				b.WriteByte('\n')
			}
		}
	}
	text := b.String()
	if len(text) > tailBytes {
		text = text[len(text)-tailBytes:]
	}
	return text
}

// at turns the CRI's nanoseconds into a time; 0 is no time.
func at(ns int64) time.Time {
	if ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
