// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"
)

// debugging is an API server that notes what it is told, and has a debug container at once.
type debugging struct {
	mu    sync.Mutex
	told  []string
	ended chan End
	cases map[string]error // refusals, by pod
	pods  map[string]*corev1.Pod
	made  func(*Made) // changes what Debug returns; may be nil
}

func (d *debugging) tell(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, fmt.Sprintf(format, args...))
}

func (d *debugging) heard() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.told...)
}

func (d *debugging) Entered(_ context.Context, pod *corev1.Pod, container string, command []string) error {
	d.tell("exec %s/%s %v", pod.Name, container, command)
	return nil
}

func (d *debugging) Debug(_ context.Context, name string, s Session) (*Made, error) {
	d.tell("debug %s %+v", name, s)
	if err := d.cases[name]; err != nil {
		return nil, err
	}
	pod := d.pods[name].DeepCopy()
	pod.UID = "uid-1"
	pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: s.Name},
	})
	recorded := make(chan struct{})
	close(recorded)
	made := &Made{Pod: pod, Recorded: recorded, Begun: func(context.Context) (*corev1.Pod, error) { return pod, nil },
		Ended: func(context.Context) End { return End{Reason: "left"} }}
	if d.made != nil {
		d.made(made)
	}
	return made, nil
}

func (d *debugging) ImageAllowed(_ context.Context, pod *corev1.Pod, run ImageRun) (ImageRun, error) {
	return run, d.cases[pod.Name]
}

func (d *debugging) ImageExec(_ context.Context, pod *corev1.Pod, run ImageRun) (func(End), error) {
	d.tell("image %s %+v", pod.Name, run)
	return func(end End) { d.ended <- end }, nil
}

// IX-08: an exec is told before it is handed over, and only then; an attach and a refused exec are not.
func TestExecIsTold(t *testing.T) {
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			c := newCluster(t)
			var out bytes.Buffer
			stream := func(pod, sub string, opts *corev1.PodExecOptions) error {
				return executor(t, c, way, pod, sub, opts).StreamWithContext(testContext(t), remotecommand.StreamOptions{Stdout: &out})
			}
			if err := stream("many", "exec", &corev1.PodExecOptions{Stdout: true, Container: "b", Command: []string{"both"}}); err != nil {
				t.Fatal(err)
			}
			if err := stream("many", "exec", &corev1.PodExecOptions{Stdout: true, Container: "nobody", Command: []string{"both"}}); err == nil {
				t.Fatal("no error")
			}
			if err := stream("homeless", "exec", &corev1.PodExecOptions{Stdout: true, Command: []string{"both"}}); err == nil {
				t.Fatal("no error")
			}
			if err := stream("plain", "attach", &corev1.PodExecOptions{Stdout: true}); err != nil {
				t.Fatal(err)
			}
			if told := c.debugging.heard(); !slices.Equal(told, []string{"exec many/b [both]"}) {
				t.Errorf("told %q", told)
			}
		})
	}
}
