// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"context"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/wherryproject/wherry/internal/cli/progress"
	"github.com/wherryproject/wherry/internal/cli/pulling"
)

// fieldOfContainer finds the container that an event is about.
var fieldOfContainer = regexp.MustCompile(`^spec\.(?:initContainers|containers)\{(.+)\}$`)

// showPullEvents shows which images are pulled for the pod, once it has a node. Only events say it; when they cannot be
// had, that is all that is missing.
func (f *follower) showPullEvents(ctx context.Context) {
	selector := fields.OneTermEqualSelector("involvedObject.uid", string(f.self.UID)).String()
	w, err := f.owner.Client.CoreV1().Events(f.self.Namespace).Watch(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return
	}
	defer w.Stop()
	select {
	case <-ctx.Done():
		return
	case <-f.placed:
	}
	var pulls pulls
	defer pulls.end()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.ResultChan():
			if !ok {
				return
			}
			event, ok := e.Object.(*corev1.Event)
			if !ok {
				continue
			}
			container := ""
			if m := fieldOfContainer.FindStringSubmatch(event.InvolvedObject.FieldPath); m != nil {
				container = m[1]
			}
			if e.Type == watch.Added && isOfPull(event) {
				f.owner.Screen.Show(f.self.Name, progress.Line{Container: container, Text: event.Message,
					Slow: event.Reason == "Pulling"})
			}
			switch event.Reason {
			case "Pulling":
				pulls.begin(container, func() (stop func()) { return f.owner.showTransfers(ctx) })
			case "Pulled", "Failed":
				pulls.done(container)
			}
		}
	}
}

// isOfPull reports whether an event is of a pull. That an image was there already is no news.
func isOfPull(e *corev1.Event) bool {
	return e.Reason == "Pulling" || e.Reason == "Pulled" && !strings.Contains(e.Message, "already present on machine")
}

// pulls are those under way for one pod's containers. While there is one, how far it is is shown.
type pulls struct {
	of   map[string]bool
	stop func()
}

func (p *pulls) begin(container string, show func() (stop func())) {
	if p.of == nil {
		p.of = map[string]bool{}
	}
	p.of[container] = true
	if p.stop == nil {
		p.stop = show()
	}
}

func (p *pulls) done(container string) {
	delete(p.of, container)
	if len(p.of) == 0 {
		p.end()
	}
}

func (p *pulls) end() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

// showTransfers shows how far the node's pulls are until stop is called. Where that is not known, nothing is shown.
func (r *Runner) showTransfers(ctx context.Context) (stop func()) {
	if r.Transfers == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		pulling.Follow(ctx, r.Transfers, r.Screen.Pass)
	}()
	return func() { cancel(); <-ended }
}
